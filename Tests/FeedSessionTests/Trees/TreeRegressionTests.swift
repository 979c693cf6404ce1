import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Regressions that random trees found.
struct TreeRegressionTests {
  private let harness = EngineHarness()

  /// Returns the answer to a request of a connection without watches.
  private func ask(_ id: ConnectionID, _ method: String, _ params: String) -> String {
    harness.ask(id, method, params).last ?? ""
  }

  @Test func refusedReplacementOfSlotsIsRolledBack() {
    let (pusher, watcher) = (harness.connect(), harness.connect())
    _ = ask(pusher, "define", #"{"feed":"a","kind":"array"}"#)
    _ = ask(pusher, "define", #"{"feed":"m","kind":"slots","contents":{"A":"a"},"pattern":["A"]}"#)
    _ = ask(pusher, "insert", #"{"feed":"a","elements":[1,2,3]}"#)
    _ = ask(watcher, "watch", #"{"feed":"m"}"#)
    let refused = ask(
      pusher, "transaction",
      #"{"ops":[{"method":"define","params":{"feed":"m","kind":"slots","contents":{"A":"a"},"pattern":["A","A"],"replace":true}},{"method":"put","params":{"feed":"nobody","element":1}}]}"#
    )
    expectEqual(refused.json?.errorCode, -32000)
    _ = ask(pusher, "insert", #"{"feed":"a","elements":[4]}"#)
    let delta = harness.take(watcher).last?.json?["params"]
    expectEqual(["deleted", "added", "updated", "elements"].map { delta?[$0]?.text }, ["[]", "[[0,3]]", "[]", "[4]"])
  }

  @Test func rowNamedTwiceIsRefused() {
    let pusher = harness.connect()
    _ = ask(pusher, "define", #"{"feed":"a","kind":"array"}"#)
    _ = ask(pusher, "insert", #"{"feed":"a","elements":[1]}"#)
    func refusal(_ rows: String) -> String {
      ask(pusher, "remove", #"{"feed":"a","at":\#(rows)}"#).json?["error"]?["message"]?.string ?? ""
    }
    expect(refusal("[0,0]").contains("names row 0 twice"))
    expect(refusal("[1,1]").contains("has no row 1: it has 1"))
    expect(refusal("[0,-1]").contains("has no row -1: it has 1"))
  }

  @Test func feedsDefinedAfterAChangeInATransactionStartFromIt() {
    let (pusher, watcher) = (harness.connect(), harness.connect())
    _ = ask(pusher, "define", #"{"feed":"a","kind":"array"}"#)
    _ = ask(pusher, "define", #"{"feed":"b","kind":"composed","children":[]}"#)
    for bin in 0..<3 {
      _ = ask(pusher, "define", "{\"feed\":\"b\(bin)\",\"kind\":\"array\"}")
      _ = ask(pusher, "insertChild", "{\"feed\":\"b\",\"child\":\"b\(bin)\"}")
    }
    _ = ask(pusher, "define", #"{"feed":"g","kind":"segmented","children":["b","a"]}"#)
    let defined = ask(
      pusher, "transaction",
      #"{"ops":[{"method":"insert","params":{"feed":"a","elements":[1,2]}},{"method":"activate","params":{"feed":"g","child":"a"}},{"method":"define","params":{"feed":"m","kind":"slots","contents":{"A":"g"},"pattern":["A"]}},{"method":"define","params":{"feed":"p","kind":"composed","children":["g"]}}]}"#
    )
    expect(defined.json?["result"]?["results"] != nil)
    for feed in ["m", "p"] { _ = ask(watcher, "watch", "{\"feed\":\"\(feed)\"}") }
    _ = ask(pusher, "insert", #"{"feed":"a","elements":[3]}"#)
    let deltas = harness.take(watcher)
    expectEqual(deltas.count, 2)
    for delta in deltas {
      let params = delta.json?["params"]
      expectEqual(["deleted", "added", "updated"].map { params?[$0]?.text }, ["[]", "[[0,2]]", "[]"], "\(delta)")
    }
  }

  @Test func redefinedBinsKeepTheirRowsAndTheSelection() {
    let pusher = harness.connect()
    _ = ask(pusher, "define", #"{"feed":"c","kind":"collection","bins":[{"name":"all"}],"multiple":true}"#)
    _ = ask(pusher, "update", #"{"feed":"c","elements":[{"id":1,"v":3},{"id":2,"v":2},{"id":3,"v":1}]}"#)
    _ = ask(pusher, "select", #"{"feed":"c","all":true}"#)
    _ = ask(
      pusher, "define",
      #"{"feed":"c","kind":"collection","bins":[{"name":"all","sort":[{"by":"$.v"}]}],"multiple":true,"replace":true}"#)
    let selected = ask(pusher, "selected", #"{"feed":"c"}"#).json?["result"]?["selected"]
    expectEqual(selected?.text, "[[0,0],[0,1],[0,2]]")
  }

  /// Arrays and collections whose rows get and lose types.
  static let typed = [
    #""kind":"array","id":"$.id""#, #""kind":"array""#, #""kind":"collection","bins":[{"name":"x"}]"#,
    #""kind":"collection","bins":[{"name":"x","sort":[{"by":"$.n"}]}]"#,
  ]

  @Test(arguments: typed)
  func typesThatSlotsDoNotShowUpdateNoRowOfThem(_ definition: String) {
    let (pusher, watcher) = (harness.connect(), harness.connect())
    func define(_ more: String) -> String {
      ask(pusher, "define", "{\"feed\":\"a\",\(definition)\(more)}")
    }
    _ = define(#","type":"$.k""#)
    let elements = #"{"feed":"a","elements":[{"id":1,"k":"A","n":1},{"id":2,"n":2},{"id":3,"k":"B","n":3}]}"#
    _ = ask(pusher, definition.contains("array") ? "insert" : "update", elements)
    let slots = #""kind":"slots","contents":{"T":"a"},"pattern":["T"]"#
    _ = ask(pusher, "define", "{\"feed\":\"m\",\(slots)}")
    _ = ask(pusher, "define", "{\"feed\":\"own\",\(slots),\"types\":\"element\"}")
    _ = ask(pusher, "define", #"{"feed":"v","kind":"view","of":"m","sort":[{"by":"$.n"}],"limit":2}"#)
    _ = ask(pusher, "define", #"{"feed":"w","kind":"view","of":"m","offset":1}"#)
    for feed in ["a", "m", "own", "v", "w"] { _ = ask(watcher, "watch", "{\"feed\":\"\(feed)\"}") }
    let before = revisions(["m", "v", "w"], pusher)
    _ = define(#","replace":true"#)
    let deltas = harness.take(watcher).compactMap { $0.json?["params"] }
    expectEqual(deltas.compactMap { $0["feed"]?.string }.sorted(), ["a", "own"])
    expectEqual(deltas.map { $0["updated"]?.text }, ["[[0,0],[0,2]]", "[[0,0],[0,2]]"])
    expectEqual(revisions(["m", "v", "w"], pusher), before)
  }

  @Test(arguments: typed)
  func elementsThatARedefiningTransactionReplacesAreUpdatedInSlots(_ definition: String) {
    let (pusher, watcher) = (harness.connect(), harness.connect())
    _ = ask(pusher, "define", "{\"feed\":\"a\",\(definition),\"type\":\"$.k\"}")
    let isArray = definition.contains("array")
    let elements = #""elements":[{"id":1,"k":"A","n":1},{"id":2,"k":"B","n":2},{"id":3,"k":"C","n":3}]"#
    _ = ask(pusher, isArray ? "insert" : "update", "{\"feed\":\"a\",\(elements)}")
    _ = ask(pusher, "define", #"{"feed":"m","kind":"slots","contents":{"T":"a"},"pattern":["T"]}"#)
    _ = ask(watcher, "watch", #"{"feed":"m"}"#)
    let other = #"{"id":2,"k":"B","n":2,"v":0}"#
    let push =
      isArray
      ? #"{"method":"replace","params":{"feed":"a","elements":[\#(other)],"at":[1]}}"#
      : #"{"method":"update","params":{"feed":"a","elements":[\#(other)]}}"#
    let redefine = "{\"method\":\"define\",\"params\":{\"feed\":\"a\",\(definition),\"replace\":true}}"
    for operations in ["\(push),\(redefine)", "\(redefine),\(push)"] {
      _ = ask(pusher, "transaction", "{\"ops\":[\(operations)]}")
      let delta = harness.take(watcher).last?.json?["params"]
      expectEqual(delta?["updated"]?.text, "[[0,1]]", "\(operations)")
      _ = ask(pusher, "define", "{\"feed\":\"a\",\(definition),\"type\":\"$.k\",\"replace\":true}")
      _ = ask(pusher, isArray ? "set" : "update", "{\"feed\":\"a\",\(elements)}")
      _ = harness.take(watcher)
    }
  }

  private func revisions(_ feeds: [String], _ id: ConnectionID) -> [Int?] {
    feeds.map { ask(id, "describe", "{\"feed\":\"\($0)\"}").json?["result"]?["revision"]?.int }
  }

  @Test(arguments: [#""type":"$.k""#, #""id":"$.id","type":"$.k""#])
  func redefinitionThereAndBackListsNoRow(_ members: String) {
    let (pusher, watcher) = (harness.connect(), harness.connect())
    _ = ask(pusher, "define", #"{"feed":"a","kind":"array"}"#)
    _ = ask(pusher, "insert", #"{"feed":"a","elements":[{"id":1,"k":"A"},{"id":2,"k":"B"}]}"#)
    _ = ask(watcher, "watch", #"{"feed":"a"}"#)
    let there = #"{"method":"define","params":{"feed":"a","kind":"array",\#(members),"replace":true}}"#
    let back = #"{"method":"define","params":{"feed":"a","kind":"array","multiple":false,"replace":true}}"#
    _ = ask(pusher, "transaction", "{\"ops\":[\(there),\(back)]}")
    expectEqual(revisions(["a"], pusher), [2])
    expect(harness.take(watcher).isEmpty)
  }
}
