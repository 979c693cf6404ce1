import FeedJSON

/// A position in a UTF-8 text that is being parsed. Reading past the end returns nil and does not trap.
///
/// Invariant: `offset` is at most the number of bytes.
struct TextCursor {
  let bytes: [UInt8]
  /// The position, in bytes from the start of the text.
  private(set) var offset = 0

  /// Creates a cursor at the start of `text`.
  /// - Throws: if the text exceeds `QueryLimits.textLength`, so that everything compiled from it is counted in 32 bits.
  init(_ text: String) throws(QueryError) {
    guard text.utf8.count <= QueryLimits.textLength else {
      let limit = QueryLimits.textLength
      throw QueryError(offset: limit, message: "the text is longer than \(grouped(limit)) bytes; shorten it")
    }
    bytes = Array(text.utf8)
  }

  var isAtEnd: Bool { offset == bytes.count }
  var byte: UInt8? { offset < bytes.count ? bytes[offset] : nil }

  func byte(after distance: Int) -> UInt8? { offset + distance < bytes.count ? bytes[offset + distance] : nil }

  /// Moves forward by `count` bytes, at most to the end.
  mutating func advance(by count: Int = 1) {
    assert(count >= 0, "advancing backwards")
    offset = min(offset + count, bytes.count)
  }

  /// Returns to an earlier value of `offset`.
  mutating func rewind(to earlier: Int) {
    assert(earlier >= 0 && earlier <= offset, "rewinding forwards")
    offset = earlier
  }

  /// Skips `expected`, an ASCII character. Returns false if it is not here.
  mutating func consume(_ expected: Character) -> Bool {
    guard let value = expected.asciiValue, byte == value else { return false }
    offset += 1
    return true
  }

  /// Skips two ASCII characters. Returns false if they are not here.
  mutating func consume(_ first: Character, _ second: Character) -> Bool {
    guard byte == first.asciiValue, byte(after: 1) == second.asciiValue, !isAtEnd else { return false }
    offset += 2
    return true
  }

  /// Skips and returns the scalar that begins here; nil at the end.
  mutating func nextScalar() -> UInt32? {
    guard let lead = byte else { return nil }
    let length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4
    var value = length == 1 ? UInt32(lead) : UInt32(lead) & (0x7F >> UInt32(length))
    for index in 1..<max(length, 1) { value = value << 6 | UInt32((byte(after: index) ?? 0) & 0x3F) }
    advance(by: length)
    return value
  }

  /// Skips blank space: space, tab, line feed and carriage return.
  mutating func skipBlanks() {
    while let byte, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { offset += 1 }
  }

  /// The character here, in the form used by error messages.
  var found: String {
    var copy = self
    guard let value = copy.nextScalar() else { return "the end of the text" }
    if value < 0x20 || value == 0x7F { return "the control character U+" + hexadecimal(value) }
    return "`" + String(decoding: bytes[offset..<copy.offset], as: UTF8.self) + "`"
  }

  func error(_ message: String) -> QueryError { QueryError(offset: offset, message: message) }

  func error(at offset: Int, _ message: String) -> QueryError { QueryError(offset: offset, message: message) }
}

/// Returns `value` in upper-case hexadecimal, with at least four digits.
func hexadecimal(_ value: UInt32) -> String { padded(value, to: 4, radix: 16, uppercase: true) }

/// Whether a name can begin with this byte: a letter, `_`, or a byte of a scalar outside ASCII.
func isNameFirst(_ byte: UInt8) -> Bool {
  switch byte {
  case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"), 0x80...: true
  default: false
  }
}

func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }

func startsNumber(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "-") || isDigit(byte) }
