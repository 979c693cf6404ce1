import FeedJSON

/// A singular query of RFC 9535: names and indexes only, so that it selects at most one node.
public struct SingularPath: Sendable {
  /// The source text.
  public let text: String
  private let program: Program
  private let query: Int32

  /// Parses a singular query.
  ///
  /// - Throws: if the text is not a path, or the path can select several nodes.
  public init(parsing text: String) throws(QueryError) {
    let parsed = try PathParser.query(text)
    if let place = parsed.segments.firstIndex(where: { !$0.isSingular }) {
      let advice = "use names and indexes only, as in `$.a[0]`"
      let offset = parsed.segments[place].offset
      throw QueryError(offset: offset, message: "this segment may select several nodes where one is needed; \(advice)")
    }
    var builder = ProgramBuilder()
    query = try builder.add(parsed)
    program = Program(builder)
    self.text = text
  }

  /// `$.id`, the default path of an element's identity.
  public static let id = SingularPath(member: "id")

  /// Creates the path `$.member`.
  ///
  /// - Parameter member: a name of letters, digits and `_`.
  init(member: StaticString) {
    let name = member.withUTF8Buffer { Array($0) }
    assert(name.allSatisfy { isNameFirst($0) || isDigit($0) }, "the name needs quotes")
    var builder = ProgramBuilder()
    query = builder.add(name: name)
    program = Program(builder)
    text = "$.\(member)"
  }

  /// Returns the node, if there is one. O(members visited), without allocation.
  public func resolve(_ root: JSONView) -> JSONView? {
    withExtendedLifetime(program) {
      var evaluation = Evaluation(program, root: root, steps: .max)
      return evaluation.resolve(query, current: root)
    }
  }
}
