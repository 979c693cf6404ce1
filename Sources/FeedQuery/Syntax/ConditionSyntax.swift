/// A logical expression of a filter selector (RFC 9535, section 2.3.5).
indirect enum ConditionSyntax: Equatable, Sendable {
  case any([ConditionSyntax])
  case all([ConditionSyntax])
  case not(ConditionSyntax)
  case comparison(ComparisonOperator, OperandSyntax, OperandSyntax)
  /// A query by itself: true when it selects at least one node.
  case exists(QuerySyntax)
  case pattern(PatternSyntax)
}

/// `match(value, pattern)` or `search(value, pattern)`.
struct PatternSyntax: Equatable, Sendable {
  /// `match`: the whole string, rather than some part of it.
  var isWhole: Bool
  var value: OperandSyntax
  var pattern: OperandSyntax
  /// Where the pattern is written: bytes into the text of the query.
  var patternOffset: Int
}

/// What yields one JSON value or nothing: a `comparable`, or an argument of type `ValueType`.
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
