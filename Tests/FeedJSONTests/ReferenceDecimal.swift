import FeedJSON

/// A decimal written out in full: the reference for exact comparison. Exponents have to be small.
struct ReferenceDecimal: Comparable {
  private static let places = 400

  let isNegative: Bool
  /// All digits from 10^(places-1) to 10^-places; no two ways to write one value.
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

  /// The one spelling of the value that has neither exponent nor zeros to spare at its ends.
  var canonical: String {
    let text = digits.map(String.init).joined()
    let whole = text.prefix(Self.places).drop { $0 == "0" }
    let fraction = text.suffix(Self.places).reversed().drop { $0 == "0" }.reversed()
    return (isNegative ? "-" : "") + whole + "." + String(fraction)
  }

  /// Whether the digits of a spelling have places here.
  static func reaches(_ text: String) -> Bool {
    let parts = text.lowercased().split(separator: "e")
    let exponent = parts.count > 1 ? Int(parts[1]) : 0
    return exponent.map { abs($0) < places / 2 && parts[0].count < places / 2 } ?? false
  }

  /// -1, 0 or 1.
  func order(_ other: ReferenceDecimal) -> Int { self < other ? -1 : other < self ? 1 : 0 }
}
