import FeedSystem

/// Writes to standard output, and knows how many of the bytes its reader has taken.
///
/// A pipe tells exactly what is still in it, also after its reader has ended. The queue of a socket gives a lower bound. What
/// is written to a file or a terminal is taken at once.
final class OutputMeter {
  /// The nanoseconds between two calls of the observer while the reader takes nothing.
  private static let pause: UInt64 = 20_000_000
  private let hasReader = UnreadBytes.of(StandardStreams.output) != .none
  private(set) var written = 0
  private(set) var taken = 0

  /// Writes all of the bytes.
  /// - Parameter observe: called every now and then while the reader is slow.
  func write(
    _ bytes: UnsafeRawBufferPointer, observe: () throws(SystemError) -> Void
  ) throws(SystemError) {
    guard hasReader else {
      try StandardStreams.writeAll(bytes, to: StandardStreams.output)
      written += bytes.count
      return
    }
    var rest = bytes
    var observed = MonotonicClock.now
    while !rest.isEmpty {
      let count = try StandardStreams.writeSome(rest, until: observed &+ Self.pause)
      written += count
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      guard !rest.isEmpty, MonotonicClock.now >= observed &+ Self.pause else { continue }
      try observe()
      observed = MonotonicClock.now
    }
  }

  /// Looks how many bytes are taken.
  func measure() {
    switch UnreadBytes.of(StandardStreams.output) {
    case .none: taken = written
    case .atMost(let count): taken = max(taken, written - count)
    case .lost: break
    }
  }

  /// Whether the reader has closed the output.
  var isReaderGone: Bool {
    var list = WaitList()
    list.add(StandardStreams.output, [])
    _ = try? list.wait(until: 0)
    return list.isBroken(StandardStreams.output)
  }
}
