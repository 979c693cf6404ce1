import FeedJSON

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

/// A value as read by the reference reader of RFC 8259, which the scanner is compared with.
indirect enum ReferenceValue: Equatable {
  case null
  case bool(Bool)
  /// The digits in the text.
  case number(String)
  /// The decoded bytes, with unpaired surrogates as in WTF-8.
  case string([UInt8])
  case array([ReferenceValue])
  case object([ReferenceMember])
}

/// A member of an object, with its decoded name.
struct ReferenceMember: Equatable {
  var name: [UInt8]
  var value: ReferenceValue
}

extension ReferenceValue {
  /// A text that is the same for all values that are equal by RFC 9535, section 2.3.5.2.2. Nil if a number is too large to
  /// be written in full.
  var meaning: ReferenceValue? {
    switch self {
    case .number(let text): return ReferenceDecimal.reaches(text) ? .number(ReferenceDecimal(text).canonical) : nil
    case .array(let elements):
      let meanings = elements.compactMap(\.meaning)
      return meanings.count == elements.count ? .array(meanings) : nil
    case .object(let members):
      var last: [[UInt8]: ReferenceValue] = [:]
      for member in members {
        guard let meaning = member.value.meaning else { return nil }
        last[member.name] = meaning
      }
      let names = last.keys.sorted { $0.lexicographicallyPrecedes($1) }
      return .object(names.compactMap { name in last[name].map { ReferenceMember(name: name, value: $0) } })
    default: return self
    }
  }
}

/// A decimal written in full: the reference for exact comparison. Exponents must be small.
struct ReferenceDecimal: Comparable {
  private static let places = 400

  let isNegative: Bool
  /// All digits from 10^(places-1) to 10^-places. Equal values have equal digits.
  private let digits: [UInt8]

  init(_ text: String) {
    let parts = text.lowercased().split(separator: "e")
    var mantissa = parts[0][...]
    let negative = mantissa.first == "-"
    if negative { mantissa.removeFirst() }
    let halves = mantissa.split(separator: ".")
    let fraction = halves.count > 1 ? halves[1] : ""
    let exponent = parts.count > 1 ? Int(parts[1]) ?? 0 : 0
    var digits = [UInt8](repeating: 0, count: 2 * Self.places)
    for (i, character) in (halves[0] + fraction).enumerated() {
      digits[Self.places - halves[0].count - exponent + i] = UInt8(character.wholeNumberValue ?? 0)
    }
    self.digits = digits
    isNegative = negative && digits.contains { $0 != 0 }
  }

  static func < (a: ReferenceDecimal, b: ReferenceDecimal) -> Bool {
    if a.isNegative != b.isNegative { return a.isNegative }
    let isLess = a.digits.lexicographicallyPrecedes(b.digits)
    return a.isNegative ? !isLess && a.digits != b.digits : isLess
  }

  /// The canonical text of the value: without exponent and without redundant zeros.
  var canonical: String {
    let text = digits.map(String.init).joined()
    let whole = text.prefix(Self.places).drop { $0 == "0" }
    let fraction = text.suffix(Self.places).reversed().drop { $0 == "0" }.reversed()
    return (isNegative ? "-" : "") + whole + "." + String(fraction)
  }

  /// Whether the digits of a number fit.
  static func reaches(_ text: String) -> Bool {
    let parts = text.lowercased().split(separator: "e")
    let exponent = parts.count > 1 ? Int(parts[1]) : 0
    return exponent.map { abs($0) < places / 2 && parts[0].count < places / 2 } ?? false
  }

  /// -1, 0 or 1.
  func order(_ other: ReferenceDecimal) -> Int { self < other ? -1 : other < self ? 1 : 0 }
}

extension ReferenceValue {
  /// The value of a view, read through its public interface.
  init?(_ view: JSONView) {
    switch view.kind {
    case .null: self = .null
    case .true: self = .bool(true)
    case .false: self = .bool(false)
    case .number: self = .number(String(decoding: view.text, as: UTF8.self))
    case .string:
      guard let bytes = view.withDecodedUTF8({ Array($0) }) else { return nil }
      self = .string(bytes)
    case .array:
      let elements = view.elements.compactMap { ReferenceValue($0) }
      guard elements.count == view.count else { return nil }
      self = .array(elements)
    case .object:
      let members = view.members.compactMap { ReferenceMember($0) }
      guard members.count == view.count else { return nil }
      self = .object(members)
    }
  }
}

extension ReferenceMember {
  init?(_ member: JSONView.Member) {
    guard let name = member.key.withDecodedUTF8({ Array($0) }), let value = ReferenceValue(member.value) else {
      return nil
    }
    self.init(name: name, value: value)
  }
}
