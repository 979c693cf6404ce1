extension ByteBuffer {
  /// Appends a JSON string with only the escapes that RFC 8259 requires.
  public mutating func appendJSONString(_ string: String) {
    // Without a copy, whose reference would be counted.
    let isDone: Void? = string.utf8.withContiguousStorageIfAvailable {
      appendJSONString(utf8: UnsafeRawBufferPointer($0))
    }
    if isDone != nil { return }
    var string = string
    string.withUTF8 { appendJSONString(utf8: UnsafeRawBufferPointer($0)) }
  }

  /// Appends the elements of an array of JSON strings, without the brackets.
  public mutating func appendJSONStrings(_ strings: [String]) {
    for (place, string) in strings.enumerated() {
      if place > 0 { append(UInt8(ascii: ",")) }
      appendJSONString(string)
    }
  }

  /// Appends UTF-8 as a JSON string with only the escapes that RFC 8259 requires.
  ///
  /// A surrogate in three bytes, as from `JSONView.withDecodedUTF8`, is escaped. Any other invalid byte becomes U+FFFD, so
  /// that the result is always valid.
  public mutating func appendJSONString(utf8: UnsafeRawBufferPointer) {
    reserve(utf8.count &+ 2)
    append(UInt8(ascii: "\""))
    utf8.withMemoryRebound(to: UInt8.self) { appendEscaped($0) }
    append(UInt8(ascii: "\""))
  }

  private mutating func appendEscaped(_ utf8: UnsafeBufferPointer<UInt8>) {
    guard var p = utf8.baseAddress else { return }
    let end = p + utf8.count
    var copied = p
    while p < end {
      if end - p >= 8 {
        let stops = Words.stringStops(Words.load(p))
        guard stops != 0 else {
          p = Words.skipPlain(p + 8, end)
          continue
        }
        p += Words.firstIndex(stops)
      } else if utf8.count >= 8, Words.stringStops(Words.load(end - 8)) == 0 {
        break
      }
      let length = p.pointee < 0x80 ? (Self.isPlain(p.pointee) ? 1 : 0) : UTF8Check.sequenceLength(p, end)
      if length > 0 {
        p += length
        continue
      }
      append(UnsafeRawBufferPointer(start: copied, count: p - copied))
      p += appendEscape(p, end)
      copied = p
    }
    append(UnsafeRawBufferPointer(start: copied, count: end - copied))
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    byte >= 0x20 && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
  }

  /// Appends an escape for the bytes at `p`. Returns their number.
  private mutating func appendEscape(_ p: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>) -> Int {
    let byte = p.pointee
    switch byte {
    case UInt8(ascii: "\""): append("\\\"")
    case UInt8(ascii: "\\"): append("\\\\")
    case 0x08: append("\\b")
    case 0x09: append("\\t")
    case 0x0A: append("\\n")
    case 0x0C: append("\\f")
    case 0x0D: append("\\r")
    case 0xED where end - p >= 3 && p[1] >= 0xA0 && p[1] <= 0xBF && UTF8Check.isContinuation(p[2]):
      appendUnicodeEscape(0xD000 | UInt16(p[1] & 0x3F) &<< 6 | UInt16(p[2] & 0x3F))
      return 3
    case 0x80...: append("\u{FFFD}")
    default: appendUnicodeEscape(UInt16(byte))
    }
    return 1
  }

  private mutating func appendUnicodeEscape(_ unit: UInt16) {
    append("\\u")
    for shift: UInt16 in [12, 8, 4, 0] { append(Hex.digit(UInt8(truncatingIfNeeded: unit &>> shift) & 0xF)) }
  }
}
