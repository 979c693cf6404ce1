/// The decoded bytes of what stands between the quotes of a validated string, one by one and without allocation.
struct DecodedBytes: IteratorProtocol {
  /// What becomes of an escaped surrogate that stands alone.
  enum Surrogates {
    /// Three bytes as in WTF-8, which keep it apart from all else and in code point order.
    case keep
    /// U+FFFD.
    case replace
  }

  private var p: UnsafePointer<UInt8>
  private let end: UnsafePointer<UInt8>
  private let surrogates: Surrogates
  /// Bytes of an escape that are still to be given, the next one lowest.
  private var pending: UInt32 = 0

  init(_ raw: UnsafeBufferPointer<UInt8>, surrogates: Surrogates = .keep) {
    let start = raw.baseAddress ?? UnsafePointer(Self.nothing.utf8Start)
    p = start
    end = start + raw.count
    self.surrogates = surrogates
  }

  private static let nothing: StaticString = ""

  mutating func next() -> UInt8? {
    if pending != 0 {
      let byte = UInt8(truncatingIfNeeded: pending)
      pending &>>= 8
      return byte
    }
    guard p < end else { return nil }
    guard p.pointee == UInt8(ascii: "\\") else {
      defer { p += 1 }
      return p.pointee
    }
    let bytes = unescape()
    pending = bytes &>> 8
    return UInt8(truncatingIfNeeded: bytes)
  }

  /// Writes everything that is left; gives the number of bytes, which is never more than the raw ones.
  consuming func write(to room: UnsafeMutableBufferPointer<UInt8>) -> Int {
    var count = 0
    while count < room.count, let byte = next() {
      room[count] = byte
      count &+= 1
    }
    return count
  }

  /// The UTF-8 of the escape at `p`, first byte lowest. No byte of a sequence is zero but that of U+0000, which is one
  /// alone.
  private mutating func unescape() -> UInt32 {
    let letter = p[1]
    guard letter == UInt8(ascii: "u") else {
      p += 2
      switch letter {
      case UInt8(ascii: "b"): return 0x08
      case UInt8(ascii: "f"): return 0x0C
      case UInt8(ascii: "n"): return 0x0A
      case UInt8(ascii: "r"): return 0x0D
      case UInt8(ascii: "t"): return 0x09
      default: return UInt32(letter)
      }
    }
    let unit = Hex.unit(p + 2)
    p += 6
    guard unit & 0xF800 == 0xD800 else { return Self.encode(unit) }
    if unit < 0xDC00, end - p >= 6, p[0] == UInt8(ascii: "\\"), p[1] == UInt8(ascii: "u") {
      let low = Hex.unit(p + 2)
      if low & 0xFC00 == 0xDC00 {
        p += 6
        return Self.encode(0x10000 &+ (unit & 0x3FF) &<< 10 | (low & 0x3FF))
      }
    }
    return Self.encode(surrogates == .keep ? unit : 0xFFFD)
  }

  private static func encode(_ c: UInt32) -> UInt32 {
    if c < 0x80 { return c }
    let last = 0x80 | c & 0x3F
    if c < 0x800 { return last &<< 8 | 0xC0 | c &>> 6 }
    let third = 0x80 | (c &>> 6) & 0x3F
    if c < 0x10000 { return last &<< 16 | third &<< 8 | 0xE0 | c &>> 12 }
    return last &<< 24 | third &<< 16 | (0x80 | (c &>> 12) & 0x3F) &<< 8 | 0xF0 | c &>> 18
  }
}
