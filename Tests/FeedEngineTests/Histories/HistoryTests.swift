import FeedModel
import TestSupport
import Testing

@testable import FeedEngine

/// Long random histories: whatever watchers do, their copies are right whenever they have caught up.
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

  @Test(arguments: 1...150) func everyCopyIsRight(seed: UInt64) throws {
    let world = World(seed: seed, limits: Self.limits)
    let clients = (0..<4).map { _ in Client(world.harness) }
    do {
      for step in 0..<220 {
        try world.mutate()
        let client = world.pick(clients)
        try world.act(as: client)
        if world.chance(25) { world.harness.advance(seconds: Double(world.below(30)) / 10) }
        if step % 44 == 43 { try world.settle(clients) }
      }
    } catch {
      Issue.record("seed \(seed): \(error)")
    }
    #expect(world.commits > 100)
  }
}

extension World {
  /// Lets a client do something and look at what it was told.
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
    let throttle = chance(30) ? #","throttle":\#(below(3000))"# : ""
    if chance(40), let known = client.seen[feed].map({ self.pick($0) }) {
      let since = #","since":{"epoch":"test","revision":\#(known.revision)}"#
      let params = #"{"feed":"\#(feed)"\#(since)\#(throttle)}"#
      return client.send([client.request("watch", params, .watch(feed: feed, known: known, initial: true))])
    }
    switch below(6) {
    case 0:
      let params = #"{"feed":"\#(feed)","initial":false\#(throttle)}"#
      client.send([
        client.request("snapshot", #"{"feed":"\#(feed)"}"#, .snapshot(feed: feed)),
        client.request("watch", params, .watch(feed: feed, known: nil, initial: false)),
      ])
    case 1:
      let (epoch, ahead) = chance(50) ? ("other", 0) : ("test", 1_000_000)
      let revision = Int(harness.engine.catalog.revision) + ahead
      let params = #"{"feed":"\#(feed)","since":{"epoch":"\#(epoch)","revision":\#(revision)}\#(throttle)}"#
      client.send([client.request("watch", params, .watch(feed: feed, known: nil, initial: true))])
    default:
      let params = #"{"feed":"\#(feed)"\#(throttle)}"#
      client.send([client.request("watch", params, .watch(feed: feed, known: nil, initial: true))])
    }
  }

  /// Lets everybody read and catch up, and compares every copy with what the daemon has.
  func settle(_ clients: [Client]) throws {
    harness.stopped = []
    for client in clients {
      client.send([client.request("sync", "{}", .sync)])
      try client.receive()
      guard client.isIdle else { throw Mirror.Violation(description: "answers are missing") }
    }
    let contents = contents()
    for client in clients {
      for (feed, mirror) in client.mirrors {
        guard mirror.sections.map(\.rows) == contents[feed] else {
          throw Mirror.Violation(
            description:
              "the copy of \(feed) at \(mirror.revision) is\n\(mirror.sections.map(\.rows))\nnot\n\(contents[feed] ?? [])"
          )
        }
        let answer = harness.ask(pusher, "verify", #"{"feed":"\#(feed)"}"#)
        guard answer.first?.contains(#""digest":"\#(mirror.digest)""#) == true else {
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
