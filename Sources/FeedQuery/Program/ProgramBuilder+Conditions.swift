extension ProgramBuilder {
  /// Adds a filter; gives its first test.
  mutating func add(_ condition: ConditionSyntax) throws(QueryError) -> Int32 {
    try add(condition, onTrue: Test.accept, onFalse: Test.reject)
  }

  /// Adds the tests of `condition` from the last to the first, each knowing where to go from it; gives the first.
  ///
  /// `&&`, `||` and `!` leave no trace but these targets: running a filter is one loop without a stack.
  private mutating func add(
    _ condition: ConditionSyntax, onTrue: Int32, onFalse: Int32
  ) throws(QueryError) -> Int32 {
    switch condition {
    case .any(let parts):
      var next = onFalse
      for part in parts.reversed() { next = try add(part, onTrue: onTrue, onFalse: next) }
      return next
    case .all(let parts):
      var next = onTrue
      for part in parts.reversed() { next = try add(part, onTrue: next, onFalse: onFalse) }
      return next
    case .not(let inner):
      return try add(inner, onTrue: onFalse, onFalse: onTrue)
    case .comparison(let comparison, let left, let right):
      let check = try compile(comparison, left, right)
      return Self.append(Test(check: check, onTrue: onTrue, onFalse: onFalse), to: &tests)
    case .exists(let query):
      let check = Test.Check.exists(query: try add(query))
      return Self.append(Test(check: check, onTrue: onTrue, onFalse: onFalse), to: &tests)
    case .pattern(let syntax):
      let check = try compile(syntax)
      return Self.append(Test(check: check, onTrue: onTrue, onFalse: onFalse), to: &tests)
    }
  }

  private mutating func compile(
    _ comparison: ComparisonOperator, _ left: OperandSyntax, _ right: OperandSyntax
  ) throws(QueryError) -> Test.Check {
    switch (left, right) {
    case (.query(let query), .literal(let literal)):
      return .compareNode(comparison, query: try add(query), literal: add(literal))
    case (.literal(let literal), .query(let query)):
      return .compareNode(comparison.mirrored, query: try add(query), literal: add(literal))
    default:
      return .compare(comparison, try add(left), try add(right))
    }
  }

  private mutating func compile(_ syntax: PatternSyntax) throws(QueryError) -> Test.Check {
    let pattern: Pattern
    if case .literal(.string(let text)) = syntax.pattern {
      pattern = try Pattern(isWhole: syntax.isWhole, constant: text, at: syntax.patternOffset)
    } else {
      pattern = Pattern(isWhole: syntax.isWhole)
    }
    let index = Self.append(pattern, to: &patterns)
    return .pattern(index, value: try add(syntax.value), pattern: try add(syntax.pattern))
  }
}

extension ComparisonOperator {
  /// The operator that says the same with its sides exchanged.
  var mirrored: ComparisonOperator {
    var mirrored = subtracting([.less, .greater])
    if contains(.less) { mirrored.insert(.greater) }
    if contains(.greater) { mirrored.insert(.less) }
    return mirrored
  }
}
