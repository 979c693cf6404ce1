/// The syntax tree of a query: `$` or `@` and segments (RFC 9535, section 2.1).
struct QuerySyntax: Equatable, Sendable {
  /// Whether the query begins with `$` rather than `@`.
  var isAbsolute: Bool
  var segments: [SegmentSyntax]

  /// Whether the query selects at most one node of any value (RFC 9535, section 2.3.5.1).
  var isSingular: Bool { segments.allSatisfy(\.isSingular) }
}

/// A child or descendant segment.
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
  case null
  case `false`
  case `true`
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
