import FeedSystem
import Glibc

/// A `feedd` of the measurement's own, in a folder of its own; both go with this object.
final class DaemonUnderTest {
  let socketPath: String
  private let folder: String
  private let pid: Int32

  /// Starts the `feedd` that lies beside this program, else the one that `PATH` names, and waits until it answers.
  /// - Parameter durability: what its changes survive; what it keeps lies in the folder.
  init(durability: String) throws {
    var template = Array("/tmp/feedbench-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw BenchError("no folder for the socket can be made in /tmp") }
    folder = template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } } ?? ""
    socketPath = folder + "/feedd.sock"
    pid = try Self.spawn(Self.program, Self.arguments(folder, durability))
    for _ in 0..<1000 {
      if (try? UnixStream.connect(path: socketPath)) != nil { return }
      var status: Int32 = 0
      if waitpid(pid, &status, WNOHANG) == pid { break }
      usleep(5000)
    }
    throw BenchError("\(Self.program) does not answer; build it with swift build -c release, or name one with --socket")
  }

  deinit {
    kill(pid, SIGTERM)
    var status: Int32 = 0
    waitpid(pid, &status, 0)
    unlink(socketPath)
    unlink(socketPath + ".lock")
    for name in ["feedd.sqlite", "feedd.sqlite-wal", "feedd.sqlite-shm", "feedd.lock"] {
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

  /// The program in this program's folder, or the bare name for `PATH` to find.
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
    guard code == 0 else { throw BenchError("\(SystemError(code: code, operation: "start \(program)"))") }
    return pid
  }
}
