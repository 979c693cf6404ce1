import FeedJSON

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
    /// All elements that a filter accepts.
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
    self.step = step
    self.count = count
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
