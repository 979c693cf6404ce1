import Testing

@testable import FeedEngine

/// A row that leaves and comes back within one commit is the same row if its identity is the same.
@Suite struct ReturningRowsTests {
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

  private func change(_ elements: String) -> String {
    let answer = harness.ask(client, "update", #"{"feed":"c","elements":\#(elements)}"#).first ?? ""
    return String(answer.split(separator: #""deleted":"#).last ?? "")
  }

  @Test func toTheSamePlaceItIsUpdated() {
    #expect(
      change(#"[{"id":2,"k":2},{"id":2,"k":1,"v":1}]"#) == #"[],"added":[],"updated":[[0,1],[1,1]]}}"#)
  }

  @Test func asItWasItIsNothing() {
    #expect(change(#"[{"id":2,"k":2},{"id":2,"k":1}]"#) == #"[],"added":[],"updated":[]}}"#)
    #expect(change(#"[{"id":2,"k":9},{"id":2,"k":1}]"#) == #"[],"added":[],"updated":[]}}"#)
  }

  @Test func toAnotherPlaceItMoves() {
    #expect(
      change(#"[{"id":1,"k":9},{"id":1,"k":1}]"#)
        == #"[[0,0],[1,0]],"added":[[0,1],[1,1]],"updated":[],"moves":[[0,0],[1,1]]}}"#)
  }

  @Test func acrossATransactionToo() {
    let watcher = harness.connect()
    _ = harness.ask(watcher, "watch", #"{"feed":"c","initial":false}"#)
    let revision = harness.engine.catalog.revision
    _ = harness.ask(
      client, "transaction",
      #"{"ops":[{"method":"delete","params":{"feed":"c","id":2}},{"method":"update","params":{"feed":"c","element":{"id":2,"k":1}}}]}"#
    )
    #expect(harness.take(watcher) == [])
    #expect(harness.engine.catalog.revision == revision)
    _ = harness.ask(
      client, "transaction",
      #"{"ops":[{"method":"delete","params":{"feed":"c","id":2}},{"method":"update","params":{"feed":"c","element":{"id":2,"k":1,"v":1}}}]}"#
    )
    #expect(harness.take(watcher).first?.contains(#""deleted":[],"added":[],"updated":[[0,1],[1,1]]"#) == true)
  }
}
