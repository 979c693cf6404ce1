/// A JSON value, read from a frame or another text.
///
/// It has its own parser, so that the reference does not trust the one of the daemon.
struct Value: Equatable, CustomStringConvertible {
  /// The value as it stood in the frame.
  let text: String
  /// The elements of an array.
  let items: [Value]
  private let members: [(name: String, value: Value)]
  private let scalar: String?

  /// Parses a whole JSON text; nil if it is invalid.
  init?(_ text: String) {
    var text = text
    let value = text.withUTF8 { bytes in
      var parser = ValueParser(bytes)
      return parser.whole()
    }
    guard let value else { return nil }
    self = value
  }

  fileprivate init(_ text: String, items: [Value] = [], members: [(name: String, value: Value)] = [], string: String?) {
    (self.text, self.items, self.members, scalar) = (text, items, members, string)
  }

  subscript(name: String) -> Value? { members.last { $0.name == name }?.value }
  var string: String? { scalar }
  var int: Int? { Int(text) }
  var bool: Bool? { text == "true" ? true : text == "false" ? false : nil }
  /// `[section, row]`.
  var path: [Int] { items.compactMap(\.int) }

  var description: String { text }

  static func == (a: Value, b: Value) -> Bool { a.text == b.text }
}

/// A recursive parser of JSON (RFC 8259).
private struct ValueParser {
  private let bytes: UnsafeBufferPointer<UInt8>
  private var place = 0

  init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

  /// Parses a text that has one value and nothing else.
  mutating func whole() -> Value? {
    skipSpace()
    guard let value = value() else { return nil }
    skipSpace()
    return place == bytes.count ? value : nil
  }

  private mutating func value() -> Value? {
    let start = place
    switch next {
    case UInt8(ascii: "{"):
      guard let members = list(UInt8(ascii: "}"), { $0.member() }) else { return nil }
      return Value(text(from: start), members: members, string: nil)
    case UInt8(ascii: "["):
      guard let items = list(UInt8(ascii: "]"), { $0.value() }) else { return nil }
      return Value(text(from: start), items: items, string: nil)
    case UInt8(ascii: "\""):
      guard let string = string() else { return nil }
      return Value(text(from: start), string: string)
    case UInt8(ascii: "t"): return word("true")
    case UInt8(ascii: "f"): return word("false")
    case UInt8(ascii: "n"): return word("null")
    default: return number() ? Value(text(from: start), string: nil) : nil
    }
  }

  /// The next byte; 0, which no value begins with, at the end.
  private var next: UInt8 { place < bytes.count ? bytes[place] : 0 }

  private func text(from start: Int) -> String {
    String(decoding: UnsafeBufferPointer(rebasing: bytes[start..<place]), as: UTF8.self)
  }

  private mutating func skipSpace() {
    while next == 0x20 || next == 0x09 || next == 0x0A || next == 0x0D { place += 1 }
  }

  private mutating func skip(_ byte: UInt8) -> Bool {
    guard next == byte else { return false }
    place += 1
    return true
  }

  private mutating func list<Item>(_ end: UInt8, _ item: (inout Self) -> Item?) -> [Item]? {
    place += 1
    skipSpace()
    if skip(end) { return [] }
    var items: [Item] = []
    while true {
      skipSpace()
      guard let item = item(&self) else { return nil }
      items.append(item)
      skipSpace()
      if skip(end) { return items }
      guard skip(UInt8(ascii: ",")) else { return nil }
    }
  }

  private mutating func member() -> (name: String, value: Value)? {
    guard next == UInt8(ascii: "\""), let name = string() else { return nil }
    skipSpace()
    guard skip(UInt8(ascii: ":")) else { return nil }
    skipSpace()
    guard let value = value() else { return nil }
    return (name, value)
  }

  private mutating func word(_ word: StaticString) -> Value? {
    let start = place
    for index in 0..<word.utf8CodeUnitCount { guard skip(word.utf8Start[index]) else { return nil } }
    return Value(text(from: start), string: nil)
  }

  private mutating func number() -> Bool {
    _ = skip(UInt8(ascii: "-"))
    if !skip(UInt8(ascii: "0")) { guard digits() else { return false } }
    if skip(UInt8(ascii: ".")) { guard digits() else { return false } }
    if next | 0x20 == UInt8(ascii: "e") {
      place += 1
      if !skip(UInt8(ascii: "+")) { _ = skip(UInt8(ascii: "-")) }
      guard digits() else { return false }
    }
    return true
  }

  private mutating func digits() -> Bool {
    let start = place
    while next >= 0x30 && next <= 0x39 { place += 1 }
    return place > start
  }

  private mutating func string() -> String? {
    place += 1
    let start = place
    while next >= 0x20 && next != UInt8(ascii: "\"") && next != UInt8(ascii: "\\") { place += 1 }
    if next == UInt8(ascii: "\"") {
      defer { place += 1 }
      return text(from: start)
    }
    var units = Array(bytes[start..<place])
    while next >= 0x20 {
      let byte = next
      place += 1
      if byte == UInt8(ascii: "\"") { return String(decoding: units, as: UTF8.self) }
      if byte != UInt8(ascii: "\\") {
        units.append(byte)
      } else if let character = escaped() {
        units += Array(String(character).utf8)
      } else {
        return nil
      }
    }
    return nil
  }

  private mutating func escaped() -> Unicode.Scalar? {
    let byte = next
    place += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
    case UInt8(ascii: "b"): return "\u{8}"
    case UInt8(ascii: "f"): return "\u{C}"
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "u"):
      guard let unit = hexadecimal() else { return nil }
      guard unit & 0xFC00 == 0xD800 else { return Unicode.Scalar(unit) }
      guard skip(UInt8(ascii: "\\")), skip(UInt8(ascii: "u")), let low = hexadecimal(), low & 0xFC00 == 0xDC00 else {
        return nil
      }
      let (upper, lower): (UInt32, UInt32) = (unit & 0x3FF, low & 0x3FF)
      return Unicode.Scalar(0x10000 + (upper << 10 | lower))
    default: return nil
    }
  }

  private mutating func hexadecimal() -> UInt32? {
    guard bytes.count - place >= 4 else { return nil }
    defer { place += 4 }
    return UInt32(String(decoding: bytes[place..<place + 4], as: UTF8.self), radix: 16)
  }
}

extension String {
  /// The text as JSON; nil if it is invalid.
  var json: Value? { Value(self) }
}

extension Value {
  /// The code of an error response.
  var errorCode: Int? { self["error"]?["code"]?.int }
  /// What an error response says of the offending item.
  var errorData: Value? { self["error"]?["data"] }
}
