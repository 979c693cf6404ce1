import FeedJSON
import Foundation
import TestSupport
import Testing

@testable import FeedQuery

struct PathTests {
  static let store = #"""
    {"books":[{"title":"A","price":8.5,"tags":[]},{"title":"B","price":12,"isbn":"1"},{"title":"C","price":9}],"bike":{"price":400,"on":true}}
    """#

  @Test(arguments: [
    ("$.bike.on", ["true"]), ("$['bike']['price']", ["400"]), ("$.books[*].title", [#""A""#, #""B""#, #""C""#]),
    ("$..price", ["8.5", "12", "9", "400"]), ("$.books[-1].title", [#""C""#]), ("$.books[0,2].price", ["8.5", "9"]),
    ("$.books[::-1].price", ["9", "12", "8.5"]), ("$.books[:2].price", ["8.5", "12"]),
    ("$.books[5:0:-2].title", [#""C""#]),
    ("$.books[?@.price < 10].title", [#""A""#, #""C""#]), ("$.books[?@.isbn].price", ["12"]),
    ("$..[?@.price > $.books[0].price].price", ["400", "12", "9"]),
    ("$..*[?@.on]", []), ("$[?@.on].price", ["400"]), ("$.books[?count(@.*) == 2].title", [#""C""#]),
    ("$.books.title", []), ("$.bike[0]", []),
    ("$['bike','bike'].price", ["400", "400"]), ("$.books[1:1]", []), ("$.books[::0]", []), ("$..tags", ["[]"]),
    ("$.books[0:2,1,'x'].price", ["8.5", "12", "12"]),
    ("$.books [0] .price", ["8.5"]), ("$..books[?@.price==9]..title", [#""C""#]),
    ("$.books[?@[?@ == 'B']].price", ["12"]),
  ]) func selects(path: String, expected: [String]) throws {
    try expectEqual(nodes(path, in: Self.store), expected)
  }

  @Test func lastMemberOfANameIsSelected() throws {
    let json = #"{"a":{"x":1},"b":2,"\u0061":{"x":3},"c":[{"k":1,"k":2}]}"#
    try expectEqual(nodes("$.a.x", in: json), ["3"])
    try expectEqual(nodes("$.*", in: json), ["2", #"{"x":3}"#, #"[{"k":1,"k":2}]"#])
    try expectEqual(nodes("$..x", in: json), ["3"])
    try expectEqual(nodes("$..k", in: json), ["2"])
    let many = "{" + (0..<100).map { "\"n\($0 % 60)\":\($0)" }.joined(separator: ",") + "}"
    try expectEqual(nodes("$.*", in: many), (40..<100).map(String.init))
    try expectEqual(nodes("$[?@ < 45]", in: many), ["40", "41", "42", "43", "44"])
    try expectEqual(nodes("$..*", in: "[\(many)]").count, 61)
    try expect(accepts("length(@) == 60 && count(@.*) == 60", many))
  }

  @Test func isSingular() throws {
    for path in ["$", "$.a", "$['a'][0]", "$ .a [-1]"] { try expect(JSONPath(parsing: path).isSingular) }
    for path in ["$.*", "$..a", "$[0,0]", "$[0:1]", "$[?@]"] { try expect(!JSONPath(parsing: path).isSingular) }
    try expectEqual(JSONPath(parsing: "$.a").text, "$.a")
  }

  @Test func singularPathsResolve() throws {
    try withJSON(Self.store) { root throws in
      try expectEqual(SingularPath(parsing: "$").resolve(root)?.kind, .object)
      try expectEqual(SingularPath(parsing: "$.books[-2]['title']").resolve(root)?.string, "B")
      try expect(SingularPath(parsing: "$.books[-4]").resolve(root) == nil)
      try expect(SingularPath(parsing: "$.bike.price.x").resolve(root) == nil)
      try expect(SingularPath(parsing: "$.books[0].tags[0]").resolve(root) == nil)
    }
    try withJSON(#"{"id":1,"i\u0064":2}"#) { expectEqual(SingularPath.id.resolve($0)?.int, 2) }
    expectEqual(SingularPath.id.text, "$.id")
  }

  @Test(arguments: [
    ("$[*].a", [0, 1, 2, 3]), ("$.*", [0, 1, 2, 3]), ("$[1]", [1]), ("$[-1].a", [3]), ("$[4]", []), ("$[-5]", []),
    ("$[1:3]", [1, 2]),
    ("$[::-2]", [3, 1]), ("$[?@.a == 1]", [0, 1, 2, 3]), ("$['a']", []), ("$.a.b", []),
  ]) func elementwiseSelection(path: String, rows: [Int]) throws {
    let elementwise = try require(try JSONPath(parsing: path).elementwise())
    expectEqual(Array(elementwise.selection(count: 4)), rows)
  }

  @Test(arguments: [
    "$", "$..a", "$..*", "$[0,1]", "$[?@.a == $.b]", "$[*][?@ == $[0]]", "$[*][?count($.*) == 1]", "$[?@[?$.a]]",
    "$[?length($[0]) == 1]",
    "$[?match(@.a, $[0])]", "$[?!(@.a && $[0])]",
  ])
  func pathsThatAreNotElementwise(path: String) throws {
    try expect(JSONPath(parsing: path).elementwise() == nil)
  }

  @Test func errorsOfTheCallbackAreRethrown() throws {
    struct Enough: Error {}
    let path = try JSONPath(parsing: "$..*")
    try withJSON(Self.store) { root in
      var count = 0
      #expect(throws: Enough.self) {
        try path.evaluate(root) { _ in
          count += 1
          if count == 3 { throw Enough() }
        }
      }
      expectEqual(count, 3)
    }
  }
}

/// The public compliance suite of RFC 9535: the file `cts.json` of the JSONPath Compliance Test Suite.
///
/// The suite is not part of the repository. The environment variable `FEEDD_JSONPATH_SUITE` names the file. Without the
/// variable the test is reported as skipped; with a file that does not exist it fails.
struct ComplianceSuiteTests {
  static let path = ProcessInfo.processInfo.environment["FEEDD_JSONPATH_SUITE"]

  @Test(.enabled(if: ComplianceSuiteTests.path != nil, "set FEEDD_JSONPATH_SUITE to the path of cts.json"))
  func wholeSuite() throws {
    let bytes = try Data(contentsOf: URL(filePath: try require(Self.path)))
    var scanner = JSONScanner()
    try bytes.withUnsafeBytes { bytes in
      let tests = try require(try scanner.scan(bytes).member("tests"))
      for test in tests.elements { try check(test) }
      expect(tests.count >= 703)
    }
  }

  private func check(_ test: JSONView) throws {
    let name = try require(test.member("name")?.string)
    let selector = try require(test.member("selector")?.string)
    if test.member("invalid_selector")?.bool == true {
      let error = refusal(selector)
      expect(error != nil, "\(name): \(selector) must be refused")
      expect((0...selector.utf8.count).contains(error?.offset ?? 0), "\(name)")
      return
    }
    let document = try require(test.member("document"))
    let path: JSONPath
    do { path = try JSONPath(parsing: selector) } catch {
      Issue.record("\(name): \(selector) was refused: \(error)")
      return
    }
    var expected: [JSONView] = []
    if let result = test.member("result") { expected.append(result) }
    if let results = test.member("results") { expected.append(contentsOf: results.elements) }
    var nodes: [JSONView] = []
    path.evaluate(document) { nodes.append($0) }
    let found = nodes.map { String(decoding: $0.text, as: UTF8.self) }
    expect(
      expected.contains { result in
        result.count == nodes.count && zip(result.elements, nodes).allSatisfy { $0.equals($1) }
      }, "\(name): \(selector) gives \(found)")
    try expect(reference(document, agreesWith: nodes, of: path), "\(name): \(selector) element by element")
  }

  /// Whether elementwise evaluation, if the path allows it, gives the same nodes.
  private func reference(_ document: JSONView, agreesWith nodes: [JSONView], of path: JSONPath) throws -> Bool {
    guard document.kind == .array, let elementwise = path.elementwise() else { return true }
    let elements = Array(document.elements)
    var found: [Int] = []
    for row in elementwise.selection(count: elements.count) {
      elementwise.evaluate(elements[row]) { found.append($0.byteOffset) }
    }
    return found == nodes.map(\.byteOffset)
  }
}
