import FeedSystem
import Glibc

/// Takes in what a child writes; it reads only while somebody waits for something.
public final class PipeReader {
  private let handle: Descriptor
  private var bytes: [UInt8] = []
  /// Whether every process that could write has ended or closed its side.
  public private(set) var isAtEnd = false

  init(_ handle: consuming Descriptor?) throws {
    guard let handle else { throw TestFailure("there is nothing to read from") }
    self.handle = handle
  }

  private var descriptor: Int32 { handle.rawValue }

  /// All that came so far.
  public var text: String { String(decoding: bytes, as: UTF8.self) }

  /// Reads until what came has `words`; throws when the stream ends or `timeout` passes before.
  public func wait(for words: String, timeout: Duration = testTimeout) throws {
    try read(timeout, "the words '\(words)'") { $0.text.contains(words) }
  }

  /// Reads until the end.
  public func waitForEnd(timeout: Duration = testTimeout) throws {
    try read(timeout, "its end") { $0.isAtEnd }
  }

  /// Reads until `lines` whole lines are there.
  public func wait(lines: Int, timeout: Duration = testTimeout) throws {
    try read(timeout, "\(lines) lines") { reader in reader.bytes.lazy.filter { $0 == 10 }.count >= lines }
  }

  private func read(_ timeout: Duration, _ what: String, until isDone: (PipeReader) -> Bool) throws {
    let deadline = MonotonicClock.now + timeout.clampedNanoseconds
    while !isDone(self) {
      guard !isAtEnd else { throw TestFailure("the output ended before \(what); it was:\n\(text)") }
      let left = Duration.nanoseconds(Int64(deadline > MonotonicClock.now ? deadline - MonotonicClock.now : 0))
      guard try !Readiness.readable.wait(on: descriptor, timeout: left).isEmpty else {
        throw TestFailure("no \(what) within \(timeout); the output was:\n\(text)")
      }
      takeWhatIsThere()
    }
  }

  /// Waits until there is something here or on `descriptor`, and takes in what is here.
  /// - Returns: false after a timeout.
  func takeMore(orReadable descriptor: Int32, timeout: Duration) throws -> Bool {
    var requests = [
      pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
    ]
    let milliseconds = MonotonicClock.milliseconds(until: MonotonicClock.now + timeout.clampedNanoseconds)
    guard poll(&requests, 2, milliseconds) > 0 else { return false }
    if requests[0].revents != 0 { takeWhatIsThere() }
    return true
  }

  private func takeWhatIsThere() {
    var chunk = [UInt8](repeating: 0, count: 64 << 10)
    let count = Glibc.read(descriptor, &chunk, chunk.count)
    if count <= 0 { isAtEnd = true } else { bytes += chunk[..<count] }
  }
}

/// How long a test waits for an event that must come. Long: it only bounds a failure, no passing test waits for it.
public let testTimeout: Duration = .seconds(60)
