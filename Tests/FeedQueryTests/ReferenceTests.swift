import TestSupport
import FeedJSON
import Testing

@testable import FeedQuery

@Suite struct ReferenceTests {
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
          #expect(found == expected, "seed \(seed): \(path) over \(json)")
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
          #expect(try Filter(parsing: filter).accepts(root) == expected, "seed \(seed): \(filter) of \(json)")
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
        #expect(found == expected, "seed \(seed): \(path.text) over \(json)")
        compared += 1
      }
    }
    #expect(compared > 20)
  }

  @Test func slicesOfAllSmallBounds() {
    let bounds: [Int?] = [nil, -7, -4, -3, -2, -1, 0, 1, 2, 3, 4, 7]
    for count in 0...4 {
      for (start, end) in bounds.flatMap({ start in bounds.map { (start, $0) } }) {
        for step in [-9_007_199_254_740_991, -5, -3, -2, -1, 0, 1, 2, 3, 5, 9_007_199_254_740_991] {
          let slice = SliceBounds(start: start, end: end, step: step)
          let rows = slice.rows(count: count)
          let found = Array(ElementSelection(first: rows.first, step: rows.step, count: rows.count))
          #expect(found == ReferenceEvaluator.rows(slice, count: count), "\(slice) of \(count)")
        }
      }
    }
  }
}
