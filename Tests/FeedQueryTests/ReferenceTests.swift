import FeedJSON
import TestSupport
import Testing

@testable import FeedQuery

struct ReferenceTests {
  @Test(arguments: 0..<40 as Range<UInt64>) func randomPathsAgree(seed: UInt64) throws {
    var texts = RandomTexts(seed: seed)
    for _ in 0..<25 {
      let json = texts.json(depth: 5)
      try withJSON(json) { root in
        let reference = ReferenceEvaluator(root: root)
        for _ in 0..<12 {
          let path = texts.path()
          let expected = reference.nodes(try PathParser.query(path), current: root).map(\.byteOffset)
          var found: [Int] = []
          try JSONPath(parsing: path).evaluate(root) { found.append($0.byteOffset) }
          expectEqual(found, expected, "seed \(seed): \(path) over \(json)")
        }
      }
    }
  }

  @Test(arguments: 100..<110 as Range<UInt64>) func randomFiltersAgree(seed: UInt64) throws {
    var texts = RandomTexts(seed: seed)
    for _ in 0..<50 {
      let json = texts.json()
      try withJSON(json) { root in
        let reference = ReferenceEvaluator(root: root)
        for _ in 0..<20 {
          let filter = texts.condition()
          let expected = reference.holds(try PathParser.condition(filter), current: root)
          try expectEqual(Filter(parsing: filter).accepts(root), expected, "seed \(seed): \(filter) of \(json)")
        }
      }
    }
  }

  @Test(arguments: 200..<220 as Range<UInt64>) func elementwiseEvaluationAgrees(seed: UInt64) throws {
    var texts = RandomTexts(seed: seed)
    var compared = 0
    for _ in 0..<200 {
      let json = "[" + (0..<texts.number(below: 6)).map { _ in texts.json(depth: 3) }.joined(separator: ",") + "]"
      let path = try JSONPath(parsing: texts.path())
      guard let elementwise = path.elementwise() else { continue }
      try withJSON(json) { root in
        var (expected, found): ([Int], [Int]) = ([], [])
        path.evaluate(root) { expected.append($0.byteOffset) }
        let elements = Array(root.elements)
        for row in elementwise.selection(count: elements.count) {
          elementwise.evaluate(elements[row]) { found.append($0.byteOffset) }
        }
        expectEqual(found, expected, "seed \(seed): \(path.text) over \(json)")
        compared += 1
      }
    }
    expect(compared > 20)
  }

  @Test func slicesOfAllSmallBounds() {
    let bounds: [Int?] = [nil, -7, -4, -3, -2, -1, 0, 1, 2, 3, 4, 7]
    for count in 0...4 {
      for (start, end) in bounds.flatMap({ start in bounds.map { (start, $0) } }) {
        for step in [-9_007_199_254_740_991, -5, -3, -2, -1, 0, 1, 2, 3, 5, 9_007_199_254_740_991] {
          let slice = SliceBounds(start: start, end: end, step: step)
          let rows = slice.rows(count: count)
          let found = Array(ElementSelection(first: rows.first, step: rows.step, count: rows.count))
          expectEqual(found, ReferenceEvaluator.rows(slice, count: count), "\(slice) of \(count)")
        }
      }
    }
  }
}

/// Evaluates the syntax of a query as RFC 9535 describes it: nodelist by nodelist, recursively, without a program.
struct ReferenceEvaluator {
  let root: JSONView

  func nodes(_ query: QuerySyntax, current: JSONView) -> [JSONView] {
    var nodes = [query.isAbsolute ? root : current]
    for segment in query.segments {
      let inputs = segment.isDescendant ? nodes.flatMap(withDescendants) : nodes
      nodes = inputs.flatMap { node in segment.selectors.flatMap { select($0, from: node) } }
    }
    return nodes
  }

  func holds(_ condition: ConditionSyntax, current: JSONView) -> Bool {
    switch condition {
    case .any(let parts): return parts.contains { holds($0, current: current) }
    case .all(let parts): return parts.allSatisfy { holds($0, current: current) }
    case .not(let inner): return !holds(inner, current: current)
    case .exists(let query): return !nodes(query, current: current).isEmpty
    case .comparison(let comparison, let left, let right):
      return compare(comparison, value(left, current: current), value(right, current: current))
    case .pattern(let pattern):
      guard case .string(let text) = value(pattern.value, current: current),
        case .string(let expression) = value(pattern.pattern, current: current),
        let regexp = try? IRegexp(parsing: expression)
      else { return false }
      return pattern.isWhole ? regexp.matches(whole: text) : regexp.searches(in: text)
    }
  }

  private func children(_ node: JSONView) -> [JSONView] {
    if node.kind == .array { return Array(node.elements) }
    let members = Array(node.members)
    return members.enumerated().filter { index, member in
      !members[(index + 1)...].contains { $0.key.string == member.key.string }
    }.map(\.element.value)
  }

  private func withDescendants(_ node: JSONView) -> [JSONView] {
    [node] + children(node).flatMap(withDescendants)
  }

  private func select(_ selector: SelectorSyntax, from node: JSONView) -> [JSONView] {
    switch selector {
    case .name(let name):
      let name = String(decoding: name, as: UTF8.self)
      return Array(node.members).last { $0.key.string == name }.map { [$0.value] } ?? []
    case .wildcard:
      return children(node)
    case .index(let index):
      let elements = Array(node.elements)
      let row = index < 0 ? elements.count + index : index
      return elements.indices.contains(row) ? [elements[row]] : []
    case .slice(let bounds):
      let elements = Array(node.elements)
      return Self.rows(bounds, count: elements.count).map { elements[$0] }
    case .filter(let condition):
      return children(node).filter { holds(condition, current: $0) }
    }
  }

  /// The indexes of a slice, by the loops of RFC 9535, section 2.3.4.2.2.
  static func rows(_ bounds: SliceBounds, count: Int) -> [Int] {
    let step = bounds.step
    func normalize(_ index: Int) -> Int { index >= 0 ? index : count + index }
    let start = normalize(bounds.start ?? (step >= 0 ? 0 : count - 1))
    let end = normalize(bounds.end ?? (step >= 0 ? count : -count - 1))
    var rows: [Int] = []
    if step > 0 {
      var row = min(max(start, 0), count)
      while row < min(max(end, 0), count) {
        rows.append(row)
        row += step
      }
    } else if step < 0 {
      var row = min(max(start, -1), count - 1)
      while row > min(max(end, -1), count - 1) {
        rows.append(row)
        row += step
      }
    }
    return rows
  }
}

extension ReferenceEvaluator {
  enum Value {
    case nothing
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case structure(JSONView)
  }

  func value(_ operand: OperandSyntax, current: JSONView) -> Value {
    switch operand {
    case .literal(.null): return .null
    case .literal(.false): return .bool(false)
    case .literal(.true): return .bool(true)
    case .literal(.number(let text)): return .number(Double(String(decoding: text, as: UTF8.self)) ?? .nan)
    case .literal(.string(let text)): return .string(String(decoding: text, as: UTF8.self))
    case .query(let query), .value(let query):
      let nodes = nodes(query, current: current)
      return nodes.count == 1 ? value(nodes[0]) : .nothing
    case .count(let query): return .number(Double(nodes(query, current: current).count))
    case .length(let inner):
      switch value(inner, current: current) {
      case .string(let text): return .number(Double(text.unicodeScalars.count))
      case .structure(let node):
        let names = node.members.map(\.key.string)
        return .number(Double(node.kind == .array ? node.count : Set(names).count))
      case .nothing, .null, .bool, .number: return .nothing
      }
    }
  }

  private func value(_ node: JSONView) -> Value {
    switch node.kind {
    case .null: .null
    case .false: .bool(false)
    case .true: .bool(true)
    case .number: .number(Double(String(decoding: node.text, as: UTF8.self)) ?? .nan)
    case .string: .string(node.string ?? "")
    case .array, .object: .structure(node)
    }
  }

  func compare(_ comparison: ComparisonOperator, _ left: Value, _ right: Value) -> Bool {
    switch comparison {
    case .equal: equal(left, right)
    case .notEqual: !equal(left, right)
    case .less: less(left, right)
    case .lessOrEqual: less(left, right) || equal(left, right)
    case .greater: less(right, left)
    case .greaterOrEqual: less(right, left) || equal(left, right)
    default: false
    }
  }

  private func equal(_ left: Value, _ right: Value) -> Bool {
    switch (left, right) {
    case (.nothing, .nothing), (.null, .null): true
    case (.bool(let left), .bool(let right)): left == right
    case (.number(let left), .number(let right)): left == right
    case (.string(let left), .string(let right)): left.unicodeScalars.elementsEqual(right.unicodeScalars)
    case (.structure(let left), .structure(let right)): left.equals(right)
    default: false
    }
  }

  private func less(_ left: Value, _ right: Value) -> Bool {
    switch (left, right) {
    case (.number(let left), .number(let right)): left < right
    case (.string(let left), .string(let right)):
      left.unicodeScalars.lexicographicallyPrecedes(right.unicodeScalars)
    default: false
    }
  }
}
