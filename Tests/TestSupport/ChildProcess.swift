import FeedSystem
import Glibc

/// A program started by a test, killed at the latest when this object goes.
public final class ChildProcess {
  public let pid: Int32
  public let output: PipeReader
  public let errors: PipeReader
  private var status: Int32?
  private var input: Descriptor?

  /// A program that ends before it has read its input shall be a failure of one test, not the end of all. Programs are
  /// started with the signal as it is by default.
  private static let ignoresBrokenPipes: Void = StandardStreams.ignoreBrokenPipes()

  /// - Parameters:
  ///   - environment: all of its variables; nothing is inherited but `PATH`.
  ///   - passing: descriptors it gets as 3, 4, … in this order.
  public init(
    _ program: String, _ arguments: [String] = [], environment: [String: String] = [:], passing: [Int32] = []
  ) throws {
    _ = Self.ignoresBrokenPipes
    var toInput = try Pipe()
    var fromOutput = try Pipe()
    var fromErrors = try Pipe()
    let standard = [toInput.readingNumber, fromOutput.writingNumber, fromErrors.writingNumber]
    pid = try Spawner(program, arguments, environment).spawn(standard + passing)
    output = try PipeReader(fromOutput.reading.take())
    errors = try PipeReader(fromErrors.reading.take())
    input = toInput.writing.take()
  }

  deinit {
    guard status == nil else { return }
    Glibc.kill(pid, SIGKILL)
    Glibc.kill(pid, SIGCONT)
    var ignored: Int32 = 0
    waitpid(pid, &ignored, 0)
  }

  public func signal(_ number: Int32) { _ = Glibc.kill(pid, number) }

  /// Writes to its standard input. Throws a ``SystemError`` of `EPIPE` when it has ended or closed it.
  public func write(_ text: String) throws {
    guard input != nil else { throw TestFailure("the input is closed") }
    try StandardStreams.writeAll(text, to: input?.rawValue ?? -1)
  }

  public func closeInput() { input = nil }

  /// Waits until `descriptor` is readable or the process ends, taking in what it writes on standard error meanwhile.
  /// - Returns: false when it ended and there is nothing to read.
  func isRunning(orReadable descriptor: Int32, timeout: Duration) throws -> Bool {
    while try Readiness.readable.wait(on: descriptor, timeout: .zero).isEmpty {
      if errors.isAtEnd { return false }
      guard try errors.takeMore(orReadable: descriptor, timeout: timeout) else {
        throw TestFailure("nothing happened within \(timeout); its standard error was:\n\(errors.text)")
      }
    }
    return true
  }

  /// Waits for its end, which shows as the end of its standard error.
  /// - Returns: the exit code, or 128 and the signal that killed it.
  public func waitForExit(timeout: Duration = testTimeout) throws -> Int32 {
    if let status { return status }
    try errors.waitForEnd(timeout: timeout)
    var raw: Int32 = 0
    guard waitpid(pid, &raw, 0) == pid else { throw TestFailure("waitpid: errno \(errno)") }
    let signal = raw & 0x7f
    let code = signal == 0 ? (raw >> 8) & 0xff : 128 + signal
    status = code
    return code
  }
}
