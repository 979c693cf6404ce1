/// Frames on the stream: a 4-byte big-endian length N and N bytes of JSON (PROTOCOL section 1).
public enum Frame {
  /// Bytes of the length that stands before every payload.
  public static let headerLength = 4

  /// What the bytes at hand hold.
  public enum Step {
    /// Less than a frame. `total` is the length of the frame under way, header included, once that is known.
    case incomplete(total: Int?)
    /// A whole frame: its payload, without the header.
    case complete(UnsafeRawBufferPointer)
    /// A length of 0 or beyond the limit: the stream cannot be read on.
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
