import FeedJSON

/// A condition on an element: a `logical-expr` of RFC 9535, what stands inside `[?…]`. `@` and `$` are both the element.
public struct Filter: Sendable {
  /// The text it was made of.
  public let text: String
  private let program: Program
  /// The first test of the filter.
  private let entry: Int32

  /// Refuses what RFC 9535 does not allow, function calls that are not well typed included, and what exceeds `QueryLimits`.
  public init(parsing text: String) throws(QueryError) {
    let parsed = try PathParser.condition(text)
    var builder = ProgramBuilder()
    entry = try builder.add(parsed)
    program = Program(builder)
    self.text = text
  }

  /// Whether the filter accepts the element. Comparisons of singular queries and literals allocate nothing.
  ///
  /// The work can exceed any bound that the element's size suggests (`@..*..*..*`): pass `steps` where the filter is a stranger's.
  public func accepts(_ element: JSONView) -> Bool {
    var steps = Int.max
    return accepts(element, steps: &steps)
  }

  /// As `accepts(_:)`, within a number of steps: about one for a node visited.
  ///
  /// `steps` is what is left afterwards. Below zero it ran out, and the result is false and means nothing. The same element
  /// always takes the same steps.
  public func accepts(_ element: JSONView, steps: inout Int) -> Bool {
    withExtendedLifetime(program) {
      var evaluation = Evaluation(program, root: element, steps: steps, isRepeatable: true)
      let accepted = evaluation.accepts(entry, current: element)
      steps = evaluation.steps
      return accepted && !evaluation.isExhausted
    }
  }
}
