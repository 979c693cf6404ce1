import FeedJSON

/// The canonical bytes of an identity: a string or a number of an element (PROTOCOL section 6).
///
/// Strings are their decoded characters behind an `s`; integers, however they are written, their value behind an `i`; all
/// other numbers their exact value behind an `n`. So `1`, `1.0` and `10e-1` are one identity and `"1"` is another.
enum Identity {
  /// Appends the canonical bytes; false when the value is neither a string nor a number.
  static func append(_ value: JSONView, to buffer: inout ByteBuffer) -> Bool {
    switch value.kind {
    case .string:
      buffer.append(UInt8(ascii: "s"))
      value.withDecodedUTF8 { bytes in buffer.append(bytes) }
      return true
    case .number:
      if let integer = value.int {
        buffer.append(UInt8(ascii: "i"))
        withUnsafeBytes(of: integer) { buffer.append($0) }
        return true
      }
      buffer.append(UInt8(ascii: "n"))
      JSONNumber.appendOrderedKey(of: value.text, to: &buffer)
      return true
    default:
      return false
    }
  }

  /// A hash that depends on a seed of the process, so that nobody can prepare colliding identities.
  static func hash(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt32 {
    var state = seed ^ (UInt64(truncatingIfNeeded: bytes.count) &* 0x9E37_79B9_7F4A_7C15)
    var offset = 0
    while offset &+ 8 <= bytes.count {
      state = fold(state ^ bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self), 0xA076_1D64_78BD_642F)
      offset &+= 8
    }
    var rest: UInt64 = 0
    while offset < bytes.count {
      rest = rest << 8 | UInt64(bytes[offset])
      offset &+= 1
    }
    state = fold(state ^ rest, 0xE703_7ED1_A0B4_28DB)
    return UInt32(truncatingIfNeeded: state ^ (state >> 32))
  }

  private static func fold(_ a: UInt64, _ b: UInt64) -> UInt64 {
    let product = a.multipliedFullWidth(by: b)
    return product.high ^ product.low
  }
}
