import FeedJSON

extension Evaluation {
  /// Runs the filter that begins with test `entry` for the node `current`. False when the steps run out.
  @inline(__always)
  mutating func accepts(_ entry: Int32, current: JSONView) -> Bool {
    var next = entry
    while next >= 0, !isExhausted {
      let test = tables.tests + Int(next)
      next = check(test, current: current) ? test.pointee.onTrue : test.pointee.onFalse
    }
    return next == Test.accept
  }

  @inline(__always)
  private mutating func check(_ test: UnsafePointer<Test>, current: JSONView) -> Bool {
    switch test.pointee.check {
    case .compareNode(let comparison, let query, let literal):
      guard let node = resolve(query, current: current) else { return comparison.contains(.unrelated) }
      return !comparison.isDisjoint(with: relation(node, tables.literals + Int(literal)))
    case .exists(let query):
      return exists(query, current: current)
    case .compare(let comparison, let left, let right):
      return compare(comparison, left, right, current: current)
    case .pattern(let index, let value, let pattern):
      return matches(index, value: value, pattern: pattern, current: current)
    }
  }

  private mutating func compare(
    _ comparison: ComparisonOperator, _ left: Int32, _ right: Int32, current: JSONView
  ) -> Bool {
    let (left, right) = (value(left, current: current), value(right, current: current))
    return !comparison.isDisjoint(with: relation(left, right))
  }

  private mutating func exists(_ index: Int32, current: JSONView) -> Bool {
    if tables.queries[Int(index)].isSingular { return resolve(index, current: current) != nil }
    return withNodes(index, current: current) { evaluation, nodes in nodes.next(&evaluation) != nil }
  }

  /// Gives the nodes of a query, one by one as they are asked for.
  mutating func withNodes<Result>(
    _ index: Int32, current: JSONView, _ body: (inout Evaluation, inout NodeCursor) throws -> Result
  ) rethrows -> Result {
    let query = tables.queries[Int(index)]
    return try NodeCursor.over(query, from: query.isAbsolute ? root : current) { cursor in try body(&self, &cursor) }
  }
}
