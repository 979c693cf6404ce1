import FeedJSON

/// A path of RFC 9535: the nodes that it selects from a value.
///
/// Of members with one name, paths see the last.
public struct JSONPath: Sendable {
  /// The text it was made of.
  public let text: String
  /// Whether it selects at most one node whatever the value (RFC 9535, section 2.3.5.1).
  public let isSingular: Bool
  let program: Program
  /// Index of the query in the program.
  let query: Int32
  let syntax: QuerySyntax

  /// Refuses what RFC 9535 does not allow, function calls that are not well typed included, and what exceeds `QueryLimits`.
  public init(parsing text: String) throws(QueryError) {
    let parsed = try PathParser.query(text)
    var builder = ProgramBuilder()
    query = try builder.add(parsed)
    program = Program(builder)
    syntax = parsed
    isSingular = parsed.isSingular
    self.text = text
  }

  /// Gives `emit` the nodes in the order of the RFC, a node as often as it is selected.
  ///
  /// The work can exceed any bound that the size of the value suggests (`$..*..*..*`): pass `steps` where the path is a stranger's.
  public func evaluate(_ root: JSONView, _ emit: (JSONView) throws -> Void) rethrows {
    var steps = Int.max
    try evaluate(root, steps: &steps, emit)
  }

  /// As `evaluate(_:_:)`, within a number of steps: about one for a node visited.
  ///
  /// `steps` is what is left afterwards. Below zero it ran out, the evaluation stopped there, and the nodes given are not all.
  public func evaluate(_ root: JSONView, steps: inout Int, _ emit: (JSONView) throws -> Void) rethrows {
    var evaluation = Evaluation(program, root: root, steps: steps)
    defer { steps = evaluation.steps }
    try withExtendedLifetime(program) {
      try evaluation.withNodes(query, current: root) { evaluation, nodes in
        while let node = nodes.next(&evaluation) { try emit(node) }
      }
    }
  }
}
