import FeedJSON

/// A JSONPath query (RFC 9535). Of members with the same name it uses the last one.
///
///     let path = try JSONPath(parsing: "$[?@.priority >= 8].title")
///     path.evaluate(root) { node in … }
public struct JSONPath: Sendable {
  public let text: String
  /// Whether the path is a singular query (RFC 9535, section 2.3.5.1): it selects at most one node of any value.
  public let isSingular: Bool
  /// The memory of the compiled path in bytes, about. Depends only on the text.
  public let size: Int
  /// Whether the path compiles regular expressions that are read from the value. A step then takes ten times as long.
  public let compilesPatterns: Bool
  let program: Program
  let query: Int32
  let syntax: QuerySyntax

  /// Parses a path.
  /// - Parameter largest: the most bytes of memory that the compiled path may take, about.
  /// - Throws: if the text is not well-formed and valid by RFC 9535, or exceeds `QueryLimits` or `largest`.
  public init(parsing text: String, atMost largest: Int = .max) throws(QueryError) {
    let parsed = try PathParser.query(text)
    var builder = ProgramBuilder(atMost: largest)
    query = try builder.add(parsed)
    size = builder.size
    if size > largest { throw .tooLarge(atMost: largest) }
    compilesPatterns = builder.patterns.contains { !$0.isConstant }
    program = Program(builder)
    syntax = parsed
    isSingular = parsed.isSingular
    self.text = text
  }

  /// Calls `emit` with the nodes in the order of the RFC. A node that is selected several times occurs several times.
  ///
  /// The work is not bounded by the size of the value (`$..*..*..*`). Use `evaluate(_:steps:pace:_:)` for paths of clients.
  public func evaluate(_ root: JSONView, _ emit: (JSONView) throws -> Void) rethrows {
    var steps = Int.max
    try evaluate(root, steps: &steps, emit)
  }

  /// Like `evaluate(_:_:)`, with at most `steps` steps, about one for each node visited.
  ///
  /// `steps` is decremented by the steps taken. If it is below zero afterwards, the steps ran out and nodes are missing.
  public func evaluate(
    _ root: JSONView, steps: inout Int, pace: EvaluationPace? = nil, _ emit: (JSONView) throws -> Void
  ) rethrows {
    var evaluation = Evaluation(program, root: root, steps: steps, pace: pace)
    defer { withExtendedLifetime(pace) { steps = evaluation.allSteps } }
    try withExtendedLifetime(program) {
      try evaluation.withNodes(query, current: root) { evaluation, nodes in
        while let node = nodes.next(&evaluation) { try emit(node) }
      }
    }
  }
}

/// The reason why the text of a path, a filter or a regular expression was refused.
public struct QueryError: Error, Equatable, Sendable {
  /// The position of the error in the text, in bytes of UTF-8.
  public let offset: Int
  /// The reason and the next step.
  public let message: String
  /// Whether the text is valid, but would take more memory than is allowed.
  public let isTooLarge: Bool

  public init(offset: Int, message: String) { self.init(offset: offset, message: message, isTooLarge: false) }

  private init(offset: Int, message: String, isTooLarge: Bool) {
    (self.offset, self.message, self.isTooLarge) = (offset, message, isTooLarge)
  }

  static func tooLarge(atMost bytes: Int) -> QueryError {
    QueryError(offset: 0, message: "it would take more than \(grouped(bytes)) bytes when compiled", isTooLarge: true)
  }
}

extension QueryError: CustomStringConvertible {
  public var description: String { "at byte \(offset): \(message)" }
}

/// The limits of queries. All are checked when the text is parsed.
public enum QueryLimits {
  /// The maximum length of the text of a query, a filter or a regular expression, in bytes.
  public static let textLength = 1 << 20
  /// The deepest nesting of parentheses, filters and function calls.
  public static let nesting = 64
  /// The deepest nesting of groups of a regular expression.
  public static let regexpNesting = 100
  /// The maximum number of instructions of a regular expression, with its repetitions unrolled.
  public static let regexpInstructions = 4_096
  /// The maximum work to compute the character classes of a regular expression.
  static let regexpClassWork = 500_000
  /// The maximum number of ranges that are put together to the character classes of the regular expressions of a query or a filter. A
  /// category such as `L` has hundreds. So many take about two milliseconds.
  public static let regexpRanges = 100_000
  /// The maximum size of the cached states of a regular expression in bytes, for each of its two automata.
  static let regexpCache = 1 << 20
  /// The maximum size of the cached states of all regular expressions of the process in bytes, besides those that match now.
  static let regexpCaches = 32 << 20
  /// The largest magnitude of an index or a slice bound: the I-JSON range of exact integers (RFC 9535, section 2.1).
  public static let largestInteger = 9_007_199_254_740_991
}

/// A condition on an element: a `logical-expr` of RFC 9535, as inside `[?…]`. Both `@` and `$` are the element.
///
///     let filter = try Filter(parsing: "@.priority >= 8")
///     filter.accepts(element)
public struct Filter: Sendable {
  public let text: String
  private let program: Program
  /// The index of the first test.
  private let entry: Int32
  /// The number of tests. An evaluation runs each test at most once for each node that the filter is applied to.
  public let testCount: Int
  /// Whether each test looks at one node, and there are few tests. Such a filter takes few steps over most elements.
  public let isShort: Bool
  /// The memory of the compiled filter in bytes, without what its regular expressions cache. Depends only on the text.
  public let size: Int

  /// The bytes that the compiled filter counts for each byte of a long text that takes less: the text takes time to parse.
  private static let textFactor = 8

  /// Parses a filter.
  /// - Parameter ranges: the most ranges of the character classes in its regular expressions. Those of patterns that are read from
  ///   elements are always bounded.
  /// - Throws: if the text is not well-formed and valid by RFC 9535, or exceeds `QueryLimits` or `largest`.
  public init(
    parsing text: String, atMost largest: Int = .max, ranges: Int = QueryLimits.regexpRanges
  ) throws(QueryError) {
    let least = text.utf8.count * Self.textFactor
    if least > largest { throw .tooLarge(atMost: largest) }
    let parsed = try PathParser.condition(text)
    var builder = ProgramBuilder(atMost: largest, ranges: ranges)
    entry = try builder.add(parsed)
    size = max(builder.size, least)
    if size > largest { throw .tooLarge(atMost: largest) }
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
  public func accepts(_ element: JSONView, steps: inout Int, pace: EvaluationPace? = nil) -> Bool {
    withExtendedLifetime(program) {
      var evaluation = Evaluation(program, root: element, steps: steps, isRepeatable: true, pace: pace)
      let accepted = evaluation.accepts(entry, current: element)
      withExtendedLifetime(pace) { steps = evaluation.allSteps }
      return accepted && steps >= 0
    }
  }

  /// An upper bound for the steps of an evaluation over an element of `bytes` bytes. It is larger than usual evaluations
  /// take, because it supposes the worst element. O(program).
  public func mostSteps(over bytes: Int) -> Int {
    withExtendedLifetime(program) { StepEstimate(program.tables, bytes: bytes).steps(ofFilter: entry) }
  }
}

/// A singular query of RFC 9535: names and indexes only, so that it selects at most one node.
public struct SingularPath: Sendable {
  public let text: String
  private let program: Program
  private let query: Int32
  /// The name if the path is a single one, as most are; otherwise nil.
  private let member: [UInt8]?

  /// Parses a singular query.
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
    member = if parsed.segments.count == 1, case .name(let name) = parsed.segments[0].selectors[0] { name } else { nil }
    self.text = text
  }

  /// `$.id`, the default path of an element's identity.
  public static let id: SingularPath = {
    guard let path = try? SingularPath(parsing: "$.id") else { preconditionFailure("the path is singular") }
    return path
  }()

  /// Returns the node, if there is one. O(members visited), without allocation.
  public func resolve(_ root: JSONView) -> JSONView? {
    if let member { return member.withUnsafeBytes { root.member(utf8: $0) } }
    var steps = Int.max
    return resolve(root, steps: &steps)
  }

  /// Like `resolve(_:)`, and decrements `steps` by the steps taken, about one for four members visited. It does not stop if they run
  /// out.
  public func resolve(_ root: JSONView, steps: inout Int) -> JSONView? {
    if let member {
      steps &-= Evaluation.steps(for: member.count, in: root)
      return resolve(root)
    }
    return withExtendedLifetime(program) {
      var evaluation = Evaluation(program, root: root, steps: .max)
      let node = evaluation.resolve(query, current: root)
      steps &-= .max &- evaluation.steps
      return node
    }
  }
}

/// A path that is evaluated element by element over an array, which does not have to exist as one text.
///
/// The nodes of the path are those that `evaluate` emits for the elements at `selection(count:)`, in that order.
public struct ElementwisePath: Sendable {
  private let program: Program
  /// The segments after the first one, with the element as root.
  private let rest: Int32
  private let first: First

  private enum First {
    /// Nothing: a name selects nothing from an array.
    case none
    case all
    case index(Int)
    case slice(SliceBounds)
    case filter(Int32)
  }

  /// Returns nil if the path cannot be evaluated element by element.
  init?(_ syntax: QuerySyntax) {
    guard let segment = syntax.segments.first, !segment.isDescendant, segment.selectors.count == 1,
      !syntax.filtersUseRoot
    else { return nil }
    var builder = ProgramBuilder()
    let tail = QuerySyntax(isAbsolute: false, segments: Array(syntax.segments.dropFirst()))
    guard let rest = try? builder.add(tail) else { return nil }
    switch segment.selectors[0] {
    case .name: first = .none
    case .wildcard: first = .all
    case .index(let index): first = .index(index)
    case .slice(let bounds): first = .slice(bounds)
    case .filter(let condition):
      guard let entry = try? builder.add(condition) else { return nil }
      first = .filter(entry)
    }
    self.rest = rest
    program = Program(builder)
  }

  /// The indexes of the elements to evaluate, of an array of `count` elements.
  public func selection(count: Int) -> ElementSelection {
    switch first {
    case .none: return ElementSelection(first: 0, step: 1, count: 0)
    case .all, .filter: return ElementSelection(first: 0, step: 1, count: count)
    case .slice(let bounds):
      let rows = bounds.rows(count: count)
      return ElementSelection(first: rows.first, step: rows.step, count: rows.count)
    case .index(let index):
      let row = index >= 0 ? index : count + index
      return ElementSelection(first: row, step: 1, count: row >= 0 && row < count ? 1 : 0)
    }
  }

  /// Calls `emit` with the nodes of one element of the selection, in order.
  public func evaluate(_ element: JSONView, _ emit: (JSONView) throws -> Void) rethrows {
    var steps = Int.max
    try evaluate(element, steps: &steps, emit)
  }

  /// Like `evaluate(_:_:)`, with at most `steps` steps; see `JSONPath.evaluate(_:steps:pace:_:)`.
  public func evaluate(
    _ element: JSONView, steps: inout Int, pace: EvaluationPace? = nil, _ emit: (JSONView) throws -> Void
  ) rethrows {
    var evaluation = Evaluation(program, root: element, steps: steps, pace: pace)
    defer { withExtendedLifetime(pace) { steps = evaluation.allSteps } }
    try withExtendedLifetime(program) {
      if case .filter(let entry) = first { guard evaluation.accepts(entry, current: element) else { return } }
      try evaluation.withNodes(rest, current: element) { evaluation, nodes in
        while let node = nodes.next(&evaluation) { try emit(node) }
      }
    }
  }
}

extension JSONPath {
  /// Returns the path in a form that is evaluated element by element; nil if it needs the whole array.
  ///
  /// The first segment must be a child segment with one selector, and no filter can refer to `$`.
  public func elementwise() -> ElementwisePath? { ElementwisePath(syntax) }
}

/// Indexes of an array in equal steps, ascending or descending.
public struct ElementSelection: Sequence, IteratorProtocol, Sendable {
  private var row: Int
  private let step: Int
  /// The number of indexes left.
  public private(set) var count: Int

  init(first: Int, step: Int, count: Int) {
    row = first
    (self.step, self.count) = (step, count)
  }

  public var isDescending: Bool { step < 0 && count > 1 }

  /// The indexes that are left, in ascending order. O(1).
  public var ascending: ElementSelection {
    isDescending ? ElementSelection(first: row + step * (count - 1), step: -step, count: count) : self
  }

  public mutating func next() -> Int? {
    guard count > 0 else { return nil }
    count -= 1
    let result = row
    // After the last index the sum can overflow, but it is not used.
    row = result &+ step
    return result
  }
}
