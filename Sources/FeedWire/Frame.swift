import FeedJSON

/// Frames on the stream: a 4-byte big-endian length N and N bytes of JSON (`Protocol/README.md`, section 1).
public enum Frame {
  /// Bytes of the length that stands before every payload.
  public static let headerLength = 4

  /// What the first bytes of a stream hold.
  public enum Step {
    /// Part of a frame. `total` is the length of the whole frame with its header, once that is known.
    case incomplete(total: Int?)
    /// A whole frame: its payload, without the header.
    case complete(UnsafeRawBufferPointer)
    /// A length of 0 or beyond the limit: the rest of the stream cannot be read.
    case badLength(Int)
  }

  /// Looks at the first frame of `bytes`. The length is judged as soon as it is there, before the payload arrives. O(1).
  @inlinable public static func first(in bytes: UnsafeRawBufferPointer, maxFrame: Int) -> Step {
    guard bytes.count >= headerLength else { return .incomplete(total: nil) }
    let length = Int(UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self)))
    guard length >= 1, length <= maxFrame else { return .badLength(length) }
    let total = headerLength &+ length
    guard bytes.count >= total else { return .incomplete(total: total) }
    return .complete(UnsafeRawBufferPointer(rebasing: bytes[headerLength..<total]))
  }
}

extension ByteBuffer {
  /// Leaves room for a frame's length and returns where the frame begins; `endFrame` fills it in.
  @inlinable public mutating func beginFrame() -> Int {
    let start = count
    appendUInt32BigEndian(0)
    return start
  }

  /// Ends the frame that began at `start` and returns the bytes of its payload.
  @inlinable @discardableResult public mutating func endFrame(at start: Int) -> Int {
    let length = count &- start &- Frame.headerLength
    overwriteUInt32BigEndian(at: start, UInt32(truncatingIfNeeded: length))
    return length
  }
}
