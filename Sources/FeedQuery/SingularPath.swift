import FeedJSON

/// A singular query of RFC 9535: names and indexes only, so at most one node.
public struct SingularPath: Sendable {
  /// The text it was made of.
  public let text: String
  private let program: Program
  private let query: Int32

  /// Refuses what `JSONPath` refuses, and paths that may select several nodes.
  public init(parsing text: String) throws(QueryError) {
    let parsed = try PathParser.query(text)
    if let place = parsed.segments.firstIndex(where: { !$0.isSingular }) {
      let advice = "keep to names and indexes, as in `$.a[0]`"
      let offset = parsed.segments[place].offset
      throw QueryError(offset: offset, message: "this segment may select several nodes where one is needed: \(advice)")
    }
    var builder = ProgramBuilder()
    query = try builder.add(parsed)
    program = Program(builder)
    self.text = text
  }

  /// `$.id`, where an element's identity is unless its feed says otherwise.
  public static let id = SingularPath(member: "id")

  /// `$.name` of one member.
  ///
  /// - Parameter member: a name of letters, digits and `_`.
  init(member: StaticString) {
    let name = member.withUTF8Buffer { Array($0) }
    var builder = ProgramBuilder()
    query = builder.add(name: name)
    program = Program(builder)
    text = "$.\(member)"
  }

  /// The node, if there is one. O(members looked at); allocates nothing.
  public func resolve(_ root: JSONView) -> JSONView? {
    withExtendedLifetime(program) {
      var evaluation = Evaluation(program, root: root, steps: .max)
      return evaluation.resolve(query, current: root)
    }
  }
}
