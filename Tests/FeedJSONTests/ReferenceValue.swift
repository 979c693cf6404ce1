import FeedJSON

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
