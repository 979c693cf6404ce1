import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// A change cannot pair rows of deleted sections. Feeds that show the rows without these sections keep the rows.
struct RowsOfDeletedSectionsTests {
  private let harness = EngineHarness()
  private let client: ConnectionID

  init() { client = harness.connect() }

  /// A feed with sections, and a request that deletes some of them without deleting rows.
  struct Scenario: CustomStringConvertible, Sendable {
    let description: String
    let setup: [(method: String, params: String)]
    /// The feed of which views are made.
    var source = "c"
    let method: String
    let params: String
    /// The ids of the rows in the order of the feed, before and after.
    let before, after: [Int]
    /// The ids of rows with a new element.
    var updated: [Int] = []

    /// Elements 1 in section a, 2 and 3 in section b.
    static func collection(_ members: String) -> [(method: String, params: String)] {
      [
        ("define", #"{"feed":"c","kind":"collection",\#(members)}"#),
        ("update", #"{"feed":"c","elements":[{"id":1,"d":"a"},{"id":2,"d":"b"},{"id":3,"d":"b"}]}"#),
      ]
    }
  }

  private static let bins = [#"{"name":"a","filter":"@.d == 'a'"}"#, #"{"name":"b","filter":"@.d == 'b'"}"#]
  private static func withBins(_ bins: [String]) -> String { "\"bins\":[\(bins.joined(separator: ","))]" }
  private static func replaceCollection(_ members: String) -> String {
    #"{"feed":"c","kind":"collection",\#(members),"replace":true}"#
  }
  private static let move = #"{"feed":"c","element":{"id":1,"d":"b"}}"#
  private static let composed =
    Scenario.collection(withBins(bins)) + [
      ("define", #"{"feed":"one","kind":"array"}"#), ("insert", #"{"feed":"one","elements":[{"id":9}]}"#),
      ("define", #"{"feed":"p","kind":"composed","children":["c","one"]}"#),
    ]

  static let scenarios = [
    Scenario(
      description: "the only row of a section by value gets another value",
      setup: Scenario.collection(#""section":"$.d""#),
      method: "update", params: move, before: [1, 2, 3], after: [2, 3, 1], updated: [1]),
    Scenario(
      description: "a section by value is deleted by one of several steps",
      setup: Scenario.collection(#""section":"$.d""#),
      method: "update", params: #"{"feed":"c","elements":[{"id":1,"d":"b"},{"id":2,"d":"b","v":1}]}"#,
      before: [1, 2, 3],
      after: [2, 3, 1], updated: [1, 2]),
    Scenario(
      description: "sections by value are reversed", setup: Scenario.collection(#""section":"$.d""#), method: "define",
      params: replaceCollection(#""section":"$.d","sectionOrder":"descending""#), before: [1, 2, 3], after: [2, 3, 1]),
    Scenario(
      description: "sections by value are removed", setup: Scenario.collection(#""section":"$.d""#), method: "define",
      params: replaceCollection(#""type":"$.t""#), before: [1, 2, 3], after: [1, 2, 3]),
    Scenario(
      description: "sections by value are removed, after a row changed its section",
      setup: Scenario.collection(#""section":"$.d""#), method: "transaction",
      params:
        #"{"ops":[{"method":"update","params":\#(move)},{"method":"define","params":\#(replaceCollection(#""type":"$.t""#))}]}"#,
      before: [1, 2, 3], after: [1, 2, 3], updated: [1]),
    Scenario(
      description: "bins change their order", setup: Scenario.collection(withBins(bins)), method: "define",
      params: replaceCollection(withBins(bins.reversed())), before: [1, 2, 3], after: [2, 3, 1]),
    Scenario(
      description: "bins change their order twice", setup: Scenario.collection(withBins(bins)), method: "transaction",
      params:
        #"{"ops":[{"method":"define","params":\#(replaceCollection(withBins(bins.reversed())))},{"method":"define","params":\#(replaceCollection(withBins(bins)))}]}"#,
      before: [1, 2, 3], after: [1, 2, 3]),
    Scenario(
      description: "a bin is removed, and another one takes its rows", setup: Scenario.collection(withBins(bins)),
      method: "define", params: replaceCollection(#""bins":[{"name":"b","filter":"@.id > 0"}]"#), before: [1, 2, 3],
      after: [1, 2, 3]),
    Scenario(
      description: "children change their order", setup: composed, source: "p", method: "define",
      params: #"{"feed":"p","kind":"composed","children":["one","c"],"replace":true}"#, before: [1, 2, 3, 9],
      after: [9, 1, 2, 3]),
    Scenario(
      description: "a child is removed and inserted", setup: composed, source: "p", method: "transaction",
      params:
        #"{"ops":[{"method":"removeChild","params":{"feed":"p","child":"c"}},{"method":"update","params":\#(move)},{"method":"insertChild","params":{"feed":"p","child":"c"}}]}"#,
      before: [1, 2, 3, 9], after: [9, 2, 3, 1], updated: [1]),
    Scenario(
      description: "the bins of a child change their order", setup: composed, source: "p", method: "define",
      params: replaceCollection(withBins(bins.reversed())), before: [1, 2, 3, 9], after: [2, 3, 1, 9]),
  ]

  /// The params of the deltas of one feed, and its selection, after the request.
  private func follow(_ definition: String, _ scenario: Scenario) throws -> (deltas: [Value], selected: String?) {
    for (method, params) in scenario.setup { expect(ask(method, params)?["result"] != nil, "\(params)") }
    expect(ask("define", "{\"feed\":\"v\",\(definition)}")?["result"] != nil)
    expect(ask("select", #"{"feed":"v","at":[[0,0]]}"#)?["result"] != nil)
    let watcher = harness.connect()
    _ = harness.ask(watcher, "watch", #"{"feed":"v","initial":false}"#)
    expect(ask(scenario.method, scenario.params)?["result"] != nil)
    let frames = harness.take(watcher).compactMap(\.json)
    return (
      frames.filter { $0["method"]?.string == "delta" }.compactMap { $0["params"] },
      ask("selected", #"{"feed":"v"}"#)?["result"]?["selected"]?.text
    )
  }

  private func ask(_ method: String, _ params: String) -> Value? {
    let answer = harness.ask(client, method, params).last?.json
    if let error = answer?["error"] { Issue.record("\(params): \(error)") }
    return answer
  }

  /// The text of paths in the first section.
  private func paths(_ rows: [Int]) -> String { "[" + rows.map { "[0,\($0)]" }.joined(separator: ",") + "]" }

  @Test(arguments: scenarios)
  func sortedViewKeepsTheRows(_ scenario: Scenario) throws {
    let (deltas, selected) = try follow(#""kind":"view","of":"\#(scenario.source)","sort":[{"by":"$.id"}]"#, scenario)
    expectEqual(deltas.count, (scenario.updated.isEmpty ? 0 : 1))
    for delta in deltas {
      expectEqual(["deleted", "added"].map { delta[$0]?.text }, ["[]", "[]"])
      expectEqual(delta["updated"]?.text, paths(scenario.updated.map { $0 - 1 }))
    }
    expectEqual(selected, "[[0,0]]")
  }

  @Test(
    arguments: scenarios,
    [#""kind":"view","of":"SOURCE""#, #""kind":"slots","contents":{"T":"SOURCE"},"pattern":["T"]"#])
  func otherFeedsMoveFewRows(_ scenario: Scenario, _ definition: String) throws {
    let definition = definition.split(separator: "SOURCE", omittingEmptySubsequences: false)
      .joined(separator: scenario.source)
    let (deltas, selected) = try follow(definition, scenario)
    let (before, after) = (scenario.before, scenario.after)
    expectEqual(selected, paths(after.indices.filter { after[$0] == before[0] }))
    guard let delta = deltas.first else {
      expect(before == after && scenario.updated.isEmpty)
      return
    }
    expectEqual(deltas.count, 1)
    let order = after.compactMap { before.firstIndex(of: $0) }
    expectEqual(delta["added"]?.items.count, order.count - TreeChange.longestRising(order))
    let changed = (delta["added"]?.items ?? []) + (delta["updated"]?.items ?? [])
    expect(Set(changed.map { after[$0.path[1]] }).isSuperset(of: scenario.updated))
    expect(delta["updated"]?.items.allSatisfy { scenario.updated.contains(after[$0.path[1]]) } ?? false)
    expectEqual((delta["moves"]?.items.count ?? 0), delta["added"]?.items.count)
  }

  /// The feed itself can't list the rows as moved, but its selection follows them.
  @Test(arguments: scenarios)
  func selectionFollowsTheRows(_ scenario: Scenario) throws {
    for (method, params) in scenario.setup { expect(ask(method, params) != nil) }
    expect(ask("select", "{\"feed\":\"\(scenario.source)\",\"at\":[0,0]}") != nil)
    expect(ask(scenario.method, scenario.params)?["result"] != nil)
    let selected = try require(
      ask("selected", "{\"feed\":\"\(scenario.source)\"}")?["result"]?["selected"]?.items.first)
    let row = ask("get", "{\"feed\":\"\(scenario.source)\",\"at\":\(selected.text)}")?["result"]
    expectEqual(row?["element"]?["id"]?.int, scenario.before[0])
  }

  /// A bin that changes its place among the others does not change.
  @Test func binKeepsItsRows() throws {
    for (method, params) in Scenario.collection(Self.withBins(Self.bins)) { expect(ask(method, params) != nil) }
    let watchers = ["c/a", "c/b"].map { bin in
      let watcher = harness.connect()
      _ = harness.ask(watcher, "watch", "{\"feed\":\"\(bin)\",\"initial\":false}")
      expect(ask("select", "{\"feed\":\"\(bin)\",\"at\":[0,0]}") != nil)
      _ = harness.take(watcher)
      return watcher
    }
    expect(ask("define", Self.replaceCollection(Self.withBins(Self.bins.reversed()))) != nil)
    for watcher in watchers { expectEqual(harness.take(watcher), []) }
    // With other rows, in a transaction that changes rows before and after.
    let define = Self.replaceCollection(
      Self.withBins([Self.bins[0], #"{"name":"b","filter":"@.id > 1","sort":[{"by":"$.id","order":"descending"}]}"#]))
    let operations = [
      #"{"method":"update","params":{"feed":"c","element":{"id":4,"d":"b"}}}"#,
      #"{"method":"define","params":\#(define)}"#,
      #"{"method":"delete","params":{"feed":"c","id":3}}"#,
    ]
    expect(ask("transaction", #"{"ops":[\#(operations.joined(separator: ","))]}"#) != nil)
    expectEqual(harness.take(watchers[0]), [])
    let frames = harness.take(watchers[1]).compactMap { $0.json?["params"] }
    expectEqual(
      ["deleted", "added", "updated", "elements", "sections"].map { frames.first?[$0]?.text },
      ["[[0,1]]", "[[0,0]]", "[]", #"[{"id":4,"d":"b"}]"#, nil])
    expectEqual(frames.last?["selected"]?.text, "[[0,1]]")
  }
}
