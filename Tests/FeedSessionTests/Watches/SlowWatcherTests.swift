import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Watchers that do not read for a while: what is queued for them costs little, none is closed, and each copy is right later.
struct SlowWatcherTests {
  private static let user: UInt32 = 7

  private func makeHarness(_ set: (inout Limits) -> Void = { _ in }) -> EngineHarness {
    var limits = Limits()
    limits.maxConnections = 5000
    limits.maxConnectionsPerUser = 5000
    limits.maxWatches = 20_000
    set(&limits)
    return EngineHarness(limits: limits)
  }

  private func update(_ feed: String, _ id: Int, bytes: Int, version: Int = 0) -> [UInt8] {
    let filler = String(repeating: "x", count: bytes)
    return EngineHarness.request(
      "update", #"{"feed":"\#(feed)","element":{"id":\#(id),"v":\#(version),"f":"\#(filler)"}}"#)
  }

  /// Applies what a connection received to its copies, by the names of the feeds.
  private func apply(_ frames: [String], to copies: inout [String: Mirror]) throws {
    for frame in frames.compactMap({ Value($0) }) {
      guard let params = frame["params"], let feed = params["feed"]?.string else {
        if let result = frame["result"], let feed = result["feed"]?.string {
          copies[feed] = try Mirror(result, since: nil, initial: true)
        }
        continue
      }
      switch frame["method"]?.string {
      case "snapshot": try copies[feed]?.take(snapshot: params)
      case "delta": try copies[feed]?.take(delta: params)
      default: break
      }
    }
  }

  private func rows(_ harness: EngineHarness, _ feed: String) throws -> [String] {
    let feed = try harness.engine.catalog.feed(named: feed)
    return (0..<feed.count).map { String(decoding: feed.section(at: 0).row(at: $0).text.map { $0 }, as: UTF8.self) }
  }

  private func isClosing(_ harness: EngineHarness, _ id: ConnectionID) -> Bool {
    harness.engine.sessions[id]?.isClosing ?? true
  }

  private func charged(_ harness: EngineHarness) -> Int { harness.engine.sessions.quotas.bytes(of: Self.user) }

  /// - Parameter size: deltas of several turns share a block, or each turn has one of its own.
  @Test(arguments: [(5000, 20), (200, 20), (20_000, 20)])
  func manyWatchersShareWhatTheyDoNotRead(size: Int, count: Int) throws {
    let harness = makeHarness()
    let pusher = harness.connect(uid: 1)
    _ = harness.ask(pusher, "define", #"{"feed":"c","kind":"collection"}"#)
    let watchers = (0..<count).map { _ in harness.connect(uid: Self.user) }
    for watcher in watchers { harness.supply(watcher, "watch", #"{"feed":"c"}"#) }
    harness.turn()
    let before = charged(harness)
    harness.stopped = Set(watchers)
    for number in 0..<300 {
      harness.supply(pusher, update("c", number % 100, bytes: size, version: number))
      harness.turnOnce()
    }
    harness.turn()
    expect(charged(harness) - before <= min(300 * (size + 250), 1 << 20 + 2 * (size + 250)))
    expect(watchers.allSatisfy { !isClosing(harness, $0) })
    harness.stopped = []
    harness.turn()
    expectEqual(charged(harness), before)
    let expected = try rows(harness, "c")
    for watcher in watchers {
      var copies: [String: Mirror] = [:]
      try apply(harness.take(watcher), to: &copies)
      expect(copies["c"]?.isLive == true && copies["c"]?.sections[0].rows.map(\.element) == expected)
    }
  }

  @Test(arguments: [256 << 20, 100_000]) func oneConnectionWithManyWatchesIsNotClosed(quota: Int) throws {
    let feeds = 1200
    let harness = makeHarness { $0.maxQueuePerUser = quota + feeds * Watch.memory }
    let pusher = harness.connect(uid: 1)
    let watcher = harness.connect(uid: Self.user)
    for feed in 0..<feeds {
      harness.supply(pusher, "define", #"{"feed":"f\#(feed)","kind":"collection"}"#)
      harness.turn()
      harness.supply(watcher, "watch", #"{"feed":"f\#(feed)"}"#)
      harness.turn()
    }
    harness.stopped = [watcher]
    for round in 0..<4 {
      for feed in 0..<feeds { harness.supply(pusher, update("f\(feed)", round, bytes: 50)) }
      harness.turn()
    }
    expect(!isClosing(harness, watcher))
    expect(charged(harness) <= quota + feeds * Watch.memory)
    harness.stopped = []
    harness.turn()
    var copies: [String: Mirror] = [:]
    try apply(harness.take(watcher), to: &copies)
    expectEqual(copies.count, feeds)
    for (name, copy) in copies {
      expect(copy.isLive)
      try expectEqual(copy.sections[0].rows.map(\.element), rows(harness, name))
    }
  }

  /// Beyond the quota, deltas that are not begun are discarded. What the peer has begun to read, and what precedes the answer to a
  /// `sync`, is not.
  @Test(arguments: [0, 1, 500, 3500]) func deltasAreDiscardedBeyondTheQuota(read: Int) throws {
    let harness = makeHarness { $0.maxQueuePerUser = 9000 }
    let (pusher, watcher) = (harness.connect(uid: 1), harness.connect(uid: Self.user))
    for feed in ["a", "b"] {
      _ = harness.ask(pusher, "define", #"{"feed":"\#(feed)","kind":"collection"}"#)
      harness.send(
        watcher, String(decoding: EngineHarness.request("watch", #"{"feed":"\#(feed)"}"#).dropFirst(4), as: UTF8.self))
    }
    harness.stopped = [watcher]
    harness.deliver(pusher, update("a", 1, bytes: 2500))
    harness.deliver(pusher, update("b", 1, bytes: 500))
    harness.deliver(watcher, "sync", "{}", id: 77)
    harness.deliver(pusher, "select", #"{"feed":"a","at":[0,0]}"#)
    for round in 2..<20 {
      for feed in ["a", "b"] { harness.deliver(pusher, update(feed, round, bytes: 1000)) }
      if round == 4 { harness.resume(watcher, bytes: read) }
      expect(charged(harness) <= 9000)
    }
    expect(!isClosing(harness, watcher))
    harness.resume(watcher)
    let frames = harness.take(watcher)
    // Both copies are complete up to the `sync` when its answer arrives.
    let place = try require(frames.firstIndex { Value($0)?["id"]?.int == 77 })
    var copies: [String: Mirror] = [:]
    try apply(Array(frames[..<place]), to: &copies)
    expect(copies.values.allSatisfy { $0.isLive && $0.sections[0].rows.count == 1 })
    try apply(Array(frames[place...]), to: &copies)
    for (name, copy) in copies { try expectEqual(copy.sections[0].rows.map(\.element), rows(harness, name)) }
    let selections = frames.compactMap { Value($0) }.filter { $0["method"]?.string == "selection" }
    expectEqual(selections.last?["params"]?["selected"]?.text, "[[0,0]]")
  }

  /// A snapshot that was cut off begins again.
  @Test(arguments: [0, 1, 70_000, 140_000]) func snapshotsAreDiscardedBeyondTheQuota(read: Int) throws {
    let harness = makeHarness { $0.maxQueuePerUser = 300_000 }
    let pusher = harness.connect(uid: 1)
    _ = harness.ask(pusher, "define", #"{"feed":"c","kind":"collection"}"#)
    for id in 0..<500 { harness.supply(pusher, update("c", id, bytes: 1000)) }
    harness.turn()
    let watchers = (0..<3).map { _ in harness.connect(uid: Self.user) }
    for watcher in watchers {
      harness.supply(watcher, "watch", #"{"feed":"c"}"#)
      harness.stopped.insert(watcher)
      harness.turn()
      harness.resume(watcher, bytes: read)
    }
    for id in 0..<500 { harness.supply(pusher, update("c", id, bytes: 1000, version: 2)) }
    harness.turn()
    expect(charged(harness) <= 300_000)
    expect(watchers.allSatisfy { !isClosing(harness, $0) })
    harness.stopped = []
    harness.turn()
    for watcher in watchers {
      var copies: [String: Mirror] = [:]
      try apply(harness.take(watcher), to: &copies)
      expectEqual(copies["c"]?.isLive, true)
      try expectEqual(copies["c"]?.sections[0].rows.map(\.element), rows(harness, "c"))
    }
  }

  /// The end of a feed is told, although its watch is gone.
  @Test func endOfAFeedIsNotDiscarded() throws {
    let harness = makeHarness { $0.maxQueuePerUser = 4000 }
    let (pusher, watcher) = (harness.connect(uid: 1), harness.connect(uid: Self.user))
    for feed in ["a", "b"] {
      _ = harness.ask(pusher, "define", #"{"feed":"\#(feed)","kind":"collection"}"#)
      _ = harness.ask(watcher, "watch", #"{"feed":"\#(feed)"}"#)
    }
    harness.stopped = [watcher]
    _ = harness.ask(pusher, "undefine", #"{"feed":"a"}"#)
    for round in 0..<10 { harness.deliver(pusher, update("b", round, bytes: 1000)) }
    harness.resume(watcher)
    let ends = harness.take(watcher).compactMap { Value($0) }.filter { $0["params"]?["ended"]?.bool == true }
    expectEqual(ends.map { $0["params"]?["feed"]?.string }, ["a"])
    expect(harness.isOpen(watcher))
  }
}
