import FeedSystem
import Glibc

/// A `feedd` of its own for a test: in a directory of its own, ready when the initializer returns, killed when this object
/// goes.
public final class DaemonProcess {
  public let directory: TemporaryDirectory
  public let socketPath: String
  public let notify: NotifyReceiver
  public let process: ChildProcess

  /// Starts the daemon and waits until it says that it is ready.
  /// - Parameters:
  ///   - arguments: after `--socket PATH`; nothing is kept unless they name a state directory.
  ///   - directory: where the socket goes; one of its own when nil.
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

  /// A connection that speaks frames and leaves the rest to the test.
  public func connect() throws -> RawClient { try RawClient(path: socketPath) }

  /// Asks it to end and waits until it has.
  /// - Returns: its exit code.
  @discardableResult
  public func stop(signal: Int32 = SIGTERM) throws -> Int32 {
    process.signal(signal)
    return try process.waitForExit()
  }

  /// What it wrote on standard error so far, as far as it was read; call ``stop(signal:)`` before to have all of it.
  public var log: String { process.errors.text }
}
