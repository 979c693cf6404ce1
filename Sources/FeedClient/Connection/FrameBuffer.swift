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
