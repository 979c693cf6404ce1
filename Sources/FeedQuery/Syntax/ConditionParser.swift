extension PathParser {
  /// Parses a `logical-expr`. `&&` has a higher precedence than `||`.
  mutating func condition() throws(QueryError) -> ConditionSyntax {
    var alternatives = [try conjunction()]
    while try consumeConnective("|", named: "or") { alternatives.append(try conjunction()) }
    return alternatives.count == 1 ? alternatives[0] : .any(alternatives)
  }

  private mutating func conjunction() throws(QueryError) -> ConditionSyntax {
    var parts = [try basic()]
    while try consumeConnective("&", named: "and") { parts.append(try basic()) }
    return parts.count == 1 ? parts[0] : .all(parts)
  }

  /// Skips blank space, a doubled `character` and blank space. Returns false and does not move if there is none.
  private mutating func consumeConnective(_ character: Character, named name: String) throws(QueryError) -> Bool {
    let end = cursor.offset
    cursor.skipBlanks()
    let start = cursor.offset
    guard cursor.consume(character) else {
      cursor.rewind(to: end)
      return false
    }
    guard cursor.consume(character) else {
      throw cursor.error(at: start, "unexpected `\(character)`; write `\(character)\(character)` for a logical \(name)")
    }
    cursor.skipBlanks()
    return true
  }

  private mutating func basic() throws(QueryError) -> ConditionSyntax {
    let isNegated = cursor.consume("!")
    if isNegated { cursor.skipBlanks() }
    let start = cursor.offset
    if cursor.consume("(") {
      let inner = try parenthesised(from: start)
      return isNegated ? .not(inner) : inner
    }
    if isNegated, cursor.byte == UInt8(ascii: "!") {
      throw cursor.error("repeated `!`; remove one or use parentheses")
    }
    let term = try term()
    guard let comparison = try comparisonOperator() else {
      let test = try test(term, at: start)
      return isNegated ? .not(test) : test
    }
    guard !isNegated else {
      throw cursor.error(at: start, "`!` applies to a test or to parentheses; write `!(… == …)`")
    }
    let left = try operand(term, at: start, of: "a comparison")
    cursor.skipBlanks()
    let right = try rightSide()
    try refuseSecondOperator()
    return .comparison(comparison, left, right)
  }

  private mutating func rightSide() throws(QueryError) -> OperandSyntax {
    let start = cursor.offset
    if cursor.byte == UInt8(ascii: "(") {
      throw cursor.error("parentheses cannot be compared; compare values and join conditions with `&&` and `||`")
    }
    let term = try term()
    return try operand(term, at: start, of: "a comparison")
  }

  /// Parses a condition in parentheses, after `(`.
  private mutating func parenthesised(from open: Int) throws(QueryError) -> ConditionSyntax {
    cursor.skipBlanks()
    let inner = try nested { parser throws(QueryError) in try parser.condition() }
    cursor.skipBlanks()
    guard cursor.consume(")") else {
      if cursor.isAtEnd { throw cursor.error("the `(` at byte \(open) is not closed; add `)`") }
      throw cursor.error("expected `&&`, `||` or `)` here, found \(cursor.found)")
    }
    let end = cursor.offset
    if try comparisonOperator() != nil {
      throw cursor.error(
        at: open, "parentheses cannot be compared; compare values and join conditions with `&&` and `||`")
    }
    cursor.rewind(to: end)
    return inner
  }

  /// Converts a term that is used alone as a condition.
  private func test(_ term: Term, at start: Int) throws(QueryError) -> ConditionSyntax {
    switch term {
    case .query(let query): return .exists(query)
    case .pattern(let pattern): return .pattern(pattern)
    case .literal:
      throw cursor.error(at: start, "a value alone is not a condition; compare it, as in `@.a == 1`")
    case .function(let name, _):
      throw cursor.error(
        at: start, "`\(name)` yields a value, which is not a condition; compare it, as in `\(name)(…) > 1`")
    }
  }
}

extension PathParser {
  /// Parses blank space and a comparison operator. Returns nil and does not move if there is none.
  mutating func comparisonOperator() throws(QueryError) -> ComparisonOperator? {
    let end = cursor.offset
    cursor.skipBlanks()
    if cursor.consume("=", "=") { return .equal }
    if cursor.consume("!", "=") { return .notEqual }
    if cursor.consume("<", "=") { return .lessOrEqual }
    if cursor.consume(">", "=") { return .greaterOrEqual }
    if cursor.consume("<") { return .less }
    if cursor.consume(">") { return .greater }
    if cursor.byte == UInt8(ascii: "=") {
      throw cursor.error("unexpected `=`; write `==`, or `match(value, 'pattern')` for a regular expression")
    }
    cursor.rewind(to: end)
    return nil
  }

  mutating func refuseSecondOperator() throws(QueryError) {
    let end = cursor.offset
    cursor.skipBlanks()
    let start = cursor.offset
    if try comparisonOperator() != nil {
      throw cursor.error(at: start, "comparisons cannot be chained; join two with `&&`")
    }
    cursor.rewind(to: end)
  }

  /// Converts a term that is used as one value: a `comparable`, or an argument of type `ValueType`.
  func operand(_ term: Term, at start: Int, of use: String) throws(QueryError) -> OperandSyntax {
    switch term {
    case .literal(let literal): return .literal(literal)
    case .function(_, let operand): return operand
    case .query(let query):
      guard query.isSingular else {
        let advice = "name one member or element, or use `value(…)` or `count(…)`"
        throw cursor.error(at: start, "this query may select several nodes and \(use) takes one value; \(advice)")
      }
      return .query(query)
    case .pattern(let pattern):
      let name = pattern.isWhole ? "match" : "search"
      throw cursor.error(
        at: start, "`\(name)` is a condition and \(use) takes a value; use it alone, or negated as `!\(name)(…)`")
    }
  }
}
