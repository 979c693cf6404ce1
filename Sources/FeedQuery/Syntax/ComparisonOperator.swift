/// One of the six comparison operators, as the set of relations that satisfy it.
///
/// `<=` is "less or equal" by definition (RFC 9535, section 2.3.5.2.2), so values that are equal but have no order, such as `true`,
/// satisfy it; `!=` is everything but "equal".
struct ComparisonOperator: OptionSet, Hashable, Sendable {
  let rawValue: UInt8

  static let less = ComparisonOperator(rawValue: 1)
  static let equal = ComparisonOperator(rawValue: 2)
  static let greater = ComparisonOperator(rawValue: 4)
  /// Neither equal nor ordered: other types, or one side is nothing.
  static let unrelated = ComparisonOperator(rawValue: 8)

  static let notEqual: ComparisonOperator = [.less, .greater, .unrelated]
  static let lessOrEqual: ComparisonOperator = [.less, .equal]
  static let greaterOrEqual: ComparisonOperator = [.greater, .equal]
}
