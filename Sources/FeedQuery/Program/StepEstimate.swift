/// An upper bound for the steps that a filter takes over one element, from its program and the size of the element.
///
/// The bound follows how often nodes can be visited. A query that begins with `@`, in a filter over the children of one node,
/// visits each descendant once in total; one that begins with `$` starts again for each node; a descendant segment over
/// nodes that contain each other visits some of them again.
struct StepEstimate {
  private let tables: ProgramTables
  private let bytes: Double

  /// Nodes that filters are applied to, or that a query has reached.
  private struct Nodes {
    var count: Double
    /// The number of nodes in the values of all of them.
    var size: Double

    /// What several selectors select together.
    mutating func add(_ other: Nodes) {
      count += other.count
      size += other.size
    }
  }

  init(_ tables: ProgramTables, bytes: Int) {
    self.tables = tables
    self.bytes = Double(bytes)
  }

  /// A node takes at least two bytes.
  private var root: Nodes { Nodes(count: 1, size: bytes / 2 + 1) }

  /// The steps of the filter that begins with test `entry`, over the whole element.
  func steps(ofFilter entry: Int32) -> Int { Int(min(steps(ofFilter: entry, over: root), 1e15)) }

  private func steps(ofFilter entry: Int32, over nodes: Nodes) -> Double {
    var steps = nodes.count
    var seen: Set<Int32> = []
    var waiting = [entry]
    while let next = waiting.popLast() {
      guard next >= 0, seen.insert(next).inserted else { continue }
      let test = tables.tests[Int(next)]
      steps += self.steps(of: test.check, over: nodes)
      waiting += [test.onTrue, test.onFalse]
    }
    return steps
  }

  private func steps(of check: Test.Check, over nodes: Nodes) -> Double {
    switch check {
    case .compareNode(_, let query, let literal):
      steps(ofQuery: query, over: nodes) + nodes.size + steps(of: literal, nodes)
    case .exists(let query): steps(ofQuery: query, over: nodes)
    case .compare(_, let left, let right):
      // The values that are compared can be large: that of `@` once for each node, that of `$` each time.
      steps(ofOperand: left, over: nodes) + steps(ofOperand: right, over: nodes) + nodes.size + nodes.count * bytes / 8
    case .pattern(let pattern, let value, let text):
      steps(ofOperand: value, over: nodes) + steps(ofOperand: text, over: nodes) + nodes.count
        + tables.patterns[Int(pattern)]._withUnsafeGuaranteedRef { pattern in
          pattern.mostWork(
            nodes.count, over: valueBytes(of: value, over: nodes), patternBytes: valueBytes(of: text, over: nodes))
        }
    }
  }

  /// The steps of reading a literal for each node.
  private func steps(of literal: Int32, _ nodes: Nodes) -> Double {
    nodes.count * Double(tables.literals[Int(literal)].bytes.count) / 16
  }

  /// The bytes of the strings that an operand yields for all nodes together.
  private func valueBytes(of operand: Int32, over nodes: Nodes) -> Double {
    switch tables.operands[Int(operand)] {
    case .literal(let literal): nodes.count * Double(tables.literals[Int(literal)].bytes.count)
    case .length, .count: 0
    case .query(let query), .value(let query):
      // All strings together are no longer than the element for `@`, as far as the nodes are different ones.
      tables.queries[Int(query)].isAbsolute ? nodes.count * bytes : max(1, nodes.size / root.size) * bytes
    }
  }

  private func steps(ofOperand operand: Int32, over nodes: Nodes) -> Double {
    switch tables.operands[Int(operand)] {
    case .literal(let literal): steps(of: literal, nodes)
    case .query(let query), .count(let query), .value(let query): steps(ofQuery: query, over: nodes)
    case .length(let inner): steps(ofOperand: inner, over: nodes) + nodes.size + nodes.count * bytes / 16
    }
  }

  private func steps(ofQuery index: Int32, over nodes: Nodes) -> Double {
    let query = tables.queries[Int(index)]
    if query.isAbsolute { return nodes.count * steps(of: query, from: root) }
    return steps(of: query, from: nodes)
  }

  private func steps(of query: Query, from start: Nodes) -> Double {
    var (nodes, steps) = (start, start.count)
    for index in 0..<query.segmentCount {
      let segment = tables.segments[Int(query.firstSegment + index)]
      var visited = nodes
      if segment.isDescendant {
        // Each node is visited from all that contain it: at most once for each of the nodes, and each level.
        steps += nodes.size
        visited = Nodes(count: nodes.size, size: nodes.size * root.size)
      }
      var selected = Nodes(count: 0, size: 0)
      for selector in 0..<segment.selectorCount {
        selected.add(select(tables.selectors[Int(segment.firstSelector + selector)], of: visited, nodes, &steps))
      }
      nodes = selected
    }
    return steps
  }

  /// - Parameter start: the nodes before the segment. The children of the visited nodes are nodes in their values.
  private func select(_ selector: Selector, of visited: Nodes, _ start: Nodes, _ steps: inout Double) -> Nodes {
    switch selector {
    case .name(let name):
      // Finding a member looks at all of them. Those that are as long as the name are compared with it.
      steps += visited.count + start.size * Double(1 + name.count >> 6)
      return visited
    case .index:
      // Finding an element looks at those before it.
      steps += visited.count + start.size
      return visited
    case .wildcard, .slice:
      steps += 2 * start.size
      return Nodes(count: start.size, size: visited.size)
    case .filter(let entry):
      steps += 2 * start.size
      let children = Nodes(count: start.size, size: visited.size)
      steps += self.steps(ofFilter: entry, over: children)
      return children
    }
  }
}
