import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

struct ProviderTests {
  private let harness = EngineHarness()

  @Test func changesOfChildrenAreShiftedToTheProvider() {
    let (pusher, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(pusher, "define", #"{"feed":"banner","kind":"single"}"#)
    _ = harness.ask(pusher, "define", MainJobTests.inbox)
    _ = harness.ask(pusher, "define", #"{"feed":"home","kind":"composed","children":["banner","inbox"]}"#)
    _ = harness.ask(pusher, "define", #"{"feed":"tabs","kind":"segmented","children":["home","inbox/urgent"]}"#)
    _ = harness.ask(watcher, "watch", #"{"feed":"tabs"}"#)
    _ = harness.take(watcher)
    _ = harness.ask(pusher, "update", #"{"feed":"inbox","element":{"id":1,"priority":9}}"#)
    expectEqual(
      harness.take(watcher),
      [
        #"{"jsonrpc":"2.0","method":"delta","params":{"feed":"tabs","from":4,"revision":5,"deleted":[],"added":[[1,0],[2,0]],"updated":[],"elements":[{"id":1,"priority":9},{"id":1,"priority":9}]}}"#
      ])
    expectEqual(
      harness.ask(pusher, "activate", #"{"feed":"tabs","child":7}"#),
      [
        #"{"jsonrpc":"2.0","id":1,"result":{"revision":6,"deleted":[],"added":[[0,0]],"updated":[],"sections":{"deleted":[0,1,2],"added":[{"at":0,"name":"inbox/urgent"}]}}}"#
      ])
    expectEqual(
      harness.take(watcher),
      [
        #"{"jsonrpc":"2.0","method":"delta","params":{"feed":"tabs","from":5,"revision":6,"deleted":[],"added":[[0,0]],"updated":[],"sections":{"deleted":[0,1,2],"added":[{"at":0,"name":"inbox/urgent"}]},"elements":[{"id":1,"priority":9}]}}"#
      ])
  }

  /// Inserting an empty child increments the revision of the daemon, but not that of the feed.
  @Test func insertingAnEmptyChildKeepsTheFeedRevision() {
    let (pusher, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(pusher, "define", #"{"feed":"empty","kind":"composed","children":[]}"#)
    _ = harness.ask(pusher, "define", #"{"feed":"list","kind":"array"}"#)
    _ = harness.ask(pusher, "define", #"{"feed":"home","kind":"composed","children":["list"]}"#)
    _ = harness.ask(pusher, "define", #"{"feed":"tabs","kind":"segmented","children":["list"]}"#)
    for (feed, revision) in [("home", 3), ("tabs", 4)] {
      _ = harness.ask(watcher, "watch", #"{"feed":"\#(feed)","initial":false}"#)
      let before = harness.engine.catalog.revision
      _ = harness.ask(pusher, "insertChild", #"{"feed":"\#(feed)","child":"empty","at":0}"#)
      expectEqual(harness.engine.catalog.revision, before + 1)
      let description = harness.ask(pusher, "describe", #"{"feed":"\#(feed)"}"#).first.flatMap { Value($0) }?["result"]
      expectEqual(description?["children"]?.text, #"["empty","list"]"#)
      expectEqual(description?["revision"]?.int, revision)
      expectEqual(harness.take(watcher), [])
    }
  }

  @Test func slotsInterleaveTheirContents() {
    let (pusher, watcher) = (harness.connect(), harness.connect())
    for feed in ["letters", "numbers"] { _ = harness.ask(pusher, "define", #"{"feed":"\#(feed)","kind":"array"}"#) }
    _ = harness.ask(
      pusher, "define",
      #"{"feed":"mix","kind":"slots","contents":{"alphabet":"letters","number":"numbers"},"pattern":["alphabet","number"],"repeatables":["number"]}"#
    )
    _ = harness.ask(watcher, "watch", #"{"feed":"mix"}"#)
    _ = harness.take(watcher)
    _ = harness.ask(pusher, "insert", #"{"feed":"letters","elements":["a","b","c"]}"#)
    _ = harness.ask(pusher, "insert", #"{"feed":"numbers","elements":[1,2,3,4,5]}"#)
    let snapshot = harness.ask(pusher, "snapshot", #"{"feed":"mix"}"#)
    let section = snapshot.first?.json?["result"]?["sections"]?.items.first
    expectEqual(section?["elements"]?.text, #"["a",1,"b",2,"c",3,4,5]"#, "\(snapshot)")
    expectEqual(
      section?["types"]?.items.map(\.string),
      ["alphabet", "number", "alphabet", "number", "alphabet", "number", "number", "number"], "\(snapshot)")
    expectEqual(harness.take(watcher).count, 2)
  }

  @Test func cyclesAndChildrenInUseAreRefused() {
    let pusher = harness.connect()
    _ = harness.ask(pusher, "define", #"{"feed":"a","kind":"composed"}"#)
    _ = harness.ask(pusher, "define", #"{"feed":"b","kind":"composed","children":["a"]}"#)
    for (method, params) in [
      ("insertChild", #"{"feed":"a","child":"b"}"#), ("insertChild", #"{"feed":"a","child":"a"}"#),
      ("insertChild", #"{"feed":"b","child":"a"}"#), ("undefine", #"{"feed":"a"}"#),
      ("define", #"{"feed":"a","kind":"composed","children":["b"],"replace":true}"#),
    ] {
      expectEqual(harness.ask(pusher, method, params).first?.json?.errorCode, -32001, "\(method) \(params)")
    }
  }

  @Test func selectionFollowsItsElement() {
    let (pusher, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(pusher, "define", #"{"feed":"list","kind":"array","multiple":true}"#)
    _ = harness.ask(pusher, "insert", #"{"feed":"list","elements":["a","b","c"]}"#)
    _ = harness.ask(watcher, "watch", #"{"feed":"list","initial":false}"#)
    _ = harness.ask(pusher, "select", #"{"feed":"list","at":[[0,0],[0,2]]}"#)
    expectEqual(harness.take(watcher).last?.json?["params"]?["selected"]?.text, "[[0,0],[0,2]]")
    _ = harness.ask(pusher, "move", #"{"feed":"list","from":0,"to":2}"#)
    expectEqual(harness.take(watcher).last?.json?["params"]?["selected"]?.text, "[[0,1],[0,2]]")
    _ = harness.ask(pusher, "remove", #"{"feed":"list","at":[2]}"#)
    expectEqual(harness.take(watcher).last?.json?["params"]?["selected"]?.text, "[[0,1]]")
  }
}
