import FeedJSON

/// The syntax tree of a query: `$` or `@` and segments (RFC 9535, section 2.1).
struct QuerySyntax: Equatable, Sendable {
  /// Whether the query begins with `$` rather than `@`.
  var isAbsolute: Bool
  var segments: [SegmentSyntax]

  /// Whether the query selects at most one node of any value (RFC 9535, section 2.3.5.1).
  var isSingular: Bool { segments.allSatisfy(\.isSingular) }
}

struct SegmentSyntax: Equatable, Sendable {
  /// The offset of the segment in the text of the query, in bytes.
  var offset: Int
  var isDescendant: Bool
  var selectors: [SelectorSyntax]

  var isSingular: Bool {
    guard !isDescendant, selectors.count == 1 else { return false }
    switch selectors[0] {
    case .name, .index: return true
    case .wildcard, .slice, .filter: return false
    }
  }
}

enum SelectorSyntax: Equatable, Sendable {
  /// The decoded name, UTF-8.
  case name([UInt8])
  case wildcard
  case index(Int)
  case slice(SliceBounds)
  case filter(ConditionSyntax)
}

/// `start:end:step` of an array slice selector (RFC 9535, section 2.3.4).
struct SliceBounds: Equatable, Sendable {
  var start: Int?
  var end: Int?
  var step: Int

  /// The indexes that the slice selects from an array of `count` elements: the first one, the step and their number.
  ///
  /// Bounds have a magnitude of at most 2^53 − 1, so no sum overflows.
  func rows(count: Int) -> (first: Int, step: Int, count: Int) {
    func normalized(_ bound: Int) -> Int { bound >= 0 ? bound : count + bound }
    if step > 0 {
      let lower = min(max(normalized(start ?? 0), 0), count)
      let upper = min(max(normalized(end ?? count), 0), count)
      return lower < upper ? (lower, step, (upper - lower - 1) / step + 1) : (0, step, 0)
    }
    guard step < 0 else { return (0, 0, 0) }
    let upper = min(max(normalized(start ?? count - 1), -1), count - 1)
    let lower = min(max(normalized(end ?? -count - 1), -1), count - 1)
    return lower < upper ? (upper, step, (upper - lower - 1) / -step + 1) : (0, step, 0)
  }
}

/// A comparison operator, as the set of relations that satisfy it.
///
/// `<=` is "less or equal" (RFC 9535, section 2.3.5.2.2), so equal values without an order, such as `true`, satisfy it. `!=` is all
/// relations but "equal".
struct ComparisonOperator: OptionSet, Hashable, Sendable {
  let rawValue: UInt8

  static let less = ComparisonOperator(rawValue: 1)
  static let equal = ComparisonOperator(rawValue: 2)
  static let greater = ComparisonOperator(rawValue: 4)
  /// Neither equal nor ordered: different types, or one side is nothing.
  static let unrelated = ComparisonOperator(rawValue: 8)

  static let notEqual: ComparisonOperator = [.less, .greater, .unrelated]
  static let lessOrEqual: ComparisonOperator = [.less, .equal]
  static let greaterOrEqual: ComparisonOperator = [.greater, .equal]
}

/// A logical expression of a filter selector (RFC 9535, section 2.3.5).
indirect enum ConditionSyntax: Equatable, Sendable {
  case any([ConditionSyntax])
  case all([ConditionSyntax])
  case not(ConditionSyntax)
  case comparison(ComparisonOperator, OperandSyntax, OperandSyntax)
  /// A query as a test: true if it selects at least one node.
  case exists(QuerySyntax)
  case pattern(PatternSyntax)
}

/// `match(value, pattern)` or `search(value, pattern)`.
struct PatternSyntax: Equatable, Sendable {
  /// Whether the whole string must match (`match`), rather than a part of it (`search`).
  var isWhole: Bool
  var value: OperandSyntax
  var pattern: OperandSyntax
  /// The offset of the pattern in the text of the query, in bytes.
  var patternOffset: Int
}

/// An expression that yields one JSON value or nothing: a `comparable`, or an argument of type `ValueType`.
indirect enum OperandSyntax: Equatable, Sendable {
  case literal(LiteralSyntax)
  /// A singular query.
  case query(QuerySyntax)
  case length(OperandSyntax)
  case count(QuerySyntax)
  case value(QuerySyntax)
}

enum LiteralSyntax: Equatable, Sendable {
  case null, `false`, `true`
  /// The text of a JSON number.
  case number([UInt8])
  /// The decoded string, UTF-8.
  case string([UInt8])
}

extension QuerySyntax {
  /// Whether a filter inside refers to `$`.
  var filtersUseRoot: Bool {
    segments.contains { segment in
      segment.selectors.contains { selector in
        if case .filter(let condition) = selector { condition.usesRoot } else { false }
      }
    }
  }

  fileprivate var usesRoot: Bool { isAbsolute || filtersUseRoot }
}

extension ConditionSyntax {
  fileprivate var usesRoot: Bool {
    switch self {
    case .any(let parts), .all(let parts): parts.contains(where: \.usesRoot)
    case .not(let inner): inner.usesRoot
    case .comparison(_, let left, let right): left.usesRoot || right.usesRoot
    case .exists(let query): query.usesRoot
    case .pattern(let pattern): pattern.value.usesRoot || pattern.pattern.usesRoot
    }
  }
}

extension OperandSyntax {
  fileprivate var usesRoot: Bool {
    switch self {
    case .literal: false
    case .query(let query), .count(let query), .value(let query): query.usesRoot
    case .length(let inner): inner.usesRoot
    }
  }
}

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
