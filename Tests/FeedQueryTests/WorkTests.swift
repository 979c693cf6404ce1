import TestSupport
import FeedJSON
import Testing

@testable import FeedQuery

/// The limits on depth and work of evaluation.
struct WorkTests {
  private static func nested(_ depth: Int, _ inner: String) -> String {
    String(repeating: "[", count: depth) + inner + String(repeating: "]", count: depth)
  }

  @Test func deepestValues() throws {
    let json = Self.nested(511, #"{"a":1}"#)
    try expectEqual(nodes("$..a", in: json), ["1"])
    try expectEqual(nodes("$..*", in: json).count, 512)
    try expectEqual(nodes("$..[0]", in: json).count, 511)
    try expectEqual(nodes("$" + String(repeating: "[*]", count: 511) + ".a", in: json), ["1"])
    try expectEqual(nodes("$" + String(repeating: "[0]", count: 511) + ".a", in: json), ["1"])
    try expectEqual(nodes("$" + String(repeating: "[?@]", count: 512), in: json), ["1"])
    try expectEqual(nodes("$" + String(repeating: "[::-1]", count: 511) + ".a", in: json), ["1"])
  }

  @Test func deepFiltersOverDeepValues() throws {
    let depth = QueryLimits.nesting
    let json = Self.nested(511, #"{"a":1}"#)
    let path = "$" + String(repeating: "..[?@", count: depth) + "..a" + String(repeating: "]", count: depth)
    try withJSON(json) { root in
      var steps = 300_000
      try JSONPath(parsing: path).evaluate(root, steps: &steps) { _ in }
      expect(steps < 0, "every filter visits the whole value")
    }
    // Each filter searches for the absent member at the bottom first, so all filters are active at the same time.
    let absolute = "$" + String(repeating: "[?$..x || $", count: depth) + String(repeating: "]", count: depth)
    try expectEqual(nodes(absolute, in: Self.nested(511, "")).count, 1)
  }

  @Test func workIsLimited() throws {
    let json = "[" + Array(repeating: "[1,2,3,4,5,6,7,8,9]", count: 8).joined(separator: ",") + "]"
    for path in [
      "$..*..*..*[?@]", "$[?count($..*) > 1][?count($..*) > 1]", "$[?$[?$[?$[?@ == 1]]]]", "$[::-1][::-1]",
      "$[*][9:0:-1]",
    ] {
      try withJSON(json) { root in
        let path = try JSONPath(parsing: path)
        var (all, limited): (Int, Int) = (0, 0)
        var left = Int.max
        path.evaluate(root, steps: &left) { _ in all += 1 }
        let cost = Int.max - left
        expect(cost > 50)
        var exact = cost
        path.evaluate(root, steps: &exact) { _ in limited += 1 }
        expect(exact == 0 && limited == all)
        for limit in [0, 1, 10, cost / 2, cost - 1] {
          (left, limited) = (limit, 0)
          path.evaluate(root, steps: &left) { _ in limited += 1 }
          expect(left < 0 && limited <= all, "\(path.text) with \(limit) steps of \(cost)")
        }
      }
    }
  }

  /// To find the last member of each name, names are compared with each other, or hashed.
  @Test(arguments: [2, 16, 17]) func longNamesCount(members count: Int) throws {
    let name = String(repeating: "x", count: 6400)
    let members = (0..<count).map { #""\u0061\#(name)\#($0 + 10)":1"# }.joined(separator: ",")
    try withJSON("{\(members)}") { root in
      for text in ["count(@.*) == \(count)", "length(@) == \(count)", "@..*", "@['\(name)'] != 1"] {
        let filter = try Filter(parsing: text)
        var left = 1_000_000
        expectEqual(filter.accepts(root, steps: &left), true, "\(text.prefix(20))")
        let steps = 1_000_000 - left
        expect(steps >= (count - 1) * 100, "\(text.prefix(20)) takes \(steps) steps")
        expect(steps <= filter.mostSteps(over: root.text.count), "\(text.prefix(20)) takes \(steps) steps")
      }
    }
  }

  /// All digits of a number are read, whatever it is compared with.
  @Test func longNumbersCount() throws {
    let zeros = String(repeating: "0", count: 16_000)
    try withJSON(#"{"n":1.\#(zeros),"m":1,"s":"x"}"#) { root in
      for text in [
        "@.n == 1", "1 == @.n", "@.n == @.m", "@.m == @.n", "length(@.s) == @.n", "@.n == count(@.s)",
        "@.m == 1.\(zeros)", "1.\(zeros) == 1", "length(@.s) == 1.\(zeros)",
      ] {
        let filter = try Filter(parsing: text)
        var left = 1_000_000
        expectEqual(filter.accepts(root, steps: &left), true, "\(text.prefix(20))")
        let steps = 1_000_000 - left
        expect(steps >= 1000, "\(text.prefix(20)) takes \(steps) steps")
        expect(steps <= filter.mostSteps(over: root.text.count), "\(text.prefix(20)) takes \(steps) steps")
      }
    }
  }

  /// An evaluation that stops now and then takes the same steps and finds the same nodes.
  @Test(arguments: [1, 3, 100])
  func pacedEvaluationIsTheSame(interval: Int) throws {
    let members = (0..<30).map { #""m\#($0 % 25)":[\#($0),{"a":"x\#($0)"}]"# }.joined(separator: ",")
    let json = #"[{\#(members)},[1,[2,3],"abab","a\u0062"],{"\u006d1":[1,{"a":"x1"}]}]"#
    for path in [
      "$..*", "$..[?@.a]", "$..[?@ == $[1]]", "$..[?count(@..*) > 2]", "$..[?match(@, '(ab)*')]", "$[1][::-1]",
      "$..[?search(@, $[1][2])]", "$[?@.m1 == $[2].m1]", "$..[?length(@) == 25]",
    ] {
      let path = try JSONPath(parsing: path)
      try withJSON(json) { root in
        let expected = nodes(path, in: root)
        var cost = 1_000_000
        path.evaluate(root, steps: &cost) { _ in }
        cost = 1_000_000 - cost
        for allowed in [cost, cost + 7, cost - 1, cost / 2] {
          var (left, stops): (Int, Int) = (allowed, 0)
          var found: [String] = []
          let pace = EvaluationPace(every: interval) {
            stops += 1
            return true
          }
          path.evaluate(root, steps: &left, pace: pace) { found.append(String(decoding: $0.text, as: UTF8.self)) }
          if allowed >= cost {
            expect(left == allowed - cost && found == expected, "\(path.text)")
          } else {
            expect(left < 0 && expected.starts(with: found), "\(path.text) with \(allowed) steps of \(cost)")
          }
          expect(stops >= min(allowed, cost) / interval / 20, "\(path.text)")
        }
      }
    }
  }

  @Test func cancelledEvaluationEnds() throws {
    let json = "[" + Array(repeating: "[1,2,3]", count: 1000).joined(separator: ",") + "]"
    let path = try JSONPath(parsing: "$..*")
    try withJSON(json) { root in
      var (left, stops, found): (Int, Int, Int) = (1_000_000, 0, 0)
      let pace = EvaluationPace(every: 10) {
        stops += 1
        return stops < 5
      }
      path.evaluate(root, steps: &left, pace: pace) { _ in found += 1 }
      expect(left < 0 && stops == 5 && found <= 60)
    }
  }

  /// A new state costs up to the size of the expression, so a match also stops while it reads a short text.
  @Test func matchOfManyStatesStops() throws {
    let path = try JSONPath(parsing: "$[?match(@, '(.?.?){100}')]")
    let text = "[\"" + String(repeating: "a", count: 200) + "\"]"
    var scanner = JSONScanner()
    try Array(text.utf8).withUnsafeBytes { bytes in
      var (left, stops, found): (Int, Int, Int) = (1_000_000, 0, 0)
      let pace = EvaluationPace(every: 500) {
        stops += 1
        return true
      }
      path.evaluate(try scanner.scan(bytes), steps: &left, pace: pace) { _ in found += 1 }
      expect(found == 1 && stops >= (1_000_000 - left) / 1000 && stops > 5)
    }
  }

  @Test func filterWithoutStepsRejects() throws {
    let element =
      #"{"tags":[\#((0..<100).map(String.init).joined(separator: ","))],"text":"\#(String(repeating: "ab", count: 500))"}"#
    for filter in [
      "@.tags[?@ == 99]", "!@.tags[?@ == 100]", "count(@.tags[*]) == 100", "search(@.text, '(a|b)*a(a|b){89}$')",
      "@..*",
    ] {
      let filter = try Filter(parsing: filter)
      try withJSON(element) { element in
        var left = Int.max
        expect(filter.accepts(element, steps: &left))
        left = 1
        // `@..*` finds its node at once. The pattern of the last but one caches its states.
        let accepted = filter.accepts(element, steps: &left)
        expectEqual(accepted, (left >= 0))
      }
    }
  }

  /// A pattern that is different for each element is compiled for each.
  @Test func compilingPatternsIsCharged() throws {
    let rows = (0..<100).map { #"{"p":"(\\p{L}|x{\#($0 + 1)}){20}"}"# }
    try withJSON("[\(rows.joined(separator: ","))]") { root in
      var steps = 20_000
      try JSONPath(parsing: "$[?match('abc', @.p)]").evaluate(root, steps: &steps) { _ in }
      expect(steps < 0)
    }
  }

  /// Members that are visited count as work, not only nodes, as when a name is looked up in a large object for each element.
  @Test func nameLookupsAreCharged() throws {
    let members = (0..<1_000).map { "\"n\($0)\":\($0)" }.joined(separator: ",")
    let json = "{\"rows\":[" + Array(repeating: "1", count: 1_000).joined(separator: ",") + "],\"big\":{\(members)}}"
    try withJSON(json) { root in
      var steps = 100_000
      try JSONPath(parsing: "$.rows[?$.big.n5 == 0]").evaluate(root, steps: &steps) { _ in }
      expect(steps < 0)
    }
  }

  /// A stored request that was refused must be refused again when it is replayed, so cached states do not reduce the steps.
  @Test(arguments: [
    "search(@.text, '(a|b)*a(a|b){89}$')", "search(@.text, @.pattern)", "match(@.text, @.text)", "count(@..*) > 3",
    "search(@.text, @.broken)",
  ])
  func stepsOfAFilterAreRepeatable(text: String) throws {
    let element =
      #"{"text":"\#(String(repeating: "ab", count: 500))","pattern":"(a|b)*a(a|b){9}$","broken":"(","tags":[1,2,3]}"#
    let filter = try Filter(parsing: text)
    try withJSON(element) { element in
      var first = 10_000_000
      let accepted = filter.accepts(element, steps: &first)
      let cost = 10_000_000 - first
      expect(cost > 0)
      for other in [#"{"text":"x","pattern":"y","broken":"["}"#, #"{"text":"abba","pattern":"b+"}"#] {
        try withJSON(other) { _ = filter.accepts($0) }
      }
      var exact = cost
      expectEqual(filter.accepts(element, steps: &exact), accepted)
      expectEqual(exact, 0)
      var short = cost - 1
      expect(!filter.accepts(element, steps: &short))
      expect(short < 0)
    }
  }

  /// An array of numbers whose first element is nested, so that elements are found by iteration.
  private static func longArray(_ count: Int) -> String {
    "[[0]" + String(repeating: ",0", count: count - 2) + ",1]"
  }

  private func cost(_ path: String, _ json: String) throws -> Int {
    try withJSON(json) { root in
      var steps = Int.max
      try JSONPath(parsing: path).evaluate(root, steps: &steps) { _ in }
      return Int.max - steps
    }
  }

  @Test(arguments: ["$[?@ == $[%]]", "$[?@ == $[-1]]", "$[?$[-2] == @ || $[0][0] == @]"])
  func distantIndexInAFilterIsWalkedOnce(_ template: String) throws {
    func path(_ count: Int) -> String { template.replacing("%", with: "\(count - 1)") }
    try expectEqual(nodes(path(60_000), in: Self.longArray(60_000)).isEmpty, false)
    let (small, large) = (
      try cost(path(30_000), Self.longArray(30_000)), try cost(path(60_000), Self.longArray(60_000))
    )
    expect(small > 30_000 && large < small * 5 / 2)
    expect(large < 500_000)
  }

  @Test(arguments: ["$[?@ == $[59999] || @ == $[59998]]", "$[?$[-1] == $[-2] && @ == 2]"])
  func severalDistantIndexesInAFilterAreCharged(_ path: String) throws {
    try withJSON(Self.longArray(60_000)) { root in
      var steps = 2_000_000
      try JSONPath(parsing: path).evaluate(root, steps: &steps) { _ in }
      expect(steps < 0)
    }
  }

  @Test func indexesOfDifferentArraysAreIndependent() throws {
    let row = "[[9]" + String(repeating: ",7", count: 99)
    let json = "[" + (0..<50).map { "\(row),\($0)]" }.joined(separator: ",") + "]"
    try expectEqual(nodes("$[*][100]", in: json), (0..<50).map(String.init))
    try expectEqual(nodes("$[?@[100] == 17][100]", in: json), ["17"])
    try expectEqual(nodes("$[?@[-1] == $[49][100]][100]", in: json), ["49"])
  }
}
