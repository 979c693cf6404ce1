/// Counts the frames of a stream: a big-endian length of four bytes, then so many bytes.
struct FrameCounter {
  /// Frames of at most so many bytes are counted on their own as well.
  let shortLength: Int
  /// Frames that came to their end.
  private(set) var count = 0
  /// Short frames that began.
  private(set) var shortCount = 0
  /// Bytes of the frame under way that are still to come.
  private var rest = 0
  /// The bytes of a length that came in pieces, and how many of them came.
  private var length: UInt32 = 0
  private var lengthBytes = 0

  init(shortLength: Int = 0) { self.shortLength = shortLength }

  mutating func take(_ bytes: UnsafeRawBufferPointer) {
    var offset = 0
    while offset < bytes.count {
      if rest > 0 {
        let part = min(rest, bytes.count &- offset)
        rest &-= part
        offset &+= part
        if rest == 0 { count &+= 1 }
      } else if lengthBytes == 0, bytes.count &- offset >= 4 {
        begin(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
        offset &+= 4
      } else {
        length = length << 8 | UInt32(bytes[offset])
        lengthBytes += 1
        offset &+= 1
        if lengthBytes == 4 { begin(length) }
      }
    }
  }

  @inline(__always)
  private mutating func begin(_ length: UInt32) {
    rest = Int(length)
    lengthBytes = 0
    if rest <= shortLength { shortCount &+= 1 }
  }
}
