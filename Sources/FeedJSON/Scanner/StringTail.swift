/// The rest of a string from its first byte that is not plain: escapes, text that is not ASCII, and the last bytes of a text.
struct StringTail {
  /// Behind the closing quote.
  var end: UnsafePointer<UInt8>
  /// Flags for the token.
  var flags: UInt32

  @inline(never)
  static func scan(
    _ start: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>, _ base: UnsafePointer<UInt8>
  ) throws(JSONError) -> StringTail {
    var p = start
    var flags: UInt32 = 0
    while p < end {
      if end - p >= 8 {
        let stops = Words.stringStops(Words.load(p))
        if stops == 0 {
          p += 8
          continue
        }
        p += Words.firstIndex(stops)
      }
      let byte = p.pointee
      if byte >= 0x80 {
        try skipMultibyte(&p, end, base)
      } else if byte == UInt8(ascii: "\"") {
        return StringTail(end: p + 1, flags: flags)
      } else if byte == UInt8(ascii: "\\") {
        flags = JSONToken.hasEscapes
        try skipEscape(&p, end, base)
      } else if byte < 0x20 {
        throw JSONError(offset: p - base, kind: .invalidString)
      } else {
        p += 1
      }
    }
    throw JSONError(offset: end - base, kind: .truncated)
  }

  /// A run of sequences of two bytes or more.
  @inline(__always)
  private static func skipMultibyte(
    _ p: inout UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>, _ base: UnsafePointer<UInt8>
  ) throws(JSONError) {
    repeat {
      let length = UTF8Check.sequenceLength(p, end)
      guard length > 0 else { throw JSONError(offset: p - base, kind: .invalidUTF8) }
      p += length
    } while p < end && p.pointee >= 0x80
  }

  /// An escape of RFC 8259, section 7. Surrogates may stand alone: the grammar allows it.
  @inline(__always)
  private static func skipEscape(
    _ p: inout UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>, _ base: UnsafePointer<UInt8>
  ) throws(JSONError) {
    guard end - p >= 2 else { throw JSONError(offset: end - base, kind: .truncated) }
    switch p[1] {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
      UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      p += 2
    case UInt8(ascii: "u"):
      for i in 2..<6 {
        guard p + i < end else { throw JSONError(offset: end - base, kind: .truncated) }
        guard Hex.value(p[i]) < 16 else { throw JSONError(offset: p - base, kind: .invalidEscape) }
      }
      p += 6
    default: throw JSONError(offset: p - base, kind: .invalidEscape)
    }
  }
}
