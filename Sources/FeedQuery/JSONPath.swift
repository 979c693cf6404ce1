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

/// Why the text of a path, a filter or a regular expression was refused.
public struct QueryError: Error, Equatable, Sendable {
  /// Where the trouble is: bytes of UTF-8 from the start of the text, from 0 to its length.
  public let offset: Int
  /// What is wrong there and what to change, one sentence.
  public let message: String

  public init(offset: Int, message: String) {
    self.offset = offset
    self.message = message
  }
}

extension QueryError: CustomStringConvertible {
  public var description: String { "at byte \(offset): \(message)" }
}

/// What a query may not exceed, all of it checked while its text is read.
public enum QueryLimits {
  /// Bytes of the text of a query, a filter or a regular expression.
  public static let textLength = 1 << 20
  /// Parentheses, filters and function calls inside one another.
  public static let nesting = 64
  /// Groups of a regular expression inside one another.
  public static let regexpNesting = 100
  /// Instructions of a regular expression after its repetitions have been written out.
  public static let regexpInstructions = 4_096
  /// Work spent on telling the character classes of a regular expression apart.
  static let regexpClassWork = 500_000
  /// Bytes of states that a regular expression keeps, for each of its two ways of matching.
  static let regexpCache = 1 << 20
  /// The largest magnitude of an index or a slice bound: the I-JSON range of exact integers (RFC 9535, section 2.1).
  public static let largestInteger = 9_007_199_254_740_991
}
