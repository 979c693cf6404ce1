import FeedJSON

/// One run of a program over one value: the root and the work that is left.
struct Evaluation {
  let tables: ProgramTables
  let root: JSONView
  /// The steps left, about one for each node visited. Below zero the run has ended and its results are void.
  var steps: Int
  /// Whether the same program always takes the same steps over the same value: a regular expression is charged for the most
  /// work that it can have, independent of the states that it has built before.
  let isRepeatable: Bool
  /// The element that an index selector found last, after a long walk.
  private var found: FoundElement?

  private struct FoundElement {
    let selector: UnsafePointer<Selector>
    /// The array, by the offset of its text.
    let array: Int
    let element: JSONView
  }

  /// Walks to indexes below this are repeated rather than remembered.
  private static let shortWalk = 64

  @inline(__always)
  init(_ program: Program, root: JSONView, steps: Int, isRepeatable: Bool = false) {
    self.isRepeatable = isRepeatable
    tables = program.tables
    self.root = root
    self.steps = steps
  }

  @inline(__always)
  var isExhausted: Bool { steps < 0 }

  /// Charges the work of reading `bytes` bytes.
  @inline(__always)
  mutating func charge(bytes: Int) {
    steps &-= bytes &>> 4
  }

  /// The node of a singular query, if there is one.
  @inline(__always)
  mutating func resolve(_ index: Int32, current: JSONView) -> JSONView? {
    let query = tables.queries + Int(index)
    var node = query.pointee.isAbsolute ? root : current
    var selector = tables.selectors + Int(query.pointee.firstSelector)
    for _ in 0..<query.pointee.segmentCount {
      guard let child = step(selector, from: node) else { return nil }
      node = child
      selector += 1
    }
    return node
  }

  /// The child that a name or an index selects.
  @inline(__always)
  mutating func step(_ selector: UnsafePointer<Selector>, from node: JSONView) -> JSONView? {
    switch selector.pointee {
    case .name(let name):
      steps &-= node.count &>> 2
      return node.member(utf8: tables.slice(name))
    case .index(let index):
      let position = index >= 0 ? index : node.count &+ index
      return node.hasOnlyScalars ? node.element(at: position) : walk(selector, node, to: position)
    case .wildcard, .slice, .filter:
      return nil
    }
  }

  /// Walks to an element of an array that has nested elements, and charges the walk.
  ///
  /// The element is remembered for its selector: a filter that compares every element with `$[59999]` walks once.
  @inline(never)
  private mutating func walk(_ selector: UnsafePointer<Selector>, _ array: JSONView, to position: Int) -> JSONView? {
    guard position >= 0, position < array.count, array.kind == .array else { return nil }
    if let found, found.selector == selector, found.array == array.byteOffset { return found.element }
    steps &-= position &>> 2
    guard !isExhausted, let element = array.element(at: position) else { return nil }
    if position >= Self.shortWalk {
      found = FoundElement(selector: selector, array: array.byteOffset, element: element)
    }
    return element
  }
}
