import FeedJSON

/// A condition on an element: a `logical-expr` of RFC 9535, as inside `[?…]`. Both `@` and `$` are the element.
///
///     let filter = try Filter(parsing: "@.priority >= 8")
///     filter.accepts(element)
public struct Filter: Sendable {
  /// The source text.
  public let text: String
  private let program: Program
  /// The index of the first test.
  private let entry: Int32
  /// The number of tests. An evaluation runs each test at most once for each node that the filter is applied to.
  public let testCount: Int
  /// Whether each test looks at one node, and there are few tests. Such a filter takes few steps over most elements.
  public let isShort: Bool

  /// Parses a filter.
  ///
  /// - Throws: if the text is not well-formed and valid by RFC 9535, or exceeds `QueryLimits`.
  public init(parsing text: String) throws(QueryError) {
    let parsed = try PathParser.condition(text)
    var builder = ProgramBuilder()
    entry = try builder.add(parsed)
    isShort = builder.isShort
    testCount = builder.tests.count
    program = Program(builder)
    self.text = text
  }

  /// Whether the filter accepts the element. Comparisons of singular queries and literals allocate nothing.
  ///
  /// The work is not bounded by the size of the element (`@..*..*..*`). Use `accepts(_:steps:)` for filters of clients.
  public func accepts(_ element: JSONView) -> Bool {
    var steps = Int.max
    return accepts(element, steps: &steps)
  }

  /// Like `accepts(_:)`, with at most `steps` steps, about one for each node visited.
  ///
  /// `steps` is decremented by the steps taken. If it is below zero afterwards, the steps ran out and the result is invalid.
  /// The same element always takes the same steps.
  ///
  /// - Parameter pace: lets the evaluation stop now and then; nil if it does not.
  public func accepts(_ element: JSONView, steps: inout Int, pace: EvaluationPace? = nil) -> Bool {
    withExtendedLifetime(program) {
      var evaluation = Evaluation(program, root: element, steps: steps, isRepeatable: true, pace: pace)
      let accepted = evaluation.accepts(entry, current: element)
      withExtendedLifetime(pace) { steps = evaluation.allSteps }
      return accepted && steps >= 0
    }
  }
}
