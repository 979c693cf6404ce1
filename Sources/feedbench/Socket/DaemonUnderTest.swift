import FeedSystem
import Glibc

/// A `feedd` in its own temporary directory. Both are removed with this object.
final class DaemonUnderTest {
  let socketPath: String
  private let folder: String
  private let pid: Int32

  /// Starts the `feedd` next to this program, or that in `PATH`, and waits until it answers.
  /// - Parameter durability: the durability of the daemon; its state is in the temporary directory.
  init(durability: String) throws {
    var template = Array("/tmp/feedbench-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw BenchmarkError("cannot create a temporary directory in /tmp") }
    folder = template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } } ?? ""
    socketPath = folder + "/feedd.sock"
    pid = try Self.spawn(Self.program, Self.arguments(folder, durability))
    for _ in 0..<1000 {
      if (try? UnixStream.connect(path: socketPath)) != nil { return }
      var status: Int32 = 0
      if waitpid(pid, &status, WNOHANG) == pid { break }
      usleep(5000)
    }
    throw BenchmarkError(
      "cannot start \(Self.program): it does not answer; build it with 'swift build -c release' or pass --socket PATH")
  }

  deinit {
    kill(pid, SIGTERM)
    var status: Int32 = 0
    waitpid(pid, &status, 0)
    unlink(socketPath)
    unlink(socketPath + ".lock")
    for name in ["feedd.sqlite", "feedd.sqlite-wal", "feedd.sqlite-shm", "feedd.sqlite-mark", "feedd.lock"] {
      unlink("\(folder)/state/\(name)")
    }
    rmdir(folder + "/state")
    rmdir(folder)
  }

  private static func arguments(_ folder: String, _ durability: String) -> [String] {
    [
      "--socket", "\(folder)/feedd.sock", "--state", "\(folder)/state", "--durability", durability, "--log-level",
      "warning",
    ]
  }

  /// The path of the `feedd` next to this program, or its name to find in `PATH`.
  private static var program: String {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
    guard readlink("/proc/self/exe", &buffer, Int(PATH_MAX)) > 0 else { return "feedd" }
    let own = buffer.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } } ?? ""
    let beside = own.prefix { _ in true }.split(separator: "/", omittingEmptySubsequences: false).dropLast()
    let path = beside.joined(separator: "/") + "/feedd"
    return access(path, X_OK) == 0 ? path : "feedd"
  }

  private static func spawn(_ program: String, _ arguments: [String]) throws -> Int32 {
    let words = ([program] + arguments).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var pid: Int32 = 0
    let code = posix_spawnp(&pid, program, nil, nil, words, environ)
    guard code == 0 else { throw BenchmarkError("\(SystemError(code: code, operation: "start \(program)"))") }
    return pid
  }
}

/// The processor time of a server, from the kernel. Other load on the machine affects it less than elapsed time.
struct ServerProcessClock {
  private let path: String

  /// - Parameter stream: a connection to the server.
  init(_ stream: UnixStream) throws {
    path = "/proc/\(try stream.peerCredentials().pid)/schedstat"
  }

  /// The processor time in nanoseconds; nil if the kernel does not report it.
  var now: Double? {
    guard let bytes = try? SmallFile.read(path), let first = bytes.split(separator: UInt8(ascii: " ")).first else {
      return nil
    }
    return Double(String(decoding: first, as: UTF8.self))
  }
}
