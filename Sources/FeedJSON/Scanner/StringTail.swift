/// The rest of a string from its first byte that is not plain: escapes, text that is not ASCII, and the last bytes of a
/// text.
struct StringTail {
  /// Behind the closing quote, or where the string is wrong.
  private(set) var end: UnsafePointer<UInt8>
  /// Flags for the token.
  private(set) var flags: UInt32 = 0
  private(set) var isWrong = false
  /// Why the string is refused, when it is wrong.
  private(set) var fault = JSONError.Kind.truncated

  @inline(never)
  static func scan(_ start: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>) -> StringTail {
    var tail = StringTail(end: start)
    while tail.end < end {
      if end - tail.end >= 8 {
        let stops = Words.stringStops(Words.load(tail.end))
        if stops == 0 {
          tail.end += 8
          continue
        }
        tail.end += Words.firstIndex(stops)
      }
      let byte = tail.end.pointee
      if byte >= 0x80 {
        guard tail.skipMultibyte(end) else { return tail }
      } else if byte == UInt8(ascii: "\"") {
        tail.end += 1
        return tail
      } else if byte == UInt8(ascii: "\\") {
        guard tail.skipEscape(end) else { return tail }
      } else if byte < 0x20 {
        _ = tail.refuse(.invalidString)
        return tail
      } else {
        tail.end += 1
      }
    }
    _ = tail.refuse(.truncated)
    return tail
  }

  /// Always false.
  private mutating func refuse(_ kind: JSONError.Kind) -> Bool {
    (isWrong, fault) = (true, kind)
    return false
  }

  /// A run of sequences of two bytes or more.
  @inline(__always)
  private mutating func skipMultibyte(_ limit: UnsafePointer<UInt8>) -> Bool {
    repeat {
      let length = UTF8Check.sequenceLength(end, limit)
      guard length > 0 else { return refuse(.invalidUTF8) }
      end += length
    } while end < limit && end.pointee >= 0x80
    return true
  }

  /// An escape of RFC 8259, section 7. Surrogates may stand alone: the grammar allows it.
  @inline(__always)
  private mutating func skipEscape(_ limit: UnsafePointer<UInt8>) -> Bool {
    flags = JSONToken.hasEscapes
    var length = 2
    if limit - end >= 2, end[1] == UInt8(ascii: "u") {
      length = 6
      for i in 2..<min(6, limit - end) where Hex.value(end[i]) > 15 { return refuse(.invalidEscape) }
    } else if limit - end >= 2, !Self.isShortEscape(end[1]) {
      return refuse(.invalidEscape)
    }
    guard limit - end >= length else {
      end = limit
      return refuse(.truncated)
    }
    end += length
    return true
  }

  @inline(__always)
  private static func isShortEscape(_ letter: UInt8) -> Bool {
    switch letter {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
      UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      true
    default: false
    }
  }
}
