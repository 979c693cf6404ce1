import FeedSystem
import Glibc

/// A `feedd` for one test, in its own directory. It is killed when this object is deallocated.
public final class DaemonProcess {
  public let directory: TemporaryDirectory
  public let socketPath: String
  public let notify: NotifyReceiver
  public let process: ChildProcess

  /// Starts the daemon and waits until it is ready.
  /// - Parameters:
  ///   - arguments: the arguments after `--socket PATH`. The state is in memory unless they select a state directory or a
  ///     durability.
  ///   - directory: the directory of the socket; nil to create one.
  public init(
    _ arguments: [String] = [], environment: [String: String] = [:], directory: TemporaryDirectory? = nil
  ) throws {
    self.directory = try directory ?? TemporaryDirectory()
    socketPath = self.directory.file("feedd.sock")
    notify = try NotifyReceiver(self.directory.file("notify-\(MonotonicClock.now)"))
    let keeping = arguments.contains { ["--state", "--durability"].contains($0) } ? [] : ["--durability", "memory"]
    var variables = environment
    variables["NOTIFY_SOCKET"] = notify.socketName
    process = try ChildProcess(
      BuildProducts.program("feedd"), ["--socket", socketPath] + keeping + arguments, environment: variables)
    do {
      try notify.wait(for: "READY=1", orEndOf: process)
    } catch {
      throw TestFailure("feedd did not become ready: \(error)")
    }
  }

  /// Connects a client that sends and receives frames only.
  public func connect() throws -> RawClient { try RawClient(path: socketPath) }

  /// Stops the daemon with a signal and waits for its end.
  /// - Returns: the exit status.
  @discardableResult
  public func stop(signal: Int32 = SIGTERM) throws -> Int32 {
    process.signal(signal)
    return try process.waitForExit()
  }

  /// The standard error that was read so far. It is complete after ``stop(signal:)``.
  public var log: String { process.errors.text }
}

/// The socket of a service manager, which receives the notifications of a service.
public final class NotifyReceiver {
  /// The value of `NOTIFY_SOCKET`.
  public let socketName: String
  private let handle: Descriptor
  private var lines: [String] = []

  /// The descriptor of the socket.
  public var descriptor: Int32 { handle.rawValue }

  /// Creates the socket.
  /// - Parameter name: a path, or `@` and a name in the abstract namespace.
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

  /// Waits for a datagram with this line and skips others.
  /// - Throws: if `process`, the service, ends before.
  public func wait(for line: String, orEndOf process: ChildProcess, timeout: Duration = testTimeout) throws {
    while !lines.contains(line) {
      guard try process.isRunning(orReadable: handle.rawValue, timeout: timeout) else {
        throw TestFailure("the service ended before \(line):\n\(process.errors.text)")
      }
      lines += try next(timeout: timeout)
    }
    lines.removeAll { $0 == line }
  }

  /// Returns the lines of the next datagram.
  public func next(timeout: Duration = testTimeout) throws -> [String] {
    guard try !Readiness.readable.wait(on: handle.rawValue, timeout: timeout).isEmpty else {
      throw TestFailure("timed out after \(timeout): no message to the service manager; received before: \(lines)")
    }
    var space = [UInt8](repeating: 0, count: 4096)
    let count = recv(handle.rawValue, &space, space.count, 0)
    guard count > 0 else { throw TestFailure("recv: errno \(errno)") }
    return String(decoding: space[..<count], as: UTF8.self).split(separator: "\n").map(String.init)
  }
}
