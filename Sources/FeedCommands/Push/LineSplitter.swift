import FeedClient

/// Bytes cut into lines. A line longer than the limit is thrown away as it comes, so memory stays bounded.
struct LineSplitter: ~Copyable {
  /// A line; its bytes are valid until the next `room()`.
  enum Line {
    /// White space is cut off at both ends.
    case text(UnsafeRawBufferPointer)
    /// Nothing but white space.
    case blank
    case tooLong
  }

  private let limit: Int
  private var queue: ByteQueue
  /// So many bytes of the queue are known to hold no end of a line.
  private var searched = 0
  private var isDiscarding = false
  private var isFinished = false

  /// - Parameter limit: the longest line in bytes, white space included but not its end.
  init(limit: Int, capacity: Int = 64 << 10) {
    self.limit = limit
    queue = ByteQueue(capacity: capacity)
  }

  /// Room to read into; tell ``didFill(_:)`` how much was put there. Lines given out before are no longer valid.
  mutating func room() -> UnsafeMutableRawBufferPointer { queue.room() }

  /// Takes over the first `count` bytes of the last ``room()``.
  mutating func didFill(_ count: Int) { queue.didFill(count) }

  /// No more bytes will come: what is left is the last line, with or without an end.
  mutating func finish() { isFinished = true }

  /// The next line; nil when more bytes are needed.
  mutating func next() -> Line? {
    let bytes = queue.bytes
    guard let end = Self.newLine(in: bytes, from: searched) else {
      searched = bytes.count
      return isFinished ? last() : discardIfTooLong()
    }
    take(end + 1)
    if isDiscarding {
      isDiscarding = false
      return .tooLong
    }
    return Self.trim(UnsafeRawBufferPointer(rebasing: bytes[..<end]), limit: limit)
  }

  private mutating func take(_ count: Int) {
    queue.consume(count)
    searched = 0
  }

  private mutating func last() -> Line? {
    let bytes = queue.bytes
    let wasDiscarding = isDiscarding
    isDiscarding = false
    take(bytes.count)
    if wasDiscarding { return .tooLong }
    return bytes.isEmpty ? nil : Self.trim(bytes, limit: limit)
  }

  private mutating func discardIfTooLong() -> Line? {
    if isDiscarding || queue.count > limit {
      isDiscarding = true
      take(queue.count)
    }
    return nil
  }

  private static func newLine(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
    bytes[start...].firstIndex(of: UInt8(ascii: "\n"))
  }

  private static func trim(_ line: UnsafeRawBufferPointer, limit: Int) -> Line {
    if line.count > limit { return .tooLong }
    var rest = line[...]
    while let byte = rest.first, isSpace(byte) { rest = rest.dropFirst() }
    while let byte = rest.last, isSpace(byte) { rest = rest.dropLast() }
    return rest.isEmpty ? .blank : .text(UnsafeRawBufferPointer(rebasing: rest))
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
}
