import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Large feeds and small frames: snapshots have many parts while the feeds change and their watchers stall.
struct ChangingSnapshotTests {
  private static let feeds = ["c", "a", "both"]

  private static func element(_ id: Int, _ random: inout SeededRandom) -> String {
    let filler = String(repeating: "f", count: Int.random(in: 0..<20, using: &random) == 0 ? 1200 : id % 50)
    return #"{"id":\#(id),"v":\#(Int.random(in: 0..<6, using: &random)),"f":"\#(filler)"}"#
  }

  /// A random change of the collection `c` or the array `a`, which the feed `both` shows.
  private static func change(_ random: inout SeededRandom) -> (method: String, params: String) {
    let feed = Bool.random(using: &random) ? "c" : "a"
    let id = Int.random(in: 0..<150, using: &random)
    switch Int.random(in: 0..<10, using: &random) {
    case 0: return ("delete", #"{"feed":"\#(feed)","id":\#(id)}"#)
    case 1: return ("delete", #"{"feed":"\#(feed)","where":"@.v == 5 && @.id < 30"}"#)
    case 2:
      let bins = [#"{"name":"x","filter":"@.v > 2","sort":[{"by":"$.v"}]}"#, #"{"name":"y"}"#].shuffled(using: &random)
      return ("define", #"{"feed":"c","kind":"collection","bins":[\#(bins.joined(separator: ","))],"replace":true}"#)
    default: return ("update", #"{"feed":"\#(feed)","element":\#(element(id, &random))}"#)
    }
  }

  @Test(arguments: UInt64(1)...6) func copiesEqualTheFeeds(seed: UInt64) throws {
    var limits = Limits()
    (limits.maxFrame, limits.maxQueue, limits.historyBytes) = (4096, 4096, 2000)
    let harness = EngineHarness(limits: limits, seed: seed)
    var random = SeededRandom(seed: seed)
    let pusher = harness.connect()
    for definition in [
      #"{"feed":"c","kind":"collection"}"#, #"{"feed":"a","kind":"array","id":"$.id"}"#,
      #"{"feed":"both","kind":"composed","children":["c","a"]}"#,
    ] { _ = harness.ask(pusher, "define", definition) }
    for id in 0..<150 {
      for feed in ["c", "a"] {
        _ = harness.ask(pusher, "update", #"{"feed":"\#(feed)","element":\#(Self.element(id, &random))}"#)
      }
    }
    var watchers = Self.feeds.flatMap { feed in
      [false, true].map { SnapshotWatcher(feed, spanning: $0, harness) }
    }
    for step in 1...150 {
      let (method, params) = Self.change(&random)
      _ = harness.ask(pusher, method, params)
      let place = Int.random(in: 0..<watchers.count, using: &random)
      switch Int.random(in: 0..<6, using: &random) {
      case 0: watchers[place].watch()
      case 1: harness.stopped.insert(watchers[place].id)
      case 2: harness.resume(watchers[place].id)
      case 3: harness.resume(watchers[place].id, bytes: Int.random(in: 0..<6000, using: &random))
      default: break
      }
      if step % 50 == 0 {
        for watcher in watchers { harness.resume(watcher.id) }
        harness.turn()
      }
      for index in watchers.indices { try watchers[index].receive(maxFrame: limits.maxFrame) }
      guard step % 50 == 0 else { continue }
      for watcher in watchers {
        let answer = harness.ask(pusher, "verify", #"{"feed":"\#(watcher.feed)"}"#).first?.json?["result"]
        expect(watcher.mirror?.isLive != false, "step \(step), \(watcher.feed)")
        expectEqual(watcher.mirror?.digest ?? "", answer?["digest"]?.string ?? "", "step \(step), \(watcher.feed)")
      }
    }
    expect(watchers.reduce(0) { $0 + $1.parts } > 100)
    expect(watchers.reduce(0) { $0 + $1.resets } > 1)
  }
}

/// A client that watches one feed again and again.
private struct SnapshotWatcher {
  let feed: String
  let id: ConnectionID
  private let spanning: Bool
  private let harness: EngineHarness
  private(set) var mirror: Mirror?
  private(set) var parts = 0
  private(set) var resets = 0

  init(_ feed: String, spanning: Bool, _ harness: EngineHarness) {
    (self.feed, self.spanning, self.harness, id) = (feed, spanning, harness, harness.connect())
    watch()
  }

  func watch() {
    let params = #"{"feed":"\#(feed)","spanning":\#(spanning)}"#
    harness.send(id, #"{"jsonrpc":"2.0","id":1,"method":"watch","params":\#(params)}"#)
  }

  mutating func receive(maxFrame: Int) throws {
    for text in harness.take(id) {
      expect(text.utf8.count <= maxFrame)
      let frame = try require(Value(text))
      if let result = frame["result"] {
        mirror = try Mirror(result, since: nil, initial: true, spanning: spanning)
        continue
      }
      let params = try require(frame["params"])
      switch frame["method"]?.string {
      case "delta": try mirror?.take(delta: params)
      case "snapshot":
        try mirror?.take(snapshot: params)
        parts += 1
        if params["reset"]?.bool == true { resets += 1 }
      default: throw Mirror.Violation(description: "unexpected: \(text)")
      }
    }
  }
}
