/// A recursive reader of JSON, byte by byte. `read` returns nil for an invalid text.
struct ReferenceReader {
  private let bytes: [UInt8]
  private var at = 0

  private init(_ bytes: [UInt8]) { self.bytes = bytes }

  static func read(_ bytes: [UInt8]) -> ReferenceValue? {
    // The standard library decides what is valid UTF-8.
    guard String(validating: bytes, as: UTF8.self) != nil else { return nil }
    var reader = ReferenceReader(bytes)
    guard let value = reader.value() else { return nil }
    reader.spaces()
    return reader.at == bytes.count ? value : nil
  }

  private var byte: UInt8? { at < bytes.count ? bytes[at] : nil }

  private mutating func take(_ text: StaticString) -> Bool {
    let wanted = text.withUTF8Buffer { Array($0) }
    guard bytes[at...].starts(with: wanted) else { return false }
    at += wanted.count
    return true
  }

  private mutating func spaces() {
    while let byte, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { at += 1 }
  }

  private mutating func value() -> ReferenceValue? {
    spaces()
    switch byte {
    case UInt8(ascii: "{"): return object()
    case UInt8(ascii: "["): return array()
    case UInt8(ascii: "\""): return string().map { .string($0) }
    case UInt8(ascii: "t"): return take("true") ? .bool(true) : nil
    case UInt8(ascii: "f"): return take("false") ? .bool(false) : nil
    case UInt8(ascii: "n"): return take("null") ? .null : nil
    default: return number()
    }
  }

  private mutating func array() -> ReferenceValue? {
    at += 1
    spaces()
    if take("]") { return .array([]) }
    var elements: [ReferenceValue] = []
    repeat {
      guard let element = value() else { return nil }
      elements.append(element)
      spaces()
    } while take(",")
    return take("]") ? .array(elements) : nil
  }

  private mutating func object() -> ReferenceValue? {
    at += 1
    spaces()
    if take("}") { return .object([]) }
    var members: [ReferenceMember] = []
    repeat {
      spaces()
      guard byte == UInt8(ascii: "\""), let name = string() else { return nil }
      spaces()
      guard take(":"), let value = value() else { return nil }
      members.append(ReferenceMember(name: name, value: value))
      spaces()
    } while take(",")
    return take("}") ? .object(members) : nil
  }

  private mutating func number() -> ReferenceValue? {
    let start = at
    _ = take("-")
    if !take("0") {
      guard digits() > 0 else { return nil }
    }
    if take("."), digits() == 0 { return nil }
    if take("e") || take("E") {
      if !take("+") { _ = take("-") }
      guard digits() > 0 else { return nil }
    }
    return .number(String(decoding: bytes[start..<at], as: UTF8.self))
  }

  private mutating func digits() -> Int {
    let start = at
    while let byte, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { at += 1 }
    return at - start
  }

  /// Decodes to UTF-16, so that surrogate pairs need no special case, then encodes as WTF-8.
  private mutating func string() -> [UInt8]? {
    at += 1
    var decoded: [UInt8] = []
    var units: [UInt16] = []
    while let byte, byte != UInt8(ascii: "\"") {
      guard byte >= 0x20 else { return nil }
      at += 1
      if byte == UInt8(ascii: "\\") {
        guard let unit = escape() else { return nil }
        units.append(unit)
      } else {
        decoded += Self.wtf8(units) + [byte]
        units = []
      }
    }
    guard take("\"") else { return nil }
    return decoded + Self.wtf8(units)
  }

  private mutating func escape() -> UInt16? {
    for (letter, unit) in zip(["\"", "\\", "/", "b", "f", "n", "r", "t"] as [StaticString], Self.shortEscapes)
    where take(letter) { return unit }
    guard take("u"), at + 4 <= bytes.count else { return nil }
    let digits = bytes[at..<(at + 4)]
    guard digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) else { return nil }
    at += 4
    return UInt16(String(decoding: digits, as: UTF8.self), radix: 16)
  }

  private static let shortEscapes: [UInt16] = [0x22, 0x5C, 0x2F, 0x08, 0x0C, 0x0A, 0x0D, 0x09]

  private static func wtf8(_ units: [UInt16]) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = units[...]
    while let unit = rest.popFirst() {
      if let low = rest.first, UTF16.isLeadSurrogate(unit), UTF16.isTrailSurrogate(low) {
        rest.removeFirst()
        bytes += Array(String(decoding: [unit, low], as: UTF16.self).utf8)
      } else if let scalar = Unicode.Scalar(unit) {
        bytes += Array(String(Character(scalar)).utf8)
      } else {
        bytes += [0xED, UInt8(0x80 | (unit >> 6) & 0x3F), UInt8(0x80 | unit & 0x3F)]
      }
    }
    return bytes
  }
}
