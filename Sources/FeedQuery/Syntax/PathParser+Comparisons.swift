extension PathParser {
  /// Reads blank space and a comparison operator; stays where it was when there is none.
  mutating func comparisonOperator() throws(QueryError) -> ComparisonOperator? {
    let end = cursor.offset
    cursor.skipBlanks()
    if cursor.take("=", "=") { return .equal }
    if cursor.take("!", "=") { return .notEqual }
    if cursor.take("<", "=") { return .lessOrEqual }
    if cursor.take(">", "=") { return .greaterOrEqual }
    if cursor.take("<") { return .less }
    if cursor.take(">") { return .greater }
    if cursor.byte == UInt8(ascii: "=") {
      throw cursor.error("equality is written `==`, and a regular expression as `match(value, 'pattern')`")
    }
    cursor.rewind(to: end)
    return nil
  }

  mutating func refuseSecondOperator() throws(QueryError) {
    let end = cursor.offset
    cursor.skipBlanks()
    let start = cursor.offset
    if try comparisonOperator() != nil {
      throw cursor.error(at: start, "comparisons do not chain: join two with `&&`")
    }
    cursor.rewind(to: end)
  }

  /// Takes a term where one value is needed (`comparable`, or an argument of type `ValueType`).
  func operand(_ term: Term, at start: Int, of use: String) throws(QueryError) -> OperandSyntax {
    switch term {
    case .literal(let literal): return .literal(literal)
    case .function(_, let operand): return operand
    case .query(let query):
      guard query.isSingular else {
        let advice = "name one member or element, or use `value(…)` or `count(…)`"
        throw cursor.error(at: start, "this query may select several nodes and \(use) takes one value: \(advice)")
      }
      return .query(query)
    case .pattern(let pattern):
      let name = pattern.isWhole ? "match" : "search"
      throw cursor.error(
        at: start, "`\(name)` is a condition and \(use) takes a value: use it alone, or negated as `!\(name)(…)`")
    }
  }
}
