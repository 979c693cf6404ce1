import FeedJSON

/// Splits input from the daemon into frames; see "Connecting and framing" in `Protocol/README.md`.
struct FrameBuffer: ~Copyable {
  /// The greatest `maxFrame` that a daemon can be configured with.
  static let maxFrame = 1 << 30

  private var queue: ByteQueue
  /// The maximum length of a frame, which limits the memory that a daemon can make this client use.
  private let limit: Int

  init(capacity: Int = 256 << 10, limit: Int = FrameBuffer.maxFrame) {
    queue = ByteQueue(capacity: capacity)
    self.limit = limit
  }

  /// The number of buffered bytes.
  var count: Int { queue.count }

  /// Returns memory to read into; invalidates frames returned before. The buffer grows with the bytes that arrive, not
  /// with the length that a frame claims.
  mutating func room() -> UnsafeMutableRawBufferPointer { queue.room() }

  /// Adds the first `count` bytes of the last ``room()``.
  mutating func didFill(_ count: Int) { queue.didFill(count) }

  /// Adds a frame.
  mutating func append(_ json: UnsafeRawBufferPointer) {
    let room = queue.room(atLeast: 4 + json.count)
    room.storeBytes(of: UInt32(truncatingIfNeeded: json.count).bigEndian, as: UInt32.self)
    UnsafeMutableRawBufferPointer(rebasing: room[4...]).copyMemory(from: json)
    queue.didFill(4 + json.count)
  }

  /// Returns the JSON of the next complete frame, valid until the next ``room()``; nil if more bytes are needed.
  mutating func next() throws(MalformedMessage) -> UnsafeRawBufferPointer? {
    let bytes = queue.bytes
    guard bytes.count >= 4 else { return nil }
    let length = Int(UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self)))
    guard length > 0, length <= limit else {
      throw MalformedMessage("a frame of \(counted(length, "byte")); the limit is \(grouped(limit))")
    }
    guard bytes.count - 4 >= length else { return nil }
    queue.consume(4 + length)
    return UnsafeRawBufferPointer(rebasing: bytes[4..<4 + length])
  }
}

/// A queue of bytes in raw memory, which is reused and grows with its content.
package struct ByteQueue: ~Copyable {
  private var block: UnsafeMutableRawPointer
  private var capacity: Int
  private var head = 0
  private var tail = 0

  /// - Parameter capacity: at least 4.
  package init(capacity: Int) {
    self.capacity = capacity
    block = .allocate(byteCount: capacity, alignment: 16)
  }

  deinit { block.deallocate() }

  /// The number of bytes in the queue.
  package var count: Int { tail - head }

  /// The bytes in the queue; valid until the next ``room(atLeast:)``, even if they are consumed.
  package var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: block + head, count: tail - head) }

  /// Returns memory for at least `minimum` bytes. Call ``didFill(_:)`` with the number of bytes written there.
  package mutating func room(atLeast minimum: Int = 1) -> UnsafeMutableRawBufferPointer {
    if head == tail { (head, tail) = (0, 0) }
    while capacity - tail < max(minimum, capacity / 4) {
      if head >= capacity / 2 {
        block.copyMemory(from: block + head, byteCount: count)
      } else {
        let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity * 2, alignment: 16)
        larger.copyMemory(from: block + head, byteCount: count)
        block.deallocate()
        (block, capacity) = (larger, capacity * 2)
      }
      (head, tail) = (0, tail - head)
    }
    return UnsafeMutableRawBufferPointer(start: block + tail, count: capacity - tail)
  }

  /// Adds the first `count` bytes of the last ``room(atLeast:)``.
  package mutating func didFill(_ count: Int) { tail += count }

  /// Removes the first `count` bytes.
  package mutating func consume(_ count: Int) { head += count }
}
