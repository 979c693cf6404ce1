import FeedJSON

/// The framing of the stream: a 4-byte big-endian length N and N bytes of JSON ("Connecting and framing" in `Protocol/README.md`).
public enum Frame {
  /// The number of bytes of the length before each payload.
  public static let headerLength = 4

  /// The result of looking for a frame at the start of a stream.
  public enum Step {
    /// Part of a frame. `total` is the length of the whole frame including the header; nil until the header is complete.
    case incomplete(total: Int?)
    /// A complete frame; its payload, without the header.
    case complete(UnsafeRawBufferPointer)
    /// The length is 0 or exceeds the limit. The rest of the stream cannot be parsed.
    case badLength(Int)
  }

  /// Returns the length of a payload from the header at the start of `bytes`.
  @inlinable public static func payloadLength(_ bytes: UnsafeRawBufferPointer) -> Int {
    Int(UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self)))
  }

  /// Parses the first frame of `bytes`. The length is checked before the payload arrives. O(1).
  @inlinable public static func first(in bytes: UnsafeRawBufferPointer, maxFrame: Int) -> Step {
    guard bytes.count >= headerLength else { return .incomplete(total: nil) }
    let length = payloadLength(bytes)
    guard length >= 1, length <= maxFrame else { return .badLength(length) }
    let total = headerLength &+ length
    guard bytes.count >= total else { return .incomplete(total: total) }
    return .complete(UnsafeRawBufferPointer(rebasing: bytes[headerLength..<total]))
  }
}

extension ByteBuffer {
  /// Reserves the header of a frame, which `endFrame` fills in. Returns the offset of the frame.
  @inlinable public mutating func beginFrame() -> Int {
    let start = count
    appendUInt32BigEndian(0)
    return start
  }

  /// Writes the header of the frame at offset `start`. Returns the length of its payload in bytes.
  @inlinable @discardableResult public mutating func endFrame(at start: Int) -> Int {
    let length = count &- start &- Frame.headerLength
    assert(start >= 0 && length >= 0, "no frame was begun at offset \(start)")
    overwriteUInt32BigEndian(at: start, UInt32(truncatingIfNeeded: length))
    return length
  }
}
