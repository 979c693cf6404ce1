import FeedSystem
import Glibc

/// A `feedd` in its own temporary directory. It ends with this object.
final class DaemonUnderTest {
  let process: ServerProcess

  var socketPath: String { Self.socketPath(process.folder) }

  /// Starts the `feedd` next to this program, or that in `PATH`, and waits until it answers.
  /// - Parameters:
  ///   - durability: the durability of the daemon; its state is in the temporary directory.
  ///   - options: further options.
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
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
    guard readlink("/proc/self/exe", &buffer, Int(PATH_MAX)) > 0 else { return "feedd" }
    let own = buffer.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } } ?? ""
    let beside = own.prefix { _ in true }.split(separator: "/", omittingEmptySubsequences: false).dropLast()
    let path = beside.joined(separator: "/") + "/feedd"
    return access(path, X_OK) == 0 ? path : "feedd"
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
