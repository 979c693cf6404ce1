import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// A row that is removed and added within one commit is the same row if its identity is the same.
struct ReturningRowsTests {
  private let harness = EngineHarness()
  private let client: ConnectionID

  init() {
    client = harness.connect()
    _ = harness.ask(
      client, "define",
      #"{"feed":"c","kind":"collection","bins":[{"name":"one","filter":"@.k == 1"},{"name":"kept","filter":"@.k < 9"}]}"#
    )
    _ = harness.ask(client, "update", #"{"feed":"c","elements":[{"id":1,"k":1},{"id":2,"k":1}]}"#)
  }

  @Test func operationsOfATransactionAreCombined() {
    let watcher = harness.connect()
    _ = harness.ask(watcher, "watch", #"{"feed":"c","initial":false}"#)
    _ = harness.ask(
      client, "transaction",
      #"{"ops":[{"method":"delete","params":{"feed":"c","id":2}},{"method":"update","params":{"feed":"c","element":{"id":2,"k":1,"v":1}}}]}"#
    )
    let delta = harness.take(watcher).first?.json?["params"]
    expectEqual(["deleted", "added", "updated"].map { delta?[$0]?.text }, ["[]", "[]", "[[0,1],[1,1]]"])
  }

  @Test func rowAddedToAnotherBinIsMoved() {
    _ = harness.ask(
      client, "define",
      #"{"feed":"e","kind":"collection","exclusive":true,"bins":[{"name":"a","filter":"@.k == 1"},{"name":"b","filter":"@.k == 2"}]}"#
    )
    let there = #"{"feed":"e","elements":[{"id":1,"k":1},{"id":2,"k":1},{"id":3,"k":2}]}"#
    let delete = #"{"method":"delete","params":{"feed":"e","id":2}}"#
    func update(_ k: Int) -> String { #"{"method":"update","params":{"feed":"e","element":{"id":2,"k":\#(k)}}}"# }
    for (method, params) in [
      ("transaction", #"{"ops":[\#(delete),\#(update(2))]}"#),
      ("transaction", #"{"ops":[\#(update(2)),\#(delete),\#(update(2))]}"#),
      ("update", #"{"feed":"e","elements":[{"id":2,"k":7},{"id":2,"k":2}]}"#),
    ] {
      _ = harness.ask(client, "set", there)
      _ = harness.ask(client, "select", #"{"feed":"e","at":[0,1]}"#)
      let watcher = harness.connect()
      _ = harness.ask(watcher, "watch", #"{"feed":"e","initial":false}"#)
      _ = harness.ask(client, method, params)
      let frames = harness.take(watcher).compactMap { $0.json?["params"] }
      expectEqual(
        ["deleted", "added", "updated", "moves"].map { frames.first?[$0]?.text },
        ["[[0,1]]", "[[1,1]]", "[]", "[[0,0]]"], "\(params)")
      expectEqual(frames.last?["selected"]?.text, "[[1,1]]", "\(params)")
    }
  }

  @Test func rowThatARedefinitionTakesToAnotherBinIsMoved() {
    func define(_ first: String, _ second: String) -> String {
      #"{"feed":"e","kind":"collection","exclusive":true,"replace":true,"bins":[{"name":"a","filter":"\#(first)"},{"name":"b","filter":"\#(second)"},{"name":"rest"}]}"#
    }
    _ = harness.ask(client, "define", define("@.k == 1 || @.k == 2", "@.k == 3"))
    _ = harness.ask(client, "update", #"{"feed":"e","elements":[{"id":1,"k":1},{"id":2,"k":2},{"id":3,"k":3}]}"#)
    _ = harness.ask(client, "select", #"{"feed":"e","at":[0,1]}"#)
    let watcher = harness.connect()
    _ = harness.ask(watcher, "watch", #"{"feed":"e","initial":false}"#)
    _ = harness.ask(client, "define", define("@.k == 1", "@.k == 3 || @.k == 2"))
    let frames = harness.take(watcher).compactMap { $0.json?["params"] }
    expectEqual(
      ["deleted", "added", "updated", "moves"].map { frames.first?[$0]?.text },
      [
        "[[0,1]]", "[[1,0]]", "[]", "[[0,0]]",
      ])
    expectEqual(frames.last?["selected"]?.text, "[[1,0]]")
  }

  /// A row that is deleted and added again with the same element can move in its array and stay in a slots feed.
  @Test(arguments: [
    (
      "replace", #"{"feed":"q","elements":[{"id":50},{"id":9},{"id":1}],"at":[0,2,0]}"#,
      [#"{"id":1}"#, #"{"id":2}"#, #"{"id":9}"#]
    ),
    (
      "transaction",
      #"{"ops":[{"method":"set","params":{"feed":"q","elements":[{"id":2}]}},{"method":"set","params":{"feed":"q","elements":[{"id":1},{"id":2},{"id":9}]}}]}"#,
      [#"{"id":1}"#, #"{"id":2}"#, #"{"id":9}"#]
    ),
    (
      "transaction",
      #"{"ops":[{"method":"delete","params":{"feed":"q","ids":[9,1]}},{"method":"insert","params":{"feed":"q","elements":[{"id":1},{"id":9}],"at":0}}]}"#,
      [#"{"id":1}"#, #"{"id":9}"#, #"{"id":2}"#]
    ),
  ])
  func returnedRowsAreNotUpdatedInSlots(method: String, params: String, elements: [String]) {
    for definition in [
      #"{"feed":"q","kind":"array","id":"$.id"}"#, #"{"feed":"window","kind":"view","of":"q","limit":5}"#,
      #"{"feed":"slots","kind":"slots","contents":{"R":"q"},"pattern":["R"]}"#,
      #"{"feed":"above","kind":"slots","contents":{"R":"window"},"pattern":["R"]}"#,
    ] { _ = harness.ask(client, "define", definition) }
    _ = harness.ask(client, "set", #"{"feed":"q","elements":[{"id":9},{"id":2},{"id":1}]}"#)
    for feed in ["q", "window", "slots", "above"] {
      let watcher = harness.connect()
      _ = harness.ask(watcher, "watch", #"{"feed":"\#(feed)","initial":false}"#)
      _ = harness.ask(client, method, params)
      let delta = harness.take(watcher).first?.json?["params"]
      expectEqual(delta?["updated"]?.text, "[]", "\(feed): \(delta?.text ?? "no delta")")
      expect(delta?["moves"] != nil)
      let range = harness.ask(client, "range", #"{"feed":"\#(feed)","section":0}"#).first?.json?["result"]
      expectEqual(range?["elements"]?.items.map(\.text), elements)
      _ = harness.ask(client, "set", #"{"feed":"q","elements":[{"id":9},{"id":2},{"id":1}]}"#)
    }
  }

  /// So many rows that comparing each with each step would take too long.
  private static let many = 3000

  /// Elements with a common value.
  private func elements(_ value: Int) -> String {
    "[" + (0..<Self.many).map { #"{"id":\#($0),"k":\#($0 % 3),"v":\#(value)}"# }.joined(separator: ",") + "]"
  }

  @Test(arguments: [
    #"{"feed":"m","kind":"collection"}"#,
    #"{"feed":"m","kind":"collection","bins":[{"name":"a","filter":"@.k == 1","sort":[{"by":"$.id","order":"descending"}]},{"name":"b"}]}"#,
    #"{"feed":"m","kind":"collection","section":"$.k"}"#,
    #"{"feed":"m","kind":"array","id":"$.id"}"#,
  ])
  func manyRowsThatReturn(definition: String) throws {
    _ = harness.ask(client, "define", definition)
    let all = #"{"feed":"m","elements":\#(elements(0))}"#
    let fill = definition.contains("array") ? "insert" : "update"
    _ = harness.ask(client, fill, all)
    expect(harness.ask(client, "select", #"{"feed":"m","at":[0,1]}"#).first?.json?["result"] != nil)
    let watcher = harness.connect()
    _ = harness.ask(watcher, "watch", #"{"feed":"m","initial":false}"#)
    let revision = harness.engine.catalog.revision
    let back = #"{"method":"\#(fill)","params":\#(all)}"#
    for take in [
      #"{"method":"delete","params":{"feed":"m","where":"@.v == 0"}}"#,
      #"{"method":"set","params":{"feed":"m","elements":[]}}"#,
    ] {
      let answer = harness.ask(client, "transaction", #"{"ops":[\#(take),\#(back)]}"#).first?.json
      expect(answer?["result"] != nil, "\(answer?.text ?? "")")
      expectEqual(harness.engine.catalog.revision, revision)
      expectEqual(harness.take(watcher), [])
    }
    let answer = harness.ask(
      client, "transaction",
      #"""
      {"ops":[{"method":"delete","params":{"feed":"m","where":"@.v == 0"}},
        {"method":"\#(fill)","params":{"feed":"m","elements":\#(elements(1))}}]}
      """#
    ).first?.json
    expect(answer?["result"] != nil, "\(answer?.text ?? "")")
    let frames = harness.take(watcher).compactMap { $0.json?["params"] }
    expectEqual(frames.count, 1)
    expectEqual(["deleted", "added"].map { frames.first?[$0]?.text }, ["[]", "[]"])
    expectEqual(frames.first?["moves"], nil)
    let rows = try harness.engine.catalog.feed(named: "m").count
    expect(rows >= Self.many)
    expectEqual(frames.first?["updated"]?.items.count, rows)
    let selected = harness.ask(client, "selected", #"{"feed":"m"}"#).first?.json?["result"]?["selected"]
    expectEqual(selected?.text, "[[0,1]]")
  }

  /// One request that lists each element twice.
  @Test func manyRowsThatReturnWithinARequest() {
    _ = harness.ask(
      client, "define",
      #"{"feed":"m","kind":"collection","bins":[{"name":"a","filter":"@.v == 0"},{"name":"b","filter":"@.v == 1"}]}"#)
    let there = elements(0)
    expect(harness.ask(client, "update", #"{"feed":"m","elements":\#(there)}"#).first?.json?["result"] != nil)
    let revision = harness.engine.catalog.revision
    let twice = #"{"feed":"m","elements":\#(elements(1).dropLast()),\#(there.dropFirst())}"#
    expect(harness.ask(client, "update", twice).first?.json?["result"] != nil)
    expectEqual(harness.engine.catalog.revision, revision)
  }

  /// The identity of the array is given up in the same transaction, which reads all its elements again.
  @Test func rowThatReturnedBeforeTheIdentityChangedIsUpdated() {
    _ = harness.ask(client, "define", #"{"feed":"a","kind":"array","id":"$.id"}"#)
    _ = harness.ask(client, "define", #"{"feed":"v","kind":"view","of":"a","sort":[{"by":"$.v"}]}"#)
    _ = harness.ask(client, "update", #"{"feed":"a","elements":[{"id":4,"v":5},{"id":10,"v":9}]}"#)
    let watcher = harness.connect()
    _ = harness.ask(watcher, "watch", #"{"feed":"a","initial":false}"#)
    let answer = harness.ask(
      client, "transaction",
      #"""
      {"ops":[
        {"method":"replace","params":{"feed":"a","elements":[{"id":7,"v":3},{"id":10,"v":2}],"at":[1,1]}},
        {"method":"define","params":{"feed":"a","kind":"array","replace":true}}]}
      """#)
    expectEqual(answer.first?.json?["result"]?["results"]?.items.first?["updated"]?.text, "[[0,1]]")
    let delta = harness.take(watcher).first?.json?["params"]
    expectEqual(["deleted", "added", "updated"].map { delta?[$0]?.text }, ["[]", "[]", "[[0,1]]"])
    expectEqual(delta?["elements"]?.text, #"[{"id":10,"v":2}]"#)
    let view = harness.ask(client, "range", #"{"feed":"v","section":0}"#).first?.json?["result"]
    expectEqual(view?["elements"]?.text, #"[{"id":10,"v":2},{"id":4,"v":5}]"#)
  }
}
