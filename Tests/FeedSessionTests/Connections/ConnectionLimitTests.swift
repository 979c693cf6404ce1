import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Limits on connections, the reserve for the administrator, the quota of a user, and closing connections.
struct ConnectionLimitTests {
  private func harness(_ change: (inout Limits) -> Void) -> EngineHarness {
    var limits = Limits()
    change(&limits)
    return EngineHarness(limits: limits)
  }

  private func bye(_ harness: EngineHarness, _ id: ConnectionID) -> String? {
    let frames = harness.take(id).compactMap { Value($0) }
    expect(frames.dropLast().allSatisfy { $0["method"]?.string != "bye" })
    return frames.last?["method"]?.string == "bye" ? frames.last?["params"]?["reason"]?.string : nil
  }

  private func isServed(_ harness: EngineHarness, _ id: ConnectionID) -> Bool {
    harness.ask(id, "ping") == [#"{"jsonrpc":"2.0","id":1,"result":{}}"#]
  }

  @Test func connectionOverTheLimitIsRefusedWithBye() {
    let harness = harness { $0.maxConnections = 2 }
    let first = [harness.connect(), harness.connect()]
    let third = harness.connect()
    expect(!harness.wantsInput(third))
    harness.turn()
    expectEqual(bye(harness, third), "limit")
    expect(!harness.isOpen(third))
    harness.disconnect(first[0])
    let fourth = harness.connect()
    harness.turn()
    expect(isServed(harness, fourth))
  }

  /// Refused connections that are not closed yet must not use up the reserve.
  @Test func reservedConnectionIsForRoot() {
    let harness = harness {
      $0.maxConnections = 2
      $0.reservedConnections = 1
    }
    _ = [harness.connect(), harness.connect()]
    let peers = (0..<6).map { Peer(uid: $0 < 5 ? 1000 : 0, gid: 0, pid: 42) }
    let together = harness.connect(peers)
    let (refused, root) = (together.dropLast(), together[5])
    harness.turn()
    expect(refused.allSatisfy { bye(harness, $0) == "limit" })
    expect(isServed(harness, root))
    let second = harness.connect(uid: 0)
    harness.turn()
    expectEqual(bye(harness, second), "limit", "the reserve is used up")
  }

  @Test func connectionsAreLimitedPerUser() {
    let harness = harness { $0.maxConnectionsPerUser = 2 }
    let together = harness.connect([5, 5, 5, 6].map { Peer(uid: $0, gid: 0, pid: 42) })
    let (mine, other) = (Array(together.dropLast()), together[3])
    harness.turn()
    expectEqual(bye(harness, mine[2]), "limit")
    expect(isServed(harness, mine[0]))
    expect(isServed(harness, other))
    harness.disconnect(mine[0])
    let again = harness.connect(uid: 5)
    harness.turn()
    expect(isServed(harness, again))
  }

  /// A user over the quota loses its connection with the most answers; the last deltas of that connection are contiguous.
  @Test func quotaClosesTheConnectionThatHoldsMost() {
    let harness = harness {
      $0.maxQueue = 16384
      $0.maxQueuePerUser = 9000
    }
    let (pusher, other) = (harness.connect(uid: 1), harness.connect(uid: 2))
    let (small, large) = (harness.connect(uid: 7), harness.connect(uid: 7))
    for feed in ["a", "b"] { _ = harness.ask(pusher, "define", #"{"feed":"\#(feed)","kind":"collection"}"#) }
    for watcher in [small, large, other] { _ = harness.ask(watcher, "watch", #"{"feed":"a"}"#) }
    _ = harness.ask(large, "watch", #"{"feed":"b"}"#)
    _ = harness.take(large)
    harness.stopped = [small, large, other]
    for number in 0..<12 {
      let update = { (feed: String) in
        let filler = String(repeating: "x", count: feed == "a" ? 10 : 900)
        return EngineHarness.request("update", #"{"feed":"\#(feed)","element":{"id":\#(number),"f":"\#(filler)"}}"#)
      }
      // The deltas of the turn that enforces the quota follow those that it drops.
      harness.supply(pusher, update("a") + update("b"))
      harness.supply(large, "get", #"{"feed":"b","id":0}"#)
      harness.turnOnce()
    }
    harness.stopped = []
    harness.turn()
    expect(!harness.isOpen(large))
    expect([small, other].allSatisfy { harness.isOpen($0) })
    var revisions: [String: Int] = ["a": 1, "b": 2]
    let frames = harness.take(large).compactMap { Value($0) }
    for frame in frames.dropLast() where frame["method"]?.string == "delta" {
      let feed = frame["params"]?["feed"]?.string ?? ""
      expectEqual(frame["params"]?["from"]?.int, revisions[feed])
      revisions[feed] = frame["params"]?["revision"]?.int
    }
    expectEqual(frames.last?["params"]?["reason"]?.string, "quota")
    expect(harness.events.contains { $0.message.contains("uid 7") && $0.message.contains("quota") })
  }

  /// A connection that closes in the turn in which its quota is exceeded leaves no output to the next connection.
  @Test func closedConnectionOverQuotaLeavesNoOutput() {
    let harness = harness {
      $0.maxQueue = 4096
      $0.maxQueuePerUser = 4096
    }
    let (pusher, watcher) = (harness.connect(uid: 1), harness.connect(uid: 7))
    _ = harness.ask(pusher, "define", #"{"feed":"a","kind":"collection"}"#)
    _ = harness.ask(watcher, "watch", #"{"feed":"a"}"#)
    harness.stopped = [watcher]
    let filler = String(repeating: "x", count: 6000)
    harness.supply(pusher, "update", #"{"feed":"a","element":{"id":1,"f":"\#(filler)"}}"#)
    harness.turnOnce()
    harness.drop(watcher)
    harness.turnOnce()
    let next = harness.connect(uid: 9)
    expectEqual(next, watcher, "the number is reused")
    harness.turn()
    expectEqual(harness.take(next), [])
    expect(isServed(harness, next))
  }

  @Test func byeIsTheLastFrameOfAShutdown() {
    let harness = EngineHarness()
    let (idle, busy, stopped) = (harness.connect(), harness.connect(), harness.connect())
    _ = harness.ask(busy, "define", #"{"feed":"a","kind":"collection"}"#)
    for id in [busy, stopped] { _ = harness.ask(id, "watch", #"{"feed":"a"}"#) }
    harness.stopped = [stopped]
    _ = harness.ask(busy, "update", #"{"feed":"a","element":{"id":1}}"#)
    harness.drain()
    expect([idle, busy].allSatisfy { !harness.isOpen($0) && bye(harness, $0) == "shutdown" })
    expect(harness.isOpen(stopped))
    harness.resume(stopped)
    expectEqual(bye(harness, stopped), "shutdown")
    expect(!harness.isOpen(stopped))
  }

  /// A closing connection that does not read is closed after a grace period.
  @Test func closingConnectionHasAGracePeriod() {
    let harness = EngineHarness()
    let id = harness.connect()
    harness.stopped = [id]
    harness.deliver(id, [0, 0, 0, 0])
    expect(harness.isOpen(id))
    harness.advance(seconds: 9)
    expect(harness.isOpen(id))
    harness.advance(seconds: 3)
    expect(!harness.isOpen(id))
  }

  /// A client that ends its input receives its answers, then the connection closes.
  @Test func connectionClosesAfterTheEndOfInput() {
    let harness = EngineHarness()
    let (pusher, id) = (harness.connect(), harness.connect())
    _ = harness.ask(pusher, "define", #"{"feed":"a","kind":"collection"}"#)
    let elements = (0..<9000).map { #"{"id":\#($0)}"# }.joined(separator: ",")
    _ = harness.ask(pusher, "update", #"{"feed":"a","elements":[\#(elements)]}"#)
    let requests = [#"{"jsonrpc":"2.0","id":1,"method":"verify","params":{"feed":"a"}}"#]
    harness.supply(id, requests.flatMap { EngineHarness.frame($0) })
    harness.endInput(id)
    expectEqual(harness.take(id).count, 1)
    expect(!harness.isOpen(id))
  }
}
