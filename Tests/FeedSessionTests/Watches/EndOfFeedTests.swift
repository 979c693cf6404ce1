import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Watches, connections and memory when a feed is undefined.
struct EndOfFeedTests {
  let harness = EngineHarness()
  static let definition = #"{"feed":"c","kind":"collection","type":"$.k","bins":[{"name":"a"},{"name":"b"}]}"#

  private func messages(_ id: ConnectionID) -> [Value] { harness.take(id).compactMap { Value($0) } }

  /// The feeds that a connection watches, according to `clients`.
  private func watches(_ harness: EngineHarness, _ id: ConnectionID) -> [String?]? {
    let clients = harness.ask(id, "clients").first?.json?["result"]?["clients"]?.items ?? []
    return clients.first { $0["self"]?.bool == true }?["watches"]?.items.map(\.string)
  }

  private func push(_ id: ConnectionID, _ from: Int, _ count: Int, padding: Int = 0) {
    let filler = String(repeating: "x", count: padding)
    let elements = (from..<from + count).map { #"{"id":\#($0),"k":"t","f":"\#(filler)"}"# }.joined(separator: ",")
    _ = harness.ask(id, "update", #"{"feed":"c","elements":[\#(elements)]}"#)
  }

  @Test(arguments: ["c", "c/b"]) func liveWatchReceivesTheEndOfItsFeed(feed: String) {
    let (pusher, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(pusher, "define", Self.definition)
    push(pusher, 0, 3)
    _ = harness.ask(watcher, "watch", #"{"feed":"\#(feed)"}"#)
    _ = harness.ask(pusher, "undefine", #"{"feed":"c"}"#)
    let last = messages(watcher).last?["params"]
    expectEqual(last?["ended"]?.bool, true)
    expectEqual(last?["sections"]?["deleted"]?.text, (feed == "c" ? "[0,1]" : "[0]"))
    _ = harness.ask(pusher, "define", Self.definition)
    push(pusher, 0, 3)
    expect(messages(watcher).isEmpty, "the watch must not continue with a new feed of the name")
  }

  /// A watcher that does not read while its feed is undefined receives the end later, by a delta or an empty snapshot.
  @Test(arguments: ["c", "c/b"], [(2, 0), (4, 0), (5, 0), (20, 0), (20, 3000)])
  func stoppedWatchReceivesTheEndOfItsFeed(feed: String, counts: (large: Int, small: Int)) {
    let harness = EngineHarness { $0.maxQueue = 4096 }
    let (pusher, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(pusher, "define", Self.definition)
    _ = harness.ask(watcher, "watch", #"{"feed":"\#(feed)"}"#)
    harness.stopped = [watcher]
    let filler = String(repeating: "x", count: 1000)
    for number in 0..<counts.large {
      _ = harness.ask(pusher, "update", #"{"feed":"c","element":{"id":\#(number),"f":"\#(filler)"}}"#)
    }
    for start in stride(from: 0, to: counts.small, by: 500) {
      let elements = (start..<start + 500).map { #"{"id":\#($0)}"# }.joined(separator: ",")
      _ = harness.ask(pusher, "update", #"{"feed":"c","elements":[\#(elements)]}"#)
    }
    _ = harness.ask(pusher, "undefine", #"{"feed":"c"}"#)
    harness.resume(watcher)
    let frames = harness.take(watcher).compactMap { Value($0) }
    expectEqual(frames.last?["params"]?["ended"]?.bool, true)
    expectEqual(watches(harness, watcher), [])
  }

  /// The delayed end of a throttled watch must not end a watch of the next feed of the same name.
  @Test func delayedEndDoesNotEndTheNextFeedOfTheName() {
    let (pusher, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(pusher, "define", Self.definition)
    _ = harness.ask(watcher, "watch", #"{"feed":"c","throttle":5000}"#)
    push(pusher, 0, 1)
    push(pusher, 1, 1)
    _ = harness.ask(pusher, "undefine", #"{"feed":"c"}"#)
    _ = harness.ask(pusher, "define", Self.definition)
    _ = messages(watcher)
    let answer = harness.ask(watcher, "watch", #"{"feed":"c"}"#)
    expectEqual(answer.count, 2)
    harness.advance(seconds: 10)
    expect(messages(watcher).isEmpty)
    push(pusher, 7, 1)
    expectEqual(messages(watcher).map { $0["params"]?["added"]?.text }, ["[[0,0],[1,0]]"])
    expectEqual(watches(harness, watcher), ["c"])
  }

  /// The end of a feed does not follow the answer of `unwatch`, which may find another feed with its name.
  @Test func unwatchEndsTheWatchOfAFormerFeedToo() {
    let (pusher, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(pusher, "define", Self.definition)
    _ = harness.ask(watcher, "watch", #"{"feed":"c","throttle":60000}"#)
    // The end waits for the throttle.
    push(pusher, 0, 1)
    _ = harness.ask(pusher, "undefine", #"{"feed":"c"}"#)
    _ = harness.ask(pusher, "define", Self.definition)
    expect(messages(watcher).allSatisfy { $0["params"]?["ended"] == nil })
    expectEqual(harness.engine.watches.count, 1)
    expectEqual(harness.ask(watcher, "unwatch", #"{"feed":"c"}"#), [#"{"jsonrpc":"2.0","id":1,"result":{}}"#])
    expectEqual(harness.engine.watches.count, 0)
    harness.advance(seconds: 61)
    expect(messages(watcher).isEmpty)
  }

  /// The end of the one and the beginning of the other have the same revision, so it does not tell which rows a watcher has.
  @Test("a watch does not resume from the end of one feed into another of the same commit", arguments: ["c", "c/b"])
  func successorIsNotResumed(feed: String) {
    let redefine = { (bins: String) in
      #"{"method":"define","params":{"feed":"c","kind":"collection","type":"$.k","bins":[\#(bins)],"replace":true}}"#
    }
    for again in [
      #"{"method":"undefine","params":{"feed":"c"}},{"method":"define","params":\#(Self.definition)}"#,
      redefine(#"{"name":"a"}"#) + "," + redefine(#"{"name":"a"},{"name":"b"}"#),
    ] where feed == "c/b" || again.contains("undefine") {
      let harness = EngineHarness()
      let (pusher, watcher) = (harness.connect(), harness.connect())
      func ask(_ method: String, _ params: String) { _ = harness.ask(pusher, method, params) }
      func resume(from revision: Int) -> Value? {
        _ = harness.ask(watcher, "unwatch", #"{"feed":"\#(feed)"}"#)
        let since = #"{"epoch":"test","revision":\#(revision)}"#
        return Value(harness.ask(watcher, "watch", #"{"feed":"\#(feed)","since":\#(since)}"#).first ?? "")?["result"]
      }
      ask("define", Self.definition)
      ask("update", #"{"feed":"c","element":{"id":1}}"#)
      _ = harness.ask(watcher, "watch", #"{"feed":"\#(feed)"}"#)
      ask("transaction", #"{"ops":[\#(again),{"method":"update","params":{"feed":"c","element":{"id":2}}}]}"#)
      let end = harness.take(watcher).last.flatMap { Value($0)?["params"] }
      expectEqual(end?["ended"]?.bool, true)
      expectEqual(end?["revision"]?.int, 3)
      expectEqual(resume(from: 3)?["resumed"]?.bool, false, "\(again)")
      ask("define", #"{"feed":"other","kind":"array"}"#)
      expectEqual(resume(from: 3)?["resumed"]?.bool, false, "\(again)")
      expectEqual(resume(from: 4)?["resumed"]?.bool, true, "\(again)")
      ask("update", #"{"feed":"c","element":{"id":3}}"#)
      _ = harness.take(watcher)
      expectEqual(resume(from: 3)?["resumed"]?.bool, false, "\(again)")
      let resumed = resume(from: 4)
      expectEqual(resumed?["resumed"]?.bool, true, "\(again)")
      expectEqual(resumed?["revision"]?.int, 5, "\(again)")
    }
  }

  /// Expects that an undefined feed is deallocated within a second after a connection used it.
  private func expectDeallocation(after use: (_ user: ConnectionID, _ feed: String) -> Void) throws {
    let (pusher, user) = (harness.connect(), harness.connect())
    weak var feed: Feed?
    weak var bin: Feed?
    for used in ["c", "c/a"] {
      _ = harness.ask(pusher, "define", Self.definition)
      push(pusher, 0, 10)
      use(user, used)
      feed = try harness.engine.catalog.feed(named: "c")
      bin = try harness.engine.catalog.feed(named: "c/a")
      _ = harness.ask(pusher, "undefine", #"{"feed":"c"}"#)
      harness.advance(seconds: 1)
      expect(feed == nil)
      expect(bin == nil)
    }
  }

  /// Neither watches nor the last lookup of a connection keep an undefined feed, nor do the identities that are kept after the last
  /// watch that got them.
  @Test func undefinedFeedIsDeallocated() throws {
    try expectDeallocation { user, feed in
      _ = harness.ask(user, "watch", #"{"feed":"\#(feed)"}"#)
      _ = harness.ask(user, "get", #"{"feed":"\#(feed)","at":[0,0]}"#)
    }
    try expectDeallocation { user, feed in
      _ = harness.ask(user, "watch", #"{"feed":"\#(feed)","ids":true}"#)
      _ = harness.ask(user, "unwatch", #"{"feed":"\#(feed)"}"#)
    }
  }

  /// Nor does the last request that was executed for a client that is gone.
  @Test func undefinedFeedOfAClientThatIsGoneIsDeallocated() throws {
    let harness = EngineHarness(isDurable: true)
    let (pusher, other) = (harness.connect(), harness.connect())
    _ = harness.ask(pusher, "define", Self.definition)
    weak var feed: Feed?
    feed = try harness.engine.catalog.feed(named: "c")
    harness.log?.isHeld = true
    harness.send(pusher, #"{"jsonrpc":"2.0","id":1,"method":"update","params":{"feed":"c","element":{"id":1}}}"#)
    harness.drop(pusher)
    harness.turn()
    harness.log?.isHeld = false
    harness.log?.store()
    harness.turn()
    expectEqual(feed?.kind.rows?.elementCount, 1)
    _ = harness.ask(other, "undefine", #"{"feed":"c"}"#)
    harness.advance(seconds: 1)
    expect(feed == nil)
  }

  /// Nor does a watch that waits for its throttle before it is told of the end. It keeps the history, and is charged for that.
  @Test(arguments: ["c", "c/a"]) func undefinedFeedWhoseEndWaitsIsDeallocated(watched: String) throws {
    let (pusher, watcher) = (harness.connect(), harness.connect())
    let memory = try require(harness.engine.sessions[watcher]?.snapshots)
    weak var feed: Feed?
    weak var bin: Feed?
    _ = harness.ask(pusher, "define", Self.definition)
    _ = harness.ask(watcher, "watch", #"{"feed":"\#(watched)","throttle":60000}"#)
    push(pusher, 0, 10)
    push(pusher, 10, 1)
    feed = try harness.engine.catalog.feed(named: "c")
    bin = try harness.engine.catalog.feed(named: "c/a")
    expectEqual(memory.bytes, 0)
    _ = harness.ask(pusher, "undefine", #"{"feed":"c"}"#)
    harness.advance(seconds: 1)
    expect(feed == nil)
    expect(bin == nil)
    expect(memory.bytes > 0)
    expect(messages(watcher).allSatisfy { $0["params"]?["ended"] == nil })
    harness.advance(seconds: 60)
    let ends = messages(watcher).compactMap { $0["params"] }
    expectEqual(ends.map { $0["ended"]?.bool }, [true])
    expectEqual(ends.first?["sections"]?["deleted"]?.text, watched == "c" ? "[0,1]" : "[0]")
    expectEqual(memory.bytes, 0)
    expectEqual(harness.engine.watches.count, 0)
  }

  /// The history of a feed that is gone is there once, whoever was not told of its end yet.
  @Test func historyOfAnUndefinedFeedIsChargedOncePerUser() throws {
    let pusher = harness.connect()
    let watchers = (0..<3).map { _ in harness.connect() } + [harness.connect(uid: 2000)]
    _ = harness.ask(pusher, "define", Self.definition)
    for (watcher, more) in zip(watchers, ["", #","elements":false"#, "", ""]) {
      _ = harness.ask(watcher, "watch", #"{"feed":"c","throttle":60000\#(more)}"#)
    }
    push(pusher, 0, 10)
    push(pusher, 10, 1)
    _ = harness.ask(pusher, "undefine", #"{"feed":"c"}"#)
    func charges(of uid: UInt32) -> [Int] {
      harness.engine.sessions.all.filter { $0.peer.uid == uid }.map(\.snapshots.bytes).filter { $0 > 0 }
    }
    let charge = try require(charges(of: 2000).first)
    for watcher in watchers.prefix(2) {
      expectEqual(charges(of: 1000), [charge])
      harness.disconnect(watcher)
    }
    expectEqual(charges(of: 1000), [charge])
    harness.advance(seconds: 61)
    expectEqual(charges(of: 1000) + charges(of: 2000), [])
    expectEqual(harness.engine.watches.count, 0)
  }

  /// A bin that a redefinition removes ends like a feed; its collection stays.
  @Test func binRemovedByARedefinitionEnds() throws {
    let (pusher, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(pusher, "define", Self.definition)
    push(pusher, 0, 10)
    _ = harness.ask(watcher, "watch", #"{"feed":"c/a"}"#)
    _ = messages(watcher)
    weak var bin: Feed?
    bin = try harness.engine.catalog.feed(named: "c/a")
    _ = harness.ask(pusher, "define", #"{"feed":"c","kind":"collection","replace":true,"bins":[{"name":"b"}]}"#)
    expectEqual(messages(watcher).map { $0["params"]?["ended"]?.bool }, [true])
    harness.advance(seconds: 1)
    expect(bin == nil)
    push(pusher, 20, 1)
    expect(messages(watcher).isEmpty)
  }

  /// A provider without sections ends too.
  @Test func emptyProviderEnds() {
    let (pusher, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(pusher, "define", #"{"feed":"home","kind":"composed","children":[]}"#)
    _ = harness.ask(watcher, "watch", #"{"feed":"home"}"#)
    _ = harness.ask(pusher, "undefine", #"{"feed":"home"}"#)
    let last = messages(watcher).last?["params"]
    expectEqual(last?["ended"]?.bool, true)
    expectEqual(last?["from"]?.int, 1)
    expectEqual(last?["revision"]?.int, 2)
  }
}
