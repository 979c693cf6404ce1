import FeedJSON
import TestSupport
import Testing

@testable import FeedQuery

/// The upper bound for the steps of a filter.
struct StepEstimateTests {
  private func steps(_ filter: Filter, over json: String) throws -> Int {
    try withJSON(json) { root in
      var left = 1 << 40
      _ = filter.accepts(root, steps: &left)
      return (1 << 40) - left
    }
  }

  @Test("no evaluation takes more steps than the bound", arguments: 0..<32 as Range<UInt64>)
  func bound(seed: UInt64) throws {
    var texts = RandomTexts(seed: seed)
    var checked = 0
    for _ in 0..<150 {
      let text = texts.condition(depth: 3)
      guard let filter = try? Filter(parsing: text) else { continue }
      for _ in 0..<4 {
        let parts = (0..<texts.number(below: 12)).map { _ in texts.json(depth: 3) }
        let json = texts.number(below: 2) == 0 ? texts.json(depth: 5) : "[\(parts.joined(separator: ","))]"
        let taken = try steps(filter, over: json)
        expect(taken <= filter.mostSteps(over: json.utf8.count), "\(text) over \(json), seed \(seed)")
        checked += 1
      }
    }
    expect(checked > 100)
  }

  /// The worst elements for filters of each degree: many short values.
  @Test(arguments: [
    "@.a[?@ == 1]", "@.a[?count($.a[?@ > 1]) == 7]", "$..[?count($..*) > 1]", "@..*..*", "@[*][*,*][*,*]",
    "@.a[?@ == $.a[99]]", "match(@.s, '(a|b)*c{20}')", "@.a[?search($.s, 'a+b')]", "@.a[?length($.s) > 3]",
    "@.a[?match($.s, $.s)]", "@.a[::-1]", "@.a[?@ == $.a]", "$.a[?$.a == $.a]", "@..[?@..[?@..*]]",
  ])
  func worstElements(_ text: String) throws {
    let filter = try Filter(parsing: text)
    for count in [10, 100, 300] {
      let values = (0..<count).map { "\($0 % 10)" }.joined(separator: ",")
      let nested = String(repeating: "[", count: count / 2) + "1" + String(repeating: "]", count: count / 2)
      for json in [
        #"{"a":[\#(values)],"s":"\#(String(repeating: "ab", count: count))"}"#, #"{"a":\#(nested)}"#,
        #"{"a":[[\#(values)],[\#(values)]]}"#,
      ] {
        let taken = try steps(filter, over: json)
        let bound = filter.mostSteps(over: json.utf8.count)
        expect(taken <= bound, "\(text) over \(json.prefix(60))")
      }
    }
  }

  /// A short text meets no state that is cached: each of its bytes takes as much work as the expression is long.
  @Test(arguments: [1, 3, 40])
  func shortTextsAndLongExpressions(_ length: Int) throws {
    let words = (0..<60).map { "(ab){\($0 % 7 + 1)}c\($0)" }.joined(separator: "|")
    for text in ["search(@.t, '\(words)')", "match(@.t, '(\(words))*')", "search(@.t, @.p)"] {
      let filter = try Filter(parsing: text)
      let json = #"{"t":"\#(String("ab1ab2c3".prefix(length)))","p":"\#(words)"}"#
      let taken = try steps(filter, over: json)
      expect(taken > 10 && taken <= filter.mostSteps(over: json.utf8.count), "\(text.prefix(20)): \(taken)")
    }
  }

  /// A literal is read at each evaluation, whether it is an I-Regexp or not.
  @Test(arguments: ["[", ""])
  func longLiterals(_ head: String) throws {
    let filter = try Filter(parsing: "search(@.t, '\(head)\(String(repeating: "a", count: 2000))')")
    let json = #"{"t":"abc"}"#
    let taken = try steps(filter, over: json)
    expect(taken > 100 && taken <= filter.mostSteps(over: json.utf8.count), "\(taken)")
  }

  /// Filters of usual elements are not mistaken for slow ones.
  @Test(arguments: [
    "@.tags[?@ == 'work']", "match(@.name, 'a.*b')", "@.items[?@.price > 10 && @.count < 5]", "count(@.tags[*]) > 2",
    "length(@.name) > 3 || @.a == @.b",
  ])
  func usualFilters(_ text: String) throws {
    try expect(Filter(parsing: text).mostSteps(over: 512) < 10_000)
  }

  @Test func boundsGrowWithTheElement() throws {
    let filter = try Filter(parsing: "@.a[?count($.a[?@ > 1]) == 7]")
    let bounds = [128, 512, 2048].map { filter.mostSteps(over: $0) }
    expect(bounds == bounds.sorted() && bounds[2] > 100 * bounds[0])
  }
}
