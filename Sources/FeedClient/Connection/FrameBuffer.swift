/// Bytes that came from the daemon, cut into frames (protocol, section 1).
struct FrameBuffer: ~Copyable {
  /// The largest frame that is believed; no daemon can be configured to send more.
  static let maxFrame = 1 << 30

  private var queue: ByteQueue

  init(capacity: Int = 256 << 10) { queue = ByteQueue(capacity: capacity) }

  /// Room to read into; frames given out before are no longer valid. It grows with the bytes that come, never ahead by
  /// what a length claims.
  mutating func room() -> UnsafeMutableRawBufferPointer { queue.room() }

  /// Takes over the first `count` bytes of the last ``room()``.
  mutating func didFill(_ count: Int) { queue.didFill(count) }

  /// Adds a frame of its own, to be given out after those before it.
  mutating func append(_ json: UnsafeRawBufferPointer) {
    let room = queue.room(atLeast: 4 + json.count)
    room.storeBytes(of: UInt32(truncatingIfNeeded: json.count).bigEndian, as: UInt32.self)
    UnsafeMutableRawBufferPointer(rebasing: room[4...]).copyMemory(from: json)
    queue.didFill(4 + json.count)
  }

  /// The JSON of the next complete frame, valid until the next ``room()``; nil when more bytes are needed.
  mutating func next() throws(MalformedMessage) -> UnsafeRawBufferPointer? {
    let bytes = queue.bytes
    guard bytes.count >= 4 else { return nil }
    let length = Int(UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self)))
    guard length > 0, length <= Self.maxFrame else { throw MalformedMessage("a frame of \(length) bytes") }
    guard bytes.count - 4 >= length else { return nil }
    queue.consume(4 + length)
    return UnsafeRawBufferPointer(rebasing: bytes[4..<4 + length])
  }
}

/// Bytes that come at one end and are taken at the other: raw memory that is used again and again and grows with what
/// comes.
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

  /// How many bytes have come and were not consumed.
  package var count: Int { tail - head }

  /// Those bytes; valid until the next ``room(atLeast:)``, consumed or not.
  package var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: block + head, count: tail - head) }

  /// Room to put bytes into, at least a quarter of the whole; tell ``didFill(_:)`` how much was put there.
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

  /// Takes over the first `count` bytes of the last ``room(atLeast:)``.
  package mutating func didFill(_ count: Int) { tail += count }

  /// Takes the first `count` bytes away.
  package mutating func consume(_ count: Int) { head += count }
}
