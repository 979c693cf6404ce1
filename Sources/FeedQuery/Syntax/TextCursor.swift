/// A position in a UTF-8 text that is being parsed. Reading past the end yields nil, never a trap.
struct TextCursor {
  let bytes: [UInt8]
  /// Bytes from the start of the text.
  private(set) var offset = 0

  /// Refuses a text that is longer than any query needs, so that what is made of it can be counted in 32 bits.
  init(_ text: String) throws(QueryError) {
    guard text.utf8.count <= QueryLimits.textLength else {
      let limit = QueryLimits.textLength
      throw QueryError(offset: limit, message: "the text is longer than \(limit) bytes: shorten it")
    }
    bytes = Array(text.utf8)
  }

  var isAtEnd: Bool { offset == bytes.count }
  var byte: UInt8? { offset < bytes.count ? bytes[offset] : nil }

  func byte(after distance: Int) -> UInt8? {
    offset + distance < bytes.count ? bytes[offset + distance] : nil
  }

  mutating func advance(by count: Int = 1) {
    offset = min(offset + count, bytes.count)
  }

  /// Returns to a position that was read from `offset` before.
  mutating func rewind(to earlier: Int) {
    offset = earlier
  }

  /// Passes over `expected` if it stands here.
  mutating func take(_ expected: Character) -> Bool {
    guard let value = expected.asciiValue, byte == value else { return false }
    offset += 1
    return true
  }

  /// Passes over a two-character operator if it stands here.
  mutating func take(_ first: Character, _ second: Character) -> Bool {
    guard byte == first.asciiValue, byte(after: 1) == second.asciiValue, !isAtEnd else { return false }
    offset += 2
    return true
  }

  /// Passes over the scalar that begins here; nil at the end.
  mutating func takeScalar() -> UInt32? {
    guard let lead = byte else { return nil }
    let length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4
    var value = length == 1 ? UInt32(lead) : UInt32(lead) & (0x7F >> UInt32(length))
    for index in 1..<max(length, 1) {
      value = value << 6 | UInt32((byte(after: index) ?? 0) & 0x3F)
    }
    advance(by: length)
    return value
  }

  /// Passes over blank space: space, tab, line feed, carriage return.
  mutating func skipBlanks() {
    while let byte, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { offset += 1 }
  }

  /// What stands here, as an error message names it.
  var found: String {
    var copy = self
    guard let value = copy.takeScalar() else { return "the end of the text" }
    if value < 0x20 || value == 0x7F { return "the control character U+" + hexadecimal(value) }
    return "`" + String(decoding: bytes[offset..<copy.offset], as: UTF8.self) + "`"
  }

  func error(_ message: String) -> QueryError { QueryError(offset: offset, message: message) }

  func error(at offset: Int, _ message: String) -> QueryError { QueryError(offset: offset, message: message) }
}

/// Four hexadecimal digits at least, upper case.
func hexadecimal(_ value: UInt32) -> String {
  let digits = String(value, radix: 16, uppercase: true)
  return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
}

/// A letter, `_`, or a byte of a scalar beyond ASCII.
func isNameFirst(_ byte: UInt8) -> Bool {
  switch byte {
  case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"), 0x80...: true
  default: false
  }
}

func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }

func startsNumber(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "-") || isDigit(byte) }
