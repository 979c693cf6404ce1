import FeedSystem
import Glibc

/// Plays the service manager's side of readiness: a datagram socket that a service reports to.
public final class NotifyReceiver {
  /// What to put into `NOTIFY_SOCKET`.
  public let socketName: String
  private let handle: Descriptor
  private var lines: [String] = []

  /// The socket itself.
  public var descriptor: Int32 { handle.rawValue }

  /// - Parameter name: a path, or `@` and a name of the abstract space.
  public init(_ name: String) throws {
    socketName = name
    let number = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard number >= 0 else { throw TestFailure("socket: errno \(errno)") }
    handle = Descriptor(owning: number)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    var bytes = Array(name.utf8)
    if bytes.first == UInt8(ascii: "@") { bytes[0] = 0 }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    let size = socklen_t(MemoryLayout<sa_family_t>.size + bytes.count)
    let result = withUnsafePointer(to: address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(number, $0, size) }
    }
    guard result == 0 else { throw TestFailure("bind \(name): errno \(errno)") }
  }

  /// Waits for a datagram with this line, skipping others.
  /// - Parameter process: the service; its end means that the line will not come.
  public func wait(for line: String, orEndOf process: ChildProcess, timeout: Duration = testTimeout) throws {
    while !lines.contains(line) {
      guard try process.isRunning(orReadable: handle.rawValue, timeout: timeout) else {
        throw TestFailure("it ended before \(line):\n\(process.errors.text)")
      }
      lines += try next(timeout: timeout)
    }
    lines.removeAll { $0 == line }
  }

  /// The lines of the next datagram.
  public func next(timeout: Duration = testTimeout) throws -> [String] {
    guard try !Readiness.readable.wait(on: handle.rawValue, timeout: timeout).isEmpty else {
      throw TestFailure("no message to the service manager within \(timeout); before it: \(lines)")
    }
    var space = [UInt8](repeating: 0, count: 4096)
    let count = recv(handle.rawValue, &space, space.count, 0)
    guard count > 0 else { throw TestFailure("recv: errno \(errno)") }
    return String(decoding: space[..<count], as: UTF8.self).split(separator: "\n").map(String.init)
  }
}
