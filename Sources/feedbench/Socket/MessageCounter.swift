/// Counts messages in a stream of bytes by their lengths only.
enum MessageCounter {
  /// Frames of feedd.
  case frames(FrameCounter)
  /// Messages of one fixed length.
  case fixed(FixedCounter)

  /// The number of complete messages.
  var count: Int {
    switch self {
    case .frames(let counter): counter.count
    case .fixed(let counter): counter.bytes / counter.length
    }
  }

  /// The number of short ones among them: answers among deltas.
  var shortCount: Int {
    if case .frames(let counter) = self { return counter.shortCount }
    return 0
  }

  mutating func count(_ bytes: UnsafeRawBufferPointer) {
    switch self {
    case .frames(var counter):
      counter.count(bytes)
      self = .frames(counter)
    case .fixed(var counter):
      counter.bytes += bytes.count
      self = .fixed(counter)
    }
  }
}

/// Counts bytes.
struct FixedCounter {
  let length: Int
  var bytes = 0

  init(length: Int) { self.length = length }
}

/// Counts the frames of a stream: a big-endian length of four bytes, followed by that many bytes.
struct FrameCounter {
  /// The maximum size of a short frame.
  let shortLength: Int
  /// The number of complete frames.
  private(set) var count = 0
  /// The number of short frames that began.
  private(set) var shortCount = 0
  /// The number of bytes missing from the present frame.
  private var rest = 0
  /// The bytes of a length that arrived in pieces, and their number.
  private var length: UInt32 = 0
  private var lengthBytes = 0

  init(shortLength: Int = 0) { self.shortLength = shortLength }

  mutating func count(_ bytes: UnsafeRawBufferPointer) {
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
