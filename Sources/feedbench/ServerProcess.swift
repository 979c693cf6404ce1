import FeedSystem
import Glibc

/// A server in its own temporary directory. It ends with this object, which removes the directory.
final class ServerProcess {
  let folder: String
  private(set) var pid: Int32
  private let restart: () throws -> Int32

  /// Starts a program and waits until it answers.
  /// - Parameters:
  ///   - arguments: the arguments, for the path of the directory.
  ///   - answers: whether the server in the directory answers.
  init(_ program: String, arguments: (_ folder: String) -> [String], answers: (_ folder: String) -> Bool) throws {
    var template = Array("/tmp/feedbench-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw BenchmarkError("cannot create a temporary directory in /tmp") }
    folder = template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } } ?? ""
    let words = arguments(folder)
    restart = { try Self.spawn(program, words) }
    pid = try restart()
    try wait(program, for: answers)
  }

  private func wait(_ program: String, for answers: (_ folder: String) -> Bool) throws {
    for _ in 0..<20_000 {
      if answers(folder) { return }
      var status: Int32 = 0
      if waitpid(pid, &status, WNOHANG) == pid { break }
      usleep(1000)
    }
    throw BenchmarkError("cannot start \(program): it does not answer")
  }

  /// Kills the server, and starts it again with the same arguments. Returns when it answers.
  func killAndRestart(_ answers: (_ folder: String) -> Bool) throws {
    kill(pid, SIGKILL)
    var status: Int32 = 0
    waitpid(pid, &status, 0)
    pid = try restart()
    try wait("the server again", for: answers)
  }

  deinit {
    kill(pid, SIGTERM)
    var status: Int32 = 0
    waitpid(pid, &status, 0)
    Self.remove(folder)
  }

  var residentBytes: Int {
    let text = (try? SmallFile.read("/proc/\(pid)/statm")) ?? []
    let pages = text.split(separator: UInt8(ascii: " ")).dropFirst().first
    return (pages.flatMap { Int(String(decoding: $0, as: UTF8.self)) } ?? 0) * 4096
  }

  /// Returns the path of a program in `PATH`; nil if it is not installed.
  static func path(of program: String) -> String? {
    let folders = getenv("PATH").map { String(cString: $0) } ?? ""
    return folders.split(separator: ":").map { "\($0)/\(program)" }.first { access($0, X_OK) == 0 }
  }

  private static func spawn(_ program: String, _ arguments: [String]) throws -> Int32 {
    let words = ([program] + arguments).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    // What other servers print is not part of the report.
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
    var pid: Int32 = 0
    let code = posix_spawnp(&pid, program, &actions, nil, words, environ)
    guard code == 0 else { throw BenchmarkError("\(SystemError(code: code, operation: "start \(program)"))") }
    return pid
  }

  /// Removes a directory with the files in it and in its directories.
  private static func remove(_ folder: String) {
    if let directory = opendir(folder) {
      while let entry = readdir(directory) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
          $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name == "." || name == ".." { continue }
        if unlink("\(folder)/\(name)") != 0 { remove("\(folder)/\(name)") }
      }
      closedir(directory)
    }
    rmdir(folder)
  }
}

/// A `feedd` in its own temporary directory. It ends with this object.
final class DaemonUnderTest {
  let process: ServerProcess

  var socketPath: String { Self.socketPath(process.folder) }

  /// Starts the `feedd` next to this program, or that in `PATH`, and waits until it answers.
  init(durability: String, options: [String] = []) throws {
    do {
      process = try ServerProcess(Self.program) { folder in
        [
          "--socket", Self.socketPath(folder), "--state", "\(folder)/state", "--durability", durability, "--log-level",
          "warning",
        ] + options
      } answers: {
        (try? UnixStream.connect(path: Self.socketPath($0))) != nil
      }
    } catch {
      throw BenchmarkError("\(error); build it with 'swift build -c release' or pass --socket PATH")
    }
  }

  private static func socketPath(_ folder: String) -> String { "\(folder)/feedd.sock" }

  /// The path of the `feedd` next to this program, or its name to find in `PATH`.
  private static var program: String {
    guard let own = FilePath.resolved("/proc/self/exe") else { return "feedd" }
    let path = "\(FilePath.directory(of: own))/feedd"
    return access(path, X_OK) == 0 ? path : "feedd"
  }
}

/// A Redis in its own temporary directory that keeps no snapshots.
final class RedisUnderTest {
  let process: ServerProcess
  /// How its append-only file is synced; nil if there is none.
  private let sync: String?

  private init(_ program: String, sync: String?) throws {
    self.sync = sync
    let log = ["--appendonly", sync == nil ? "no" : "yes"] + (sync.map { ["--appendfsync", $0] } ?? [])
    process = try ServerProcess(program) { folder in
      ["--port", "0", "--unixsocket", Self.socketPath(folder), "--dir", folder, "--save", "", "--maxclients", "4000"]
        + log
    } answers: {
      (try? UnixStream.connect(path: Self.socketPath($0))) != nil
    }
  }

  static func start(sync: String? = nil) throws -> RedisUnderTest? {
    try ServerProcess.path(of: "redis-server").map { try RedisUnderTest($0, sync: sync) }
  }

  func server(stores: Bool = true) -> RedisServer {
    RedisServer(path: Self.socketPath(process.folder), stores: stores, appendsEach: sync)
  }

  private static func socketPath(_ folder: String) -> String { "\(folder)/redis.sock" }
}

/// A feedd, and the other servers that are installed.
final class ServersUnderTest {
  private let daemon: DaemonUnderTest
  private let redis: RedisUnderTest?
  private let nats: ServerProcess?
  private let port: UInt16

  /// - Parameter sync: how Redis syncs an append-only file; nil to compare what stores nothing on disk, also with NATS.
  init(_ durability: String = "memory", beside sync: String? = nil) throws {
    daemon = try DaemonUnderTest(durability: durability)
    redis = try RedisUnderTest.start(sync: sync)
    let port = try LocalPort.free()
    self.port = port
    nats = try (sync == nil ? ServerProcess.path(of: "nats-server") : nil).map { path in
      try ServerProcess(path) { _ in
        ["-a", "127.0.0.1", "-p", "\(port)", "-l", "/dev/null"]
      } answers: { _ in
        (try? LocalPort.connect(port)) != nil
      }
    }
  }

  /// The name of the Redis; empty if it is not installed.
  var otherName: String { redis?.server().name ?? "" }

  /// feedd, and Redis that stores each element.
  var storing: [any Server] { [FeeddServer(path: daemon.socketPath)] + (redis.map { [$0.server()] } ?? []) }

  /// All servers. Those that store nothing come last.
  func all(_ job: PushJob) -> [any Server] {
    var servers = storing
    if let redis { servers.append(redis.server(stores: false)) }
    if nats != nil { servers.append(NATSServer(port: port)) }
    return servers + [CopyServer(job)]
  }
}

/// The processor time of a server, from the kernel. Other load on the machine affects it less than elapsed time.
struct ServerProcessClock {
  private let path: String

  /// - Parameter stream: a connection to the server. Returns nil if it is a thread of this process.
  init?(_ stream: UnixStream) throws {
    let pid = try stream.peerCredentials().pid
    if pid == getpid() { return nil }
    path = "/proc/\(pid)/schedstat"
  }

  /// The processor time in nanoseconds; nil if the kernel does not report it.
  var now: Double? {
    guard let bytes = try? SmallFile.read(path), let first = bytes.split(separator: UInt8(ascii: " ")).first else {
      return nil
    }
    return Double(String(decoding: first, as: UTF8.self))
  }
}
