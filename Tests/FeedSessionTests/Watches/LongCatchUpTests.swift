import FeedModel
import FeedServer
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Deltas with many rows for watches that fell behind, which are composed and encoded in parts.
struct LongCatchUpTests {
  private static let count = 300

  /// Feeds of all kinds over the list `a` and the collections `c` and `k`.
  private static let definitions = [
    #"{"feed":"a","kind":"array","type":"$.t","id":"$.id"}"#,
    #"{"feed":"c","kind":"collection","type":"$.t","bins":[{"name":"x","filter":"@.v<1"},{"name":"y","filter":"@.id<0"},{"name":"z","sort":[{"by":"$.v"}]}]}"#,
    #"{"feed":"k","kind":"collection","section":"$.s"}"#,
    #"{"feed":"all","kind":"composed","children":["a","k","c"]}"#,
    #"{"feed":"slots","kind":"slots","pattern":["x","y","x"],"contents":{"x":"a","y":"k","z":"c"},"fixed":{"1":"z","4":"z"}}"#,
    #"{"feed":"own","kind":"slots","pattern":["x","y"],"contents":{"x":"a","y":"c"},"types":"element"}"#,
    #"{"feed":"tail","kind":"view","of":"all","offset":2,"limit":70}"#,
    #"{"feed":"sorted","kind":"view","of":"k","sort":[{"by":"$.v"}],"offset":1}"#,
  ]
  private static let feeds = ["a", "c", "k", "all", "slots", "own", "tail", "sorted"]

  private static func harness(_ isSliced: Bool = true, limits: Limits = Limits()) -> EngineHarness {
    EngineHarness(limits: limits, deltas: isSliced ? SlicedWork("deltas", slice: 0, isEager: true) : nil)
  }

  private static func elements(_ count: Int, _ value: Int) -> String {
    let list = (0..<count).map { id in
      #"{"id":\#(id),"t":"t\#(id % 3)","s":"\#((id + value) % 7)","v":\#((id * 31 + value * 17) % 97)}"#
    }
    return "[" + list.joined(separator: ",") + "]"
  }

  /// Gives all rows of a feed other values.
  private static func update(_ feed: String, _ value: Int, count: Int = Self.count) -> [UInt8] {
    let method = feed == "a" && count == Self.count ? "set" : "update"
    return EngineHarness.request(method, #"{"feed":"\#(feed)","elements":\#(elements(count, value))}"#, id: 9)
  }

  private static func fill(_ harness: EngineHarness, _ client: ConnectionID) {
    for definition in definitions { expect(harness.ask(client, "define", definition).first?.json?["result"] != nil) }
    for feed in ["a", "c", "k"] { harness.deliver(client, update(feed, 0)) }
    _ = harness.take(client)
  }

  private static func watch(_ feed: String, since revision: Int? = nil) -> [UInt8] {
    let since = revision.map { #","since":{"epoch":"test","revision":\#($0)}"# } ?? #","initial":false"#
    return EngineHarness.request("watch", #"{"feed":"\#(feed)"\#(since)}"#)
  }

  /// Fills the feed `k` with many sections, and makes connections watch the counts of feeds above it, two of each feed.
  private static func watchCounts(of feeds: [String], _ harness: EngineHarness) -> (ConnectionID, [ConnectionID]) {
    let writer = harness.connect()
    _ = harness.ask(writer, "define", #"{"feed":"k","kind":"collection","section":"$.s"}"#)
    let elements = (0..<5000).map { #"{"id":\#($0),"s":\#($0)}"# }.joined(separator: ",")
    _ = harness.ask(writer, "update", #"{"feed":"k","elements":[\#(elements)]}"#)
    var watchers: [ConnectionID] = []
    for feed in feeds {
      _ = harness.ask(writer, "define", #"{"feed":"\#(feed)","kind":"composed","children":["k"]}"#)
      for _ in 0..<2 {
        watchers.append(harness.connect())
        _ = harness.ask(watchers[watchers.count - 1], "watch", #"{"feed":"\#(feed)","elements":false}"#)
      }
    }
    return (writer, watchers)
  }

  @Test("the counts of very many sections of one feed are sent for every commit")
  func countsOfEachCommit() {
    let harness = EngineHarness(limits: Limits(), deltas: SlicedWork("deltas", slice: 0))
    let (writer, watchers) = Self.watchCounts(of: ["all"], harness)
    for id in 1...3 {
      harness.supply(writer, "update", #"{"feed":"k","element":{"id":\#(id),"s":0},"animation":"a\#(id)"}"#)
    }
    harness.turn()
    for watcher in watchers {
      let deltas = harness.take(watcher).compactMap { $0.json?["params"] }
      expectEqual(deltas.map { $0["counts"]?.items.first?.int }, [2, 3, 4])
      expectEqual(deltas.map { $0["animation"]?.string }, ["a1", "a2", "a3"])
    }
    expectEqual(harness.engine.status.counters.composedDeltas, 0)
  }

  @Test("the counts of very many sections of many feeds are written later, once for all watches of a feed")
  func countsOfManyFeeds() {
    let harness = EngineHarness(limits: Limits(), deltas: SlicedWork("deltas", slice: 0))
    let (writer, watchers) = Self.watchCounts(of: (100..<250).map { "all\($0)" }, harness)
    var late = 0
    for id in 1...2 {
      _ = harness.ask(writer, "update", #"{"feed":"k","element":{"id":\#(id),"s":\#(id),"v":1},"animation":"fade"}"#)
      let deltas = watchers.flatMap { harness.take($0) }
      expectEqual(deltas.count, watchers.count)
      expect(deltas.allSatisfy { $0.contains(#""animation":"fade""#) })
      let length = (deltas.first?.utf8.count ?? 0) + 4
      late += watchers.count - 2 * ((1 << 20) / length + 1)
      expectEqual(Int(harness.engine.status.counters.composedDeltas), late)
    }
  }

  @Test func equalsTheDeltaThatIsComposedAtOnce() {
    var received: [[[String]]] = []
    for isSliced in [false, true] {
      let harness = Self.harness(isSliced)
      let writer = harness.connect()
      Self.fill(harness, writer)
      let slow = Self.feeds.map { _ in harness.connect() }
      for (client, feed) in zip(slow, Self.feeds) { harness.deliver(client, Self.watch(feed)) }
      let counting = harness.connect()
      _ = harness.ask(counting, "watch", #"{"feed":"k","elements":false}"#)
      let revision = Int(harness.engine.catalog.revision)
      let stopped = slow + [counting]
      for client in stopped { _ = harness.take(client) }
      var frames: [[String]] = []
      for value in 1...3 {
        harness.stopped = Set(stopped)
        // The queues are full after the first delta of each feed.
        for _ in 0..<12 { for feed in ["a", "c", "k"] { harness.deliver(writer, Self.update(feed, value)) } }
        _ = harness.ask(writer, "move", #"{"feed":"a","from":\#(value),"to":250}"#)
        _ = harness.ask(writer, "remove", #"{"feed":"a","at":100,"count":\#(value * 10)}"#)
        _ = harness.ask(writer, "delete", #"{"feed":"k","where":"@.id<\#(value * 50)"}"#)
        for client in stopped { harness.resume(client) }
        frames += stopped.map { harness.take($0) }
        let since = Self.feeds.map { _ in harness.connect() }
        for (client, feed) in zip(since, Self.feeds) { harness.deliver(client, Self.watch(feed, since: revision)) }
        frames += since.map { harness.take($0) }
      }
      received.append(frames)
    }
    expectEqual(received[0].map(\.count), received[1].map(\.count))
    for (place, (direct, sliced)) in zip(received[0], received[1]).enumerated() {
      let isSame = direct == sliced
      expect(isSame, "watcher \(place)")
    }
    expect(received[0].allSatisfy { !$0.isEmpty })
  }

  /// Requests are executed while a delta is made. It shows the state at its revision, and the next one the later changes.
  @Test(arguments: feeds) func othersChangeTheFeedMeanwhile(_ name: String) {
    let harness = Self.harness()
    let (writer, watcher) = (harness.connect(), harness.connect())
    Self.fill(harness, writer)
    let revision = Int(harness.engine.catalog.revision)
    for feed in ["a", "c", "k"] { harness.deliver(writer, Self.update(feed, 1, count: 100)) }
    let direct = harness.connect()
    harness.deliver(direct, Self.watch(name, since: revision))
    let expected = harness.take(direct).last
    _ = harness.take(writer)
    harness.supply(watcher, Self.watch(name, since: revision))
    harness.turnOnce()
    expectEqual(harness.take(watcher).count, 1)
    var changes = 0
    while harness.halfFrame(of: watcher) == 0 && changes < 1000 {
      for feed in ["a", "c", "k"] { harness.supply(writer, Self.update(feed, 2 + changes % 2, count: 20)) }
      harness.supply(writer, "remove", #"{"feed":"a","at":3}"#)
      harness.turnOnce()
      expectEqual(harness.take(writer).count, 4)
      changes += 1
    }
    harness.turn()
    expect(changes > 0 && changes < 1000)
    let frames = harness.take(watcher)
    let isSame = frames.first == expected
    expect(isSame, "\(name)")
    let revisions = frames.compactMap { Value($0)?["params"] }
      .map { (from: $0["from"]?.int, to: $0["revision"]?.int) }
    for (delta, next) in zip(revisions, revisions.dropFirst()) { expect(next.from == nil || delta.to == next.from) }
    let feed = try? harness.engine.catalog.feed(named: name)
    expectEqual(revisions.last?.to, feed.map { Int($0.revision) })
  }

  /// Begins a delta of the feed `c` for a watcher.
  private static func begin() -> (harness: EngineHarness, writer: ConnectionID, watcher: ConnectionID) {
    let harness = Self.harness()
    let (writer, watcher) = (harness.connect(), harness.connect())
    fill(harness, writer)
    let revision = Int(harness.engine.catalog.revision)
    harness.deliver(writer, update("c", 1))
    harness.supply(watcher, watch("c", since: revision))
    harness.turnOnce()
    return (harness, writer, watcher)
  }

  @Test func feedMayEndMeanwhile() {
    let (harness, writer, watcher) = Self.begin()
    for feed in ["tail", "own", "slots", "all"] { _ = harness.ask(writer, "undefine", #"{"feed":"\#(feed)"}"#) }
    harness.supply(writer, "undefine", #"{"feed":"c"}"#)
    harness.turn()
    let last = harness.take(watcher).last.flatMap { Value($0) }
    expectEqual(last?["params"]?["ended"]?.bool, true)
    expect(!harness.hasWork)
  }

  @Test func watchesShareADeltaAndMayEndMeanwhile() {
    let harness = Self.harness()
    let writer = harness.connect()
    Self.fill(harness, writer)
    let revision = Int(harness.engine.catalog.revision)
    harness.deliver(writer, Self.update("c", 1))
    let watchers = (0..<5).map { _ in harness.connect() }
    for watcher in watchers[..<4] { harness.supply(watcher, Self.watch("c", since: revision)) }
    harness.turnOnce()
    expectEqual(harness.engine.watches.catchUps.deltas.count, 1)
    harness.supply(watchers[4], Self.watch("c", since: revision))
    harness.drop(watchers[0])
    harness.supply(watchers[1], "unwatch", #"{"feed":"c"}"#)
    harness.turnOnce()
    // The second one waits: the first is being made.
    expectEqual(harness.engine.watches.catchUps.deltas.map(\.receivers.count), [2, 1])
    harness.turn()
    let delta = "\"delta\" \(revision) \(revision + 1)"
    expectEqual(harness.messages(watchers[1]), ["answer -1 -1", "answer -1 -1"])
    for watcher in watchers[2...] { expectEqual(harness.messages(watcher), ["answer -1 -1", delta]) }
    harness.deliver(writer, Self.update("c", 2))
    let next = "\"delta\" \(revision + 1) \(revision + 2)"
    expectEqual(watchers[1...].map { harness.messages($0) }, [[], [next], [next], [next]])
  }

  /// The watches of one user that can be advanced now do not hold up that of another.
  @Test func usersShareATurn() {
    let harness = Self.harness(false)
    let writer = harness.connect()
    Self.fill(harness, writer)
    let revision = Int(harness.engine.catalog.revision)
    harness.deliver(writer, Self.update("c", 1))
    let many = harness.connect((1...100).map { Peer(uid: 1001, gid: 1001, pid: $0) })
    let one = harness.connect(uid: 1002)
    for client in many { harness.supply(client, Self.watch("c", since: revision)) }
    harness.supply(one, Self.watch("c", since: revision))
    harness.turnOnce()
    expectEqual(harness.take(one).count, 2)
    let served = many.count { harness.take($0).count == 2 }
    expect(served < 10)
    harness.turn()
    expectEqual(many.count { harness.take($0).count == 1 }, 100 - served)
  }

  /// A delta that watches of two users need is made when the first of them has its turn.
  @Test(arguments: ["k", "c"]) func usersTakeTurns(feed: String) {
    let harness = Self.harness()
    let writer = harness.connect()
    Self.fill(harness, writer)
    let revision = Int(harness.engine.catalog.revision)
    for value in 1...6 { harness.deliver(writer, Self.update("c", value)) }
    for value in 1...6 { harness.deliver(writer, Self.update("k", value)) }
    let many = (0..<6).map { _ in harness.connect(uid: 1001) }
    let one = harness.connect(uid: 1002)
    for (place, client) in many.enumerated() { harness.supply(client, Self.watch("c", since: revision + place)) }
    harness.supply(one, Self.watch(feed, since: revision + 5))
    harness.turnOnce()
    for client in many + [one] { expectEqual(harness.take(client).count, 1) }
    func reached() -> [Bool] { many.map { harness.halfFrame(of: $0) > 0 } }
    while harness.hasWork && harness.halfFrame(of: one) == 0 { harness.turnOnce() }
    // The next receiver of the same delta.
    harness.turnOnce()
    expectEqual(reached(), [true, false, false, false, false, feed == "c"])
    harness.turn()
    expect(reached().allSatisfy { $0 })
    expect(!harness.hasWork)
  }

  @Test func deltaThatDoesNotFitAFrameIsASnapshot() {
    var limits = Limits()
    limits.maxFrame = 20_000
    let harness = Self.harness(limits: limits)
    let (writer, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(writer, "define", #"{"feed":"c","kind":"collection"}"#)
    let revision = Int(harness.engine.catalog.revision)
    for start in stride(from: 0, to: 600, by: 100) {
      let list = (start..<start + 100).map { #"{"id":\#($0),"v":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}"# }
      _ = harness.ask(writer, "update", #"{"feed":"c","elements":[\#(list.joined(separator: ","))]}"#)
    }
    harness.deliver(watcher, Self.watch("c", since: revision))
    let messages = harness.messages(watcher)
    expect(messages.count > 2 && messages.dropFirst().allSatisfy { $0.hasPrefix("\"snapshot\"") })
  }

  /// What was begun is finished with the daemon.
  @Test func daemonMayEndMeanwhile() {
    let harness = Self.begin().harness
    expect(harness.engine.watches.catchUps.hasWork)
  }
}
