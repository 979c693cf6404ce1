import FeedModel
import FeedServer
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// What a user is charged for besides queued output and incomplete frames: watches, snapshots, and requests also after their
/// connection is closed.
struct ChargeTests {
  private static let user: UInt32 = 7

  private func charged(_ harness: EngineHarness) -> Int { harness.engine.sessions.quotas.bytes(of: Self.user) }

  private func held(_ harness: EngineHarness, _ observer: ConnectionID, _ id: ConnectionID) -> Int? {
    let clients = harness.ask(observer, "clients").first?.json?["result"]?["clients"]
    return clients?.items.first { $0["connection"]?.int == id.rawValue + 1 }?["held"]?.int
  }

  /// Defines a feed named `c` with `count` elements. Returns a connection of an administrator.
  private func fill(_ harness: EngineHarness, count: Int) -> ConnectionID {
    let observer = harness.connect(uid: 0)
    _ = harness.ask(observer, "define", #"{"feed":"c","kind":"collection"}"#)
    _ = harness.ask(observer, "update", #"{"feed":"c","elements":[\#(elements(0..<count))]}"#)
    return observer
  }

  private func elements(_ ids: Range<Int>, value: Int = 0) -> String {
    ids.map { #"{"id":\#($0),"v":\#(value)}"# }.joined(separator: ",")
  }

  @Test(arguments: [false, true]) func watchesCountUntilTheyEnd(isDurable: Bool) {
    let harness = EngineHarness(isDurable: isDurable)
    let observer = fill(harness, count: 1)
    for name in ["a", "b"] { _ = harness.ask(observer, "define", #"{"feed":"\#(name)","kind":"single"}"#) }
    let watcher = harness.connect(uid: Self.user)
    for (place, name) in ["a", "b", "c"].enumerated() {
      _ = harness.ask(watcher, "watch", #"{"feed":"\#(name)"}"#)
      expectEqual(held(harness, observer, watcher), (place + 1) * Watch.memory)
      expectEqual(charged(harness), (place + 1) * Watch.memory)
    }
    // Watching a feed again replaces the watch.
    _ = harness.ask(watcher, "watch", #"{"feed":"a"}"#)
    expectEqual(charged(harness), 3 * Watch.memory)
    _ = harness.ask(observer, "undefine", #"{"feed":"b"}"#)
    expectEqual(charged(harness), 2 * Watch.memory)
    _ = harness.ask(watcher, "unwatch", #"{"feed":"a"}"#)
    expectEqual(charged(harness), Watch.memory)
    harness.disconnect(watcher)
    expectEqual(charged(harness), 0)
  }

  /// Connections that leave together with many watches are closed by several turns.
  @Test func manyWatchesEndInSeveralTurns() {
    let harness = EngineHarness()
    let observer = fill(harness, count: 1)
    for place in 0..<1000 { _ = harness.ask(observer, "define", #"{"feed":"f\#(place)","kind":"single"}"#) }
    let watchers = (0..<10).map { _ in harness.connect(uid: Self.user) }
    for watcher in watchers {
      for place in 0..<1000 {
        let watch = #"{"jsonrpc":"2.0","method":"watch","params":{"feed":"f\#(place)","initial":false}}"#
        harness.supply(watcher, EngineHarness.frame(watch))
      }
    }
    harness.turn()
    expectEqual(charged(harness), 10_000 * Watch.memory)
    for watcher in watchers { harness.leave(watcher) }
    harness.turnOnce()
    expectEqual(watchers.count { harness.isOpen($0) }, 5)
    harness.turn()
    expectEqual(watchers.count { harness.isOpen($0) }, 0)
    expectEqual(charged(harness), 0)
  }

  @Test func watchesCountAgainstTheQuota() {
    let harness = EngineHarness { $0.maxQueuePerUser = 5 * Watch.memory }
    let observer = fill(harness, count: 1)
    let watchers = [3, 2, 1].map { count in
      let watcher = harness.connect(uid: Self.user)
      for place in 0..<count {
        _ = harness.ask(observer, "define", #"{"feed":"f\#(place)","kind":"single"}"#)
        _ = harness.ask(watcher, "watch", #"{"feed":"f\#(place)","initial":false}"#)
      }
      return watcher
    }
    expectEqual(watchers.map { harness.isOpen($0) }, [false, true, true])
    expectEqual(charged(harness), 3 * Watch.memory)
  }

  /// A snapshot that is not read keeps the former versions of elements that change.
  @Test func unreadSnapshotsCountWithWhatTheyCapture() {
    let harness = EngineHarness()
    let observer = fill(harness, count: 20_000)
    let watcher = harness.connect(uid: Self.user)
    harness.stopped = [watcher]
    harness.send(watcher, #"{"jsonrpc":"2.0","id":1,"method":"watch","params":{"feed":"c"}}"#)
    func snapshots() -> Int { harness.engine.sessions.snapshots.bytes }
    let unchanged = snapshots()
    expect(unchanged > 0 && unchanged < 10_000)
    for start in stride(from: 10_000, to: 20_000, by: 1000) {
      _ = harness.ask(observer, "update", #"{"feed":"c","elements":[\#(elements(start..<start + 1000, value: 1))]}"#)
    }
    let captured = snapshots()
    expect(captured > unchanged + 10_000 * 40)
    expectEqual(held(harness, observer, watcher).map { $0 > captured }, true)
    expect(charged(harness) > captured)
    harness.resume(watcher)
    expect(harness.take(watcher).count > 2)
    expect(snapshots() == 0 && charged(harness) == Watch.memory)
  }

  /// A change of all rows: of the feed that is watched, and how it is changed as a whole.
  private static let replacements: [(feed: String, method: String, params: String)] = [
    ("c", "define", #"{"feed":"c","kind":"collection","bins":[{"name":"a"}],"replace":true}"#),
    ("c", "set", #"{"feed":"c","elements":[]}"#),
    ("v", "define", #"{"feed":"v","kind":"view","of":"c","sort":[{"by":"$.v"}],"replace":true}"#),
  ]

  /// What only unread snapshots keep counts once, until the last of them ends.
  @Test(arguments: replacements)
  func snapshotsCountWithTheRowsOfAFeedThatChangedAsAWhole(_ change: (feed: String, method: String, params: String)) {
    // Each request works on a copy.
    let harness = EngineHarness(slices: SlicedWork("slices", isEager: true))
    let observer = fill(harness, count: 20_000)
    _ = harness.ask(observer, "define", #"{"feed":"v","kind":"view","of":"c","sort":[{"by":"$.id"}]}"#)
    let watchers = [Self.user, Self.user + 1].map { harness.connect(uid: $0) }
    harness.stopped = Set(watchers)
    for watcher in watchers {
      harness.send(watcher, #"{"jsonrpc":"2.0","id":1,"method":"watch","params":{"feed":"\#(change.feed)"}}"#)
    }
    func charges() -> [Int] { watchers.map { harness.engine.sessions[$0]?.snapshots.bytes ?? -1 } }
    let before = charges()
    expect(before[0] == before[1] && before[0] < 10_000)
    expectEqual(harness.ask(observer, change.method, change.params).first?.json?["error"], nil)
    let rows = charges()[0] - before[0]
    // Each element has 14 bytes or more.
    expect(rows > 20_000 * 14 && rows < 20_000 * 200)
    expectEqual(charges()[1], before[1])
    harness.disconnect(watchers[0])
    expectEqual(charges(), [-1, before[1] + rows])
    harness.resume(watchers[1])
    expect(harness.take(watchers[1]).count > 2)
    expectEqual(harness.engine.sessions.snapshots.bytes, 0)
  }

  /// A snapshot that its watcher does not read is given up for a later one.
  @Test func snapshotsCountAgainstTheQuota() {
    let harness = EngineHarness { $0.maxQueuePerUser = 1 << 19 }
    let observer = fill(harness, count: 20_000)
    let watcher = harness.connect(uid: Self.user)
    harness.stopped = [watcher]
    harness.send(watcher, #"{"jsonrpc":"2.0","id":1,"method":"watch","params":{"feed":"c"}}"#)
    for start in stride(from: 0, to: 20_000, by: 1000) {
      expect(charged(harness) <= 1 << 19)
      _ = harness.ask(observer, "update", #"{"feed":"c","elements":[\#(elements(start..<start + 1000, value: 1))]}"#)
    }
    expectEqual(harness.engine.sessions[watcher]?.isClosing, false)
    expectEqual(harness.engine.sessions.snapshots.bytes, 0)
    harness.resume(watcher)
    let parts = harness.take(watcher).compactMap(\.json).filter { $0["method"]?.string == "snapshot" }
    expect(parts.contains { $0["params"]?["reset"]?.bool == true })
    expectEqual(parts.last?["params"]?["last"]?.bool, true)
  }

  /// A request that was taken is executed although its connection is closed. It counts until then.
  @Test(arguments: [false, true]) func requestsOfClosedConnectionsCountUntilTheyAreExecuted(isKicked: Bool) {
    let harness = EngineHarness(isDurable: true)
    let observer = fill(harness, count: 1)
    let sender = harness.connect(uid: Self.user)
    harness.log?.isHeld = true
    let request =
      #"{"jsonrpc":"2.0","method":"update","params":{"feed":"c","elements":[\#(elements(0..<30_000, value: 1))]}}"#
    harness.send(sender, request)
    let waiting = charged(harness)
    expect(waiting > 2 * request.utf8.count)
    if isKicked {
      _ = harness.ask(observer, "kick", #"{"connection":\#(sender.rawValue + 1)}"#)
    } else {
      harness.disconnect(sender)
    }
    expect(!harness.isOpen(sender))
    expectEqual(charged(harness), waiting)
    let users = harness.ask(observer, "quotas").first?.json?["result"]?["users"]
    expectEqual(users?.items.first { $0["uid"]?.int == 7 }?["held"]?.int, waiting)
    expectEqual(harness.ask(observer, "stats").first?.json?["result"]?["heldBytes"]?.int, waiting)
    harness.log?.isHeld = false
    harness.log?.store()
    harness.turn()
    expectEqual(charged(harness), 0)
    expectEqual(harness.ask(observer, "get", #"{"feed":"c","id":29999}"#).first?.contains(#""v":1"#), true)
  }

  /// The answer to a request that is refused waits for the requests before it, and keeps its id.
  @Test(arguments: [false, true]) func idsOfRefusedRequestsCountWhileTheyWait(isClosed: Bool) {
    let harness = EngineHarness(isDurable: true)
    _ = fill(harness, count: 1)
    let sender = harness.connect(uid: Self.user)
    harness.log?.isHeld = true
    harness.send(sender, #"{"jsonrpc":"2.0","id":1,"method":"update","params":{"feed":"c","element":{"id":1}}}"#)
    let before = charged(harness)
    let id = "\"" + String(repeating: "x", count: 100_000) + "\""
    harness.send(sender, #"{"jsonrpc":"2.0","id":\#(id),"method":"nothing"}"#)
    expectEqual(charged(harness), before + id.utf8.count)
    if isClosed { harness.disconnect(sender) }
    harness.log?.isHeld = false
    harness.log?.store()
    harness.turn()
    expectEqual(charged(harness), 0)
    if !isClosed { expectEqual(harness.take(sender).count, 2) }
  }

  /// While a request is executed in slices, its user is charged for what it would take to undo it.
  @Test(arguments: [false, true]) func longWorkCountsWhileItIsUnderWay(isClosed: Bool) {
    let harness = EngineHarness(isDurable: true, slices: SlicedWork("slices", slice: 0))
    let observer = fill(harness, count: 1)
    let sender = harness.connect(uid: Self.user)
    let same = (0..<20_000).map { #"{"id":1,"v":\#($0)}"# }.joined(separator: ",")
    harness.supply(sender, "update", #"{"feed":"c","elements":[\#(same)]}"#)
    while !harness.isWithinBatch { harness.turnOnce() }
    let first = charged(harness)
    if isClosed {
      harness.drop(sender)
      harness.turnOnce()
      expect(!harness.isOpen(sender))
    }
    var most = first
    while harness.isWithinBatch {
      expect(charged(harness) >= first)
      most = max(most, charged(harness))
      harness.turnOnce()
    }
    harness.turn()
    // An entry of the log and a version for each element.
    expect(most > first + 19_000 * 100)
    expectEqual(charged(harness), 0)
    expectEqual(harness.ask(observer, "get", #"{"feed":"c","id":1}"#).first?.contains(#""v":19999"#), true)
  }

  /// What it would take to undo a configuration is charged to nobody, nor taken off the charge for the next long request.
  @Test func configurationIsChargedToNobody() throws {
    let harness = EngineHarness(isDurable: true, slices: SlicedWork("slices", slice: 0))
    try harness.configure(#"{"feeds":[{"feed":"c","kind":"array"}]}"#)
    let sender = harness.connect(uid: Self.user)
    _ = harness.ask(sender, "insert", #"{"feed":"c","elements":[\#(elements(0..<5000))]}"#)
    try harness.configure(#"{"feeds":[{"feed":"c","kind":"array","type":"$.v"}]}"#)
    expectEqual(charged(harness), 0)
    let params = #"{"feed":"c","elements":[\#(elements(0..<5000, value: 1))]}"#
    harness.supply(sender, "set", params)
    while !harness.isWithinBatch { harness.turnOnce() }
    let first = charged(harness)
    expect(first > params.utf8.count)
    while harness.isWithinBatch {
      expect(charged(harness) >= first)
      harness.turnOnce()
    }
    harness.turn()
    expectEqual(charged(harness), 0)
  }

  /// Closing a connection does not free the request that it sent, so others close first, and small ones stay.
  @Test func theConnectionWhoseClosingFreesMostCloses() {
    let harness = EngineHarness(isDurable: true)
    _ = fill(harness, count: 1)
    let (sender, watcher) = (harness.connect(uid: Self.user), harness.connect(uid: Self.user))
    let other = harness.connect(uid: Self.user)
    _ = harness.ask(watcher, "watch", #"{"feed":"c"}"#)
    harness.log?.isHeld = true
    let pushed = elements(0..<60_000, value: 1)
    harness.send(sender, #"{"jsonrpc":"2.0","id":1,"method":"update","params":{"feed":"c","elements":[\#(pushed)]}}"#)
    harness.engine.limits.maxQueuePerUser = charged(harness) + 50_000
    let frame = EngineHarness.frame("\"" + String(repeating: "x", count: 100_000) + "\"")
    harness.deliver(other, Array(frame.dropLast()))
    expectEqual([sender, watcher, other].map { harness.isOpen($0) }, [true, true, false])
    // The request alone exceeds the quota.
    harness.engine.limits.maxQueuePerUser = 1 << 20
    harness.deliver(watcher, Array(frame.prefix(100)))
    expectEqual([sender, watcher].map { harness.isOpen($0) }, [true, false])
    harness.log?.isHeld = false
    harness.log?.store()
    harness.turn()
    expectEqual(harness.take(sender).count, 1)
    expectEqual(charged(harness), 0)
  }
}
