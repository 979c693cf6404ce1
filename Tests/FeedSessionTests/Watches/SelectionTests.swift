import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Notifications of the selection.
struct SelectionTests {
  let harness: EngineHarness
  let pusher: ConnectionID
  let watcher: ConnectionID

  init() {
    harness = EngineHarness { $0.maxQueue = 4096 }
    (pusher, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(pusher, "define", #"{"feed":"a","kind":"array"}"#)
    _ = harness.ask(pusher, "set", #"{"feed":"a","elements":[1,2,3]}"#)
    _ = harness.ask(pusher, "watch", #"{"feed":"a","initial":false}"#)
  }

  private func select(_ row: Int) {
    _ = harness.ask(pusher, "select", #"{"feed":"a","at":[[0,\#(row)]]}"#)
  }

  /// Returns the method and the selected rows of received frames.
  private func told(_ frames: [String]) -> [String] {
    frames.compactMap { Value($0) }.filter { $0["method"] != nil }.map { frame in
      "\(frame["method"]?.string ?? "?") \(frame["params"]?["selected"]?.text ?? "-")"
    }
  }

  @Test func laterWatchReceivesTheSelection() {
    select(1)
    let now = #"{"feed":"a","since":{"epoch":"test","revision":2}}"#
    expectEqual(told(harness.ask(watcher, "watch", #"{"feed":"a"}"#)), ["snapshot -", "selection [[0,1]]"])
    expectEqual(told(harness.ask(watcher, "watch", #"{"feed":"a","initial":false}"#)), ["selection [[0,1]]"])
    expectEqual(told(harness.ask(watcher, "watch", now)), ["selection [[0,1]]"])
    _ = harness.ask(pusher, "insert", #"{"feed":"a","elements":[0],"at":0}"#)
    expectEqual(told(harness.take(watcher)), ["delta -", "selection [[0,2]]"])
    expectEqual(told(harness.ask(watcher, "watch", now)), ["delta -", "selection [[0,2]]"])
  }

  /// The selection has the coordinates of a revision that the watcher has reached, also if its connection has no room for the delta.
  @Test func selectionFollowsTheDeltaThatMovesIt() {
    _ = harness.ask(pusher, "define", #"{"feed":"b","kind":"array"}"#)
    _ = harness.ask(pusher, "insert", #"{"feed":"b","element":"\#(String(repeating: "x", count: 5000))"}"#)
    _ = harness.ask(watcher, "watch", #"{"feed":"a"}"#)
    select(1)
    _ = harness.take(watcher)
    harness.stopped = [watcher]
    // The watch is in step until a delta has no room behind the answer.
    harness.send(watcher, #"{"jsonrpc":"2.0","id":1,"method":"get","params":{"feed":"b","at":[0,0]}}"#)
    _ = harness.ask(pusher, "insert", #"{"feed":"a","elements":[0],"at":0}"#)
    harness.resume(watcher)
    expectEqual(told(harness.take(watcher)), ["delta -", "selection [[0,2]]"])
  }

  @Test func emptySelectionIsNotSent() {
    expectEqual(told(harness.ask(watcher, "watch", #"{"feed":"a"}"#)), ["snapshot -"])
    select(1)
    _ = harness.ask(pusher, "deselect", #"{"feed":"a","all":true}"#)
    expectEqual(told(harness.take(watcher)), ["selection [[0,1]]", "selection []"])
    expectEqual(told(harness.ask(watcher, "watch", #"{"feed":"a"}"#)), ["snapshot -"])
  }

  @Test func manyRowsAreCheckedLikeOne() {
    _ = harness.ask(pusher, "define", #"{"feed":"b","kind":"array"}"#)
    let elements = (0..<100).map(String.init).joined(separator: ",")
    _ = harness.ask(pusher, "insert", #"{"feed":"b","elements":[\#(elements)]}"#)
    _ = harness.ask(pusher, "define", #"{"feed":"p","kind":"composed","children":["a","b"]}"#)
    _ = harness.ask(pusher, "define", #"{"feed":"q","kind":"composed","children":["p"]}"#)
    func ask(_ method: String, _ rows: Range<Int>, and more: String = "") -> Value? {
      let paths = rows.map { "[1,\($0)]" }.joined(separator: ",") + more
      return harness.ask(pusher, method, #"{"feed":"q","at":[\#(paths)]}"#).first?.json
    }
    for (more, index, count) in [(",[1,100]", 100, 100), (",[0,3]", 3, 3), (",[2,0]", 2, 2), (",[1,-1]", -1, 100)] {
      let refused = ask("select", 0..<90, and: more)
      expectEqual(refused?.errorCode, -32005, "\(more)")
      expectEqual(refused?.errorData?["index"]?.int, index, "\(more)")
      expectEqual(refused?.errorData?["count"]?.int, count, "\(more)")
    }
    expectEqual(ask("select", 0..<100, and: ",[0,2]")?["result"]?["selected"]?.items.count, 101)
    expectEqual(ask("deselect", 1..<100)?["result"]?["selected"]?.text, "[[0,2],[1,0]]")
    // Rules of a feed two levels below.
    for (rule, code) in [("selectable", -32006), ("multiple", -32602)] {
      _ = harness.ask(pusher, "define", #"{"feed":"b","kind":"array","replace":true,"\#(rule)":false}"#)
      expectEqual(ask("select", 0..<90)?.errorCode, code, "\(rule)")
    }
    expectEqual(ask("select", 7..<8)?["result"]?["selected"]?.text, "[[0,2],[1,7]]")
  }

  @Test func endedFeedSendsNoSelection() {
    select(1)
    _ = harness.ask(watcher, "watch", #"{"feed":"a"}"#)
    _ = harness.ask(pusher, "undefine", #"{"feed":"a"}"#)
    expectEqual(told(harness.take(watcher)), ["delta -"])
  }

  /// A selection is pending for a watcher that does not read when the feed is undefined.
  @Test func pendingSelectionIsDiscardedWhenTheFeedEnds() {
    _ = harness.ask(watcher, "watch", #"{"feed":"a"}"#)
    harness.stopped = [watcher]
    let long = String(repeating: "x", count: 3000)
    for _ in 0..<4 { _ = harness.ask(pusher, "insert", #"{"feed":"a","elements":["\#(long)"]}"#) }
    select(1)
    _ = harness.ask(pusher, "undefine", #"{"feed":"a"}"#)
    harness.resume(watcher)
    let frames = harness.take(watcher)
    expectEqual(frames.last?.json?["params"]?["ended"]?.bool, true)
    expect(!frames.contains { $0.json?["method"]?.string == "selection" })
  }

  /// A watcher that does not read is told the last selection when it reads again, and nothing else. It resumed from after the last
  /// change of the feed.
  @Test func fullConnectionIsToldTheLastSelection() {
    let long = String(repeating: "x", count: 6000)
    _ = harness.ask(pusher, "define", #"{"feed":"b","kind":"array"}"#)
    _ = harness.ask(pusher, "insert", #"{"feed":"b","element":"\#(long)"}"#)
    _ = harness.ask(watcher, "watch", #"{"feed":"a","since":{"epoch":"test","revision":4}}"#)
    harness.stopped = [watcher]
    _ = harness.ask(watcher, "get", #"{"feed":"b","at":[0,0]}"#)
    select(0)
    select(1)
    harness.resume(watcher)
    expectEqual(told(harness.take(watcher)), ["selection [[0,0],[0,1]]"])
    select(2)
    expectEqual(told(harness.take(watcher)), ["selection [[0,0],[0,1],[0,2]]"])
  }

  /// A long selection is encoded once for all watchers, whether they share deltas or not.
  @Test func watchersShareTheSelection() {
    let harness = EngineHarness()
    let pusher = harness.connect(uid: 2000)
    let watchers = (0..<8).map { _ in harness.connect() }
    _ = harness.ask(pusher, "define", #"{"feed":"a","kind":"array"}"#)
    let rows = 5000
    _ = harness.ask(pusher, "set", #"{"feed":"a","elements":[\#((0..<rows).map(String.init).joined(separator: ","))]}"#)
    for (place, watcher) in watchers.enumerated() {
      let throttle = place % 2 == 0 ? 0 : 60_000
      _ = harness.ask(watcher, "watch", #"{"feed":"a","initial":false,"throttle":\#(throttle)}"#)
    }
    harness.stopped = Set(watchers)
    let before = harness.engine.sessions.quotas.bytes(of: 1000)
    _ = harness.ask(pusher, "select", #"{"feed":"a","all":true}"#)
    let held = harness.engine.sessions.quotas.bytes(of: 1000) - before
    var lengths: Set<Int> = []
    for watcher in watchers {
      harness.resume(watcher)
      let frames = harness.take(watcher)
      expectEqual(frames.map { $0.json?["params"]?["selected"]?.items.count }, [rows])
      lengths.formUnion(frames.map(\.utf8.count))
    }
    expectEqual(lengths.count, 1)
    expect(held > 0 && held < 2 * (lengths.first ?? 0))
    expectEqual(harness.engine.sessions.quotas.bytes(of: 1000), before)
  }

  /// Several rows where one may be selected, in the feed itself and in one that shows it.
  @Test(arguments: ["a", "p"]) func errorNamesTheParameterThatNamesTheRows(_ feed: String) {
    _ = harness.ask(pusher, "define", #"{"feed":"a","kind":"array","multiple":false,"replace":true}"#)
    _ = harness.ask(pusher, "define", #"{"feed":"p","kind":"composed","children":["a"]}"#)
    for (rows, member) in [(#""at":[[0,0],[0,1]]"#, "at"), (#""all":true"#, "all")] {
      let answer = Value(harness.ask(pusher, "select", #"{"feed":"\#(feed)",\#(rows)}"#).first ?? "")
      expect(answer?.errorCode == -32602 && answer?.errorData?["member"]?.string == member)
    }
    expectEqual(
      harness.ask(pusher, "selected", #"{"feed":"\#(feed)"}"#).first?.json?["result"]?["selected"]?.text, "[]")
  }
}
