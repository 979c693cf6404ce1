import FeedJSON

/// Compiles syntax to the tables of a program.
struct ProgramBuilder {
  private(set) var bytes: [UInt8] = []
  private(set) var literals: [Literal] = []
  private(set) var selectors: [Selector] = []
  private(set) var segments: [Segment] = []
  private(set) var queries: [Query] = []
  private(set) var operands: [Operand] = []
  private(set) var tests: [Test] = []
  private(set) var patterns: [Pattern] = []
  private var patternSize = 0
  /// The ranges of the character classes of all patterns.
  private var patternRanges = 0
  /// The largest ``size``. A larger program is refused before it is complete.
  private let largest: Int
  /// The largest ``patternRanges``.
  private let mostRanges: Int

  init(atMost largest: Int = .max, ranges: Int = QueryLimits.regexpRanges) {
    (self.largest, mostRanges) = (largest, ranges)
  }

  /// The memory of the program in bytes. Depends only on the syntax.
  var size: Int {
    var size: Int = bytes.count + patternSize
    size += 24 * tests.count
    size += 32 * literals.count
    size += 56 * selectors.count
    size += 12 * segments.count
    size += 16 * queries.count
    size += 8 * operands.count
    return size
  }

  /// Whether there are at most 16 tests, and each compares the node of a singular query with a literal, or finds whether there
  /// is one.
  var isShort: Bool {
    guard tests.count <= 16 else { return false }
    return queries.allSatisfy(\.isSingular)
      && tests.allSatisfy { test in
        switch test.check {
        case .compareNode, .exists: true
        case .compare, .pattern: false
        }
      }
  }

  mutating func add(_ syntax: QuerySyntax) throws(QueryError) -> Int32 {
    // Nested filters append selectors of their own. So the selectors of this query are compiled first and appended together.
    var made: [Selector] = []
    for segment in syntax.segments { for selector in segment.selectors { made.append(try compile(selector)) } }
    let query = Query(
      isAbsolute: syntax.isAbsolute, isSingular: syntax.isSingular, firstSegment: Int32(segments.count),
      segmentCount: Int32(syntax.segments.count), firstSelector: Int32(selectors.count))
    var firstSelector = query.firstSelector
    for segment in syntax.segments {
      let count = Int32(segment.selectors.count)
      segments.append(
        Segment(
          firstSelector: firstSelector, selectorCount: count, isDescendant: segment.isDescendant,
          isSingular: segment.isSingular))
      firstSelector += count
    }
    selectors.append(contentsOf: made)
    return Self.append(query, to: &queries)
  }

  private mutating func compile(_ syntax: SelectorSyntax) throws(QueryError) -> Selector {
    switch syntax {
    case .name(let name): .name(put(name))
    case .wildcard: .wildcard
    case .index(let index): .index(index)
    case .slice(let bounds): .slice(bounds)
    case .filter(let condition): .filter(try add(condition))
    }
  }

  private mutating func add(_ syntax: OperandSyntax) throws(QueryError) -> Int32 {
    let operand: Operand
    switch syntax {
    case .literal(let literal): operand = .literal(add(literal))
    case .query(let query): operand = .query(try add(query))
    case .length(let inner): operand = .length(try add(inner))
    case .count(let query): operand = .count(try add(query))
    case .value(let query): operand = .value(try add(query))
    }
    return Self.append(operand, to: &operands)
  }

  private mutating func add(_ syntax: LiteralSyntax) -> Int32 {
    let literal: Literal
    switch syntax {
    case .null: literal = Literal(kind: .null, bytes: put([]))
    case .false: literal = Literal(kind: .false, bytes: put([]))
    case .true: literal = Literal(kind: .true, bytes: put([]))
    case .string(let value): literal = Literal(kind: .string, bytes: put(value))
    case .number(let text): literal = Literal(kind: .number, bytes: put(text), integer: Self.integer(text))
    }
    return Self.append(literal, to: &literals)
  }

  private static func integer(_ text: [UInt8]) -> Int? { text.withUnsafeBytes { JSONNumber($0).int } }

  private mutating func put(_ value: [UInt8]) -> ByteRange {
    let range = ByteRange(offset: UInt32(bytes.count), count: UInt32(value.count))
    bytes.append(contentsOf: value)
    return range
  }

  private static func append<Entry>(_ entry: Entry, to table: inout [Entry]) -> Int32 {
    table.append(entry)
    return Int32(table.count - 1)
  }
}

extension ProgramBuilder {
  /// Adds a filter. Returns the index of its first test.
  mutating func add(_ condition: ConditionSyntax) throws(QueryError) -> Int32 {
    try add(condition, onTrue: Test.accept, onFalse: Test.reject)
  }

  /// Adds the tests of `condition` from the last to the first, with their targets. Returns the index of the first one.
  ///
  /// `&&`, `||` and `!` are compiled to targets alone, so a filter runs in one loop without a stack.
  private mutating func add(_ condition: ConditionSyntax, onTrue: Int32, onFalse: Int32) throws(QueryError) -> Int32 {
    if size > largest { throw .tooLarge(atMost: largest) }
    let check: Test.Check
    switch condition {
    case .any(let parts):
      var next = onFalse
      for part in parts.reversed() { next = try add(part, onTrue: onTrue, onFalse: next) }
      return next
    case .all(let parts):
      var next = onTrue
      for part in parts.reversed() { next = try add(part, onTrue: next, onFalse: onFalse) }
      return next
    case .not(let inner): return try add(inner, onTrue: onFalse, onFalse: onTrue)
    case .comparison(let comparison, let left, let right): check = try compile(comparison, left, right)
    case .exists(let query): check = .exists(query: try add(query))
    case .pattern(let syntax): check = try compile(syntax)
    }
    return Self.append(Test(check: check, onTrue: onTrue, onFalse: onFalse), to: &tests)
  }

  private mutating func compile(
    _ comparison: ComparisonOperator, _ left: OperandSyntax, _ right: OperandSyntax
  ) throws(QueryError) -> Test.Check {
    switch (left, right) {
    case (.query(let query), .literal(let literal)):
      return .compareNode(comparison, query: try add(query), literal: add(literal))
    case (.literal(let literal), .query(let query)):
      return .compareNode(comparison.mirrored, query: try add(query), literal: add(literal))
    default: return .compare(comparison, try add(left), try add(right))
    }
  }

  private mutating func compile(_ syntax: PatternSyntax) throws(QueryError) -> Test.Check {
    let pattern: Pattern
    if case .literal(.string(let text)) = syntax.pattern {
      pattern = try Pattern(isWhole: syntax.isWhole, constant: text, at: syntax.patternOffset, ranges: mostRanges)
    } else {
      pattern = Pattern(isWhole: syntax.isWhole)
    }
    patternSize += pattern.size
    patternRanges += pattern.ranges
    guard patternRanges <= mostRanges else {
      let message = "the regular expressions have too many different character classes; use fewer or smaller ones"
      throw QueryError(offset: syntax.patternOffset, message: message)
    }
    let index = Self.append(pattern, to: &patterns)
    return .pattern(index, value: try add(syntax.value), pattern: try add(syntax.pattern))
  }
}

extension ComparisonOperator {
  /// The operator with the same meaning when its sides are exchanged.
  var mirrored: ComparisonOperator {
    var mirrored = subtracting([.less, .greater])
    if contains(.less) { mirrored.insert(.greater) }
    if contains(.greater) { mirrored.insert(.less) }
    return mirrored
  }
}

extension ProgramBuilder {
  /// Checks in debug builds that each range and index of an entry is in its table. O(entries).
  func checkInvariants() {
    assert(
      segments.allSatisfy { $0.firstSelector >= 0 && Int($0.firstSelector) + Int($0.selectorCount) <= selectors.count },
      "a segment has selectors outside the table")
    assert(
      queries.allSatisfy { $0.firstSegment >= 0 && Int($0.firstSegment) + Int($0.segmentCount) <= segments.count },
      "a query has segments outside the table")
    assert(
      tests.allSatisfy { isTarget($0.onTrue) && isTarget($0.onFalse) }, "a test continues at a test that does not exist"
    )
    assert(
      literals.allSatisfy { Int($0.bytes.offset) + Int($0.bytes.count) <= bytes.count },
      "a literal has bytes outside the table")
  }

  private func isTarget(_ index: Int32) -> Bool {
    index == Test.accept || index == Test.reject || tests.indices.contains(Int(index))
  }
}

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
