import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Long random histories: the mirrors of all watchers equal the daemon's feeds whenever the watchers have caught up.
@Suite struct HistoryTests {
  private static var limits: Limits {
    var limits = Limits()
    limits.maxFrame = 16384
    limits.maxQueue = 4096
    limits.historyBytes = 2000
    limits.historySeconds = 20
    limits.bookmarkInterval = 2
    return limits
  }

  /// Counts of events in the histories of one test, to check that the histories cover them.
  private struct Tally {
    var commits = 0
    var resumed = 0
    var resets = 0
    var bookmarks = 0
    var ends = 0
    var parts = 0
  }

  private func play(_ world: World, steps: Int, _ tally: inout Tally) throws {
    let clients = (0..<4).map { _ in Client(world.harness) }
    do {
      for step in 1...steps {
        try world.mutate()
        try world.act(as: world.pick(clients))
        if world.chance(25) { world.harness.advance(seconds: Double(world.below(30)) / 10) }
        if step % 44 == 0 { try world.settle(clients) }
      }
      try world.settle(clients)
    } catch {
      Issue.record("seed \(world.random.seed): \(error)")
    }
    tally.commits += world.commits
    for client in clients {
      tally.resumed += client.resumed
      tally.resets += client.resets
      tally.bookmarks += client.bookmarks
      tally.ends += client.ends
      tally.parts += client.parts
    }
  }

  @Test(arguments: [1...10, 11...20]) func mirrorsEqualTheDaemon(seeds: ClosedRange<UInt64>) throws {
    var tally = Tally()
    for seed in seeds { try play(World(seed: seed, limits: Self.limits), steps: 220, &tally) }
    #expect(tally.commits > 1000)
    #expect(min(tally.resumed, tally.resets, tally.bookmarks, tally.ends) > 4, "\(tally)")
  }

  /// Large feeds and small frames: snapshots have many parts while the feeds change.
  @Test(arguments: [1...3, 4...6]) func snapshotsInPartsAreConsistent(seeds: ClosedRange<UInt64>) throws {
    var tally = Tally()
    for seed in seeds {
      var limits = Self.limits
      limits.maxFrame = 4096
      let world = World(seed: seed, limits: limits, identities: 150)
      world.fill()
      try play(world, steps: 120, &tally)
    }
    #expect(tally.parts > 100, "\(tally)")
    #expect(tally.resets > 3, "\(tally)")
  }

  /// Replaying the stored batches of a durable daemon gives the same feeds at the same revisions.
  @Test(arguments: 1...6) func replayGivesTheSameState(seed: UInt64) throws {
    var tally = Tally()
    let world = World(seed: seed, limits: Self.limits, isDurable: true)
    try play(world, steps: 150, &tally)
    let again = EngineHarness(limits: Self.limits, seed: seed &+ 1, isDurable: true)
    for turn in world.harness.stored {
      try again.engine.replay(turn)
    }
    expectEqual(again.engine.catalog.revision, world.harness.engine.catalog.revision)
    for name in World.names {
      let first = try? world.harness.engine.catalog.feed(named: name)
      let second = try? again.engine.catalog.feed(named: name)
      expectEqual(first?.revision, second?.revision, "seed \(seed): \(name)")
      expectEqual(first.map { World.contents(of: $0) }, second.map { World.contents(of: $0) }, "seed \(seed): \(name)")
    }
  }
}

extension World {
  /// A client does a random operation and checks the frames it received.
  func act(as client: Client) throws {
    let feed = pick(Self.names)
    switch below(20) {
    case ..<6: watch(feed, client)
    case 6: client.send([client.request("unwatch", #"{"feed":"\#(feed)"}"#, .unwatch(feed: feed))])
    case 7: harness.stopped = harness.stopped.union([client.id])
    case 8: harness.resume(client.id)
    case 9: harness.resume(client.id, bytes: below(6000))
    case 10: if chance(30) { client.reconnect() }
    case 11: client.send([client.request("sync", "{}", .sync), client.request("ping", "{}", .other(error: nil))])
    case 12:
      client.send([
        client.request("nothing", "{}", nil), client.request("nothing", "{}", .other(error: -32601)),
        "[" + client.request("ping", "{}", .other(error: nil)) + "," + client.request("sync", "{}", .sync) + "]",
      ])
    case 13: client.send([client.request("verify", #"{"feed":"no"}"#, .other(error: -32000))])
    default: break
    }
    try client.receive()
  }

  private func watch(_ feed: String, _ client: Client) {
    let spanning = chance(50)
    let options = (chance(30) ? #","throttle":\#(below(3000))"# : "") + (spanning ? #","spanning":true"# : "")
    let question = { (known: Mirror?, initial: Bool) in
      Client.Question.watch(feed: feed, known: known, initial: initial, spanning: spanning)
    }
    if chance(40), let known = client.seen[feed].map({ self.pick($0) }) {
      let since = #","since":{"epoch":"test","revision":\#(known.revision)}"#
      let params = #"{"feed":"\#(feed)"\#(since)\#(options)}"#
      return client.send([client.request("watch", params, question(known, true))])
    }
    switch below(6) {
    case 0:
      let params = #"{"feed":"\#(feed)","initial":false\#(options)}"#
      client.send([
        client.request("snapshot", #"{"feed":"\#(feed)"}"#, .snapshot(feed: feed)),
        client.request("watch", params, question(nil, false)),
      ])
    case 1:
      let (epoch, ahead) = chance(50) ? ("other", 0) : ("test", 1_000_000)
      let revision = Int(harness.engine.catalog.revision) + ahead
      let params = #"{"feed":"\#(feed)","since":{"epoch":"\#(epoch)","revision":\#(revision)}\#(options)}"#
      client.send([client.request("watch", params, question(nil, true))])
    default:
      let params = #"{"feed":"\#(feed)"\#(options)}"#
      client.send([client.request("watch", params, question(nil, true))])
    }
  }

  /// Lets every client catch up, and compares every mirror with the daemon's feed.
  func settle(_ clients: [Client]) throws {
    harness.stopped = []
    for client in clients {
      client.send([client.request("sync", "{}", .sync)])
      try client.receive()
      guard client.isIdle else { throw Mirror.Violation(description: "requests are unanswered") }
    }
    let contents = contents()
    for client in clients {
      for (feed, mirror) in client.mirrors {
        guard mirror.sections.map(\.rows) == contents[feed] else {
          throw Mirror.Violation(
            description:
              "the mirror of \(feed) at \(mirror.revision) is\n\(mirror.sections.map(\.rows))\nnot\n\(contents[feed] ?? [])"
          )
        }
        let answer = harness.ask(pusher, "verify", #"{"feed":"\#(feed)"}"#)
        guard answer.first?.json?["result"]?["digest"]?.string == mirror.digest else {
          throw Mirror.Violation(description: "the digest of \(feed) is \(mirror.digest): \(answer)")
        }
        let names = Value(harness.ask(pusher, "describe", #"{"feed":"\#(feed)"}"#)[0])?["result"]?["sections"]?.items
        guard names?.map({ $0["name"]?.string }) == mirror.sections.map(\.name) else {
          throw Mirror.Violation(description: "the sections of \(feed) are \(mirror.sections.map(\.name))")
        }
      }
    }
  }
}
