import FeedJSON

extension Evaluation {
  /// Runs `match` or `search`; false when either side is no string.
  mutating func matches(_ index: Int32, value: Int32, pattern: Int32, current: JSONView) -> Bool {
    let (value, pattern) = (self.value(value, current: current), self.value(pattern, current: current))
    var work = steps
    let result = withString(value) { value in
      withString(pattern) { pattern in
        work &-= (value.count &+ pattern.count) &>> 4 &+ 1
        return tables.patterns[Int(index)]._withUnsafeGuaranteedRef { compiled in
          isRepeatable
            ? compiled.matches(value, pattern: pattern, repeatableWork: &work)
            : compiled.matches(value, pattern: pattern, work: &work)
        }
      }
    }
    steps = work
    return result ?? false
  }

  /// Gives the decoded bytes of a string; nil for other values and when `body` gives nil.
  private func withString(_ value: QueryValue, _ body: (UnsafeRawBufferPointer) -> Bool?) -> Bool? {
    switch value {
    case .node(let node) where node.kind == .string: node.withStringBytes(body)
    case .literal(let literal) where literal.pointee.kind == .string: body(tables.slice(literal.pointee.bytes))
    case .nothing, .node, .literal, .integer: nil
    }
  }
}
