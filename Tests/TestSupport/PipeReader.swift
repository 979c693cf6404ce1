import FeedSystem
import Glibc

/// Collects the output of a child process. It reads only during the calls that wait.
public final class PipeReader {
  private let handle: Descriptor
  private var bytes: [UInt8] = []
  /// Whether all writing ends of the pipe are closed.
  public private(set) var isAtEnd = false

  init(_ handle: consuming Descriptor?) throws {
    guard let handle else { throw TestFailure("the pipe has no reading end") }
    self.handle = handle
  }

  private var descriptor: Int32 { handle.rawValue }

  /// The output read so far.
  public var text: String { String(decoding: bytes, as: UTF8.self) }

  /// Reads until the output contains `words`.
  /// - Throws: if the output ends or `timeout` passes before.
  public func wait(for words: String, timeout: Duration = testTimeout) throws {
    try read(timeout, "the words '\(words)'") { $0.text.contains(words) }
  }

  /// Reads until the end of the output.
  public func waitForEnd(timeout: Duration = testTimeout) throws {
    try read(timeout, "its end") { $0.isAtEnd }
  }

  /// Reads until the output has `lines` complete lines.
  public func wait(lines: Int, timeout: Duration = testTimeout) throws {
    try read(timeout, "\(lines) lines") { reader in reader.bytes.lazy.filter { $0 == 10 }.count >= lines }
  }

  private func read(_ timeout: Duration, _ what: String, until isDone: (PipeReader) -> Bool) throws {
    let deadline = MonotonicClock.now + timeout.clampedNanoseconds
    while !isDone(self) {
      guard !isAtEnd else { throw TestFailure("the output ended before \(what); it was:\n\(text)") }
      let left = Duration.nanoseconds(Int64(deadline > MonotonicClock.now ? deadline - MonotonicClock.now : 0))
      guard try !Readiness.readable.wait(on: descriptor, timeout: left).isEmpty else {
        throw TestFailure("timed out after \(timeout) before \(what); the output was:\n\(text)")
      }
      readAvailable()
    }
  }

  /// Waits until the pipe or `descriptor` is readable, and reads the available output.
  /// - Returns: false after a timeout.
  func readMore(orReadable descriptor: Int32, timeout: Duration) throws -> Bool {
    var requests = [
      pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
    ]
    let milliseconds = MonotonicClock.milliseconds(until: MonotonicClock.now + timeout.clampedNanoseconds)
    guard poll(&requests, 2, milliseconds) > 0 else { return false }
    if requests[0].revents != 0 { readAvailable() }
    return true
  }

  private func readAvailable() {
    var chunk = [UInt8](repeating: 0, count: 64 << 10)
    let count = Glibc.read(descriptor, &chunk, chunk.count)
    if count <= 0 { isAtEnd = true } else { bytes += chunk[..<count] }
  }
}

/// The timeout for events that a test expects. Only failing tests wait so long.
public let testTimeout: Duration = .seconds(60)
