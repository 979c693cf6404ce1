import FeedJSON

/// One run of a program over one value: what `$` is, and how much work is left.
struct Evaluation {
  let tables: ProgramTables
  let root: JSONView
  /// Steps that may still be taken: about one a node that is visited. Below zero the run is over and its results are void.
  var steps: Int
  /// Whether the same program takes the same steps over the same value, whatever it has been run over before: regular
  /// expressions are charged for what they may have to learn instead of what they do.
  let isRepeatable: Bool

  @inline(__always)
  init(_ program: Program, root: JSONView, steps: Int, isRepeatable: Bool = false) {
    self.isRepeatable = isRepeatable
    tables = program.tables
    self.root = root
    self.steps = steps
  }

  @inline(__always)
  var isExhausted: Bool { steps < 0 }

  /// Charges the work of looking at `bytes` bytes.
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
      if index >= 0 { return node.element(at: index) }
      return node.kind == .array ? node.element(at: node.count &+ index) : nil
    case .wildcard, .slice, .filter:
      return nil
    }
  }
}
