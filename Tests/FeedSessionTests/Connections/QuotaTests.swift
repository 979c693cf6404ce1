import FeedJSON
import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// The bytes that the connections of a user may hold: queued output and incomplete frames together.
struct QuotaTests {
  private func harness(maxQueuePerUser: Int, isDurable: Bool = false) -> EngineHarness {
    var limits = Limits()
    limits.maxQueue = 16384
    limits.maxQueuePerUser = maxQueuePerUser
    return EngineHarness(limits: limits, isDurable: isDurable)
  }

  private func reasonOfBye(_ harness: EngineHarness, _ id: ConnectionID) -> String? {
    harness.take(id).last.flatMap { Value($0) }?["params"]?["reason"]?.string
  }

  private func gauge(_ harness: EngineHarness, _ id: ConnectionID, _ name: String) -> Int? {
    harness.ask(id, "stats").first.flatMap { Value($0) }?["result"]?[name]?.int
  }

  /// Returns the first `count` bytes of a frame of more than 100,000 bytes.
  private func half(_ count: Int) -> [UInt8] {
    Array(EngineHarness.frame("\"" + String(repeating: "x", count: 100_000) + "\"").prefix(count))
  }

  @Test(arguments: [false, true]) func incompleteFramesCountAgainstTheQuota(isDurable: Bool) {
    let harness = harness(maxQueuePerUser: 9000, isDurable: isDurable)
    let (large, small) = (harness.connect(uid: 7), harness.connect(uid: 7))
    let (other, observer) = (harness.connect(uid: 8), harness.connect(uid: 9))
    harness.deliver(large, half(5000))
    harness.deliver(small, half(4000))
    harness.deliver(other, half(8000))
    expectEqual(gauge(harness, observer, "heldBytes"), 17_000)
    let clients = harness.ask(observer, "clients").first?.json?["result"]?["clients"]
    expectEqual(clients?.items.map { $0["held"]?.int }, [5000, 4000, 8000, 0])
    expect([large, small, other].allSatisfy { harness.isOpen($0) })
    // The connection that holds most closes, not the one that exceeded the quota.
    harness.deliver(small, [UInt8](repeating: 0x78, count: 500))
    expect(!harness.isOpen(large))
    expectEqual(reasonOfBye(harness, large), "quota")
    expect([small, other].allSatisfy { harness.isOpen($0) })
    expectEqual(gauge(harness, observer, "heldBytes"), 12_500)
    expect(harness.events.contains { $0.message.contains("uid 7") && $0.message.contains("maxQueuePerUser") })
  }

  /// Connections close, the largest first, until the user is within the quota.
  @Test func connectionsCloseUntilTheUserIsWithinTheQuota() {
    let harness = harness(maxQueuePerUser: 9000)
    let ids = (0..<4).map { _ in harness.connect(uid: 7) }
    for (id, count) in zip(ids, [2000, 2500, 3000]) { harness.deliver(id, half(count)) }
    harness.deliver(ids[3], half(8500))
    expectEqual(ids.map { harness.isOpen($0) }, [true, true, true, false])
    harness.supply(ids[0], [UInt8](repeating: 0x78, count: 6000))
    harness.supply(ids[1], [UInt8](repeating: 0x78, count: 5000))
    harness.turn()
    expectEqual(ids.map { harness.isOpen($0) }, [false, false, true, false])
  }

  /// Queued output and the incomplete frame of a connection are added.
  @Test func queuedOutputCountsAgainstTheQuota() {
    let harness = harness(maxQueuePerUser: 9000)
    let (pusher, watcher) = (harness.connect(uid: 1), harness.connect(uid: 7))
    _ = harness.ask(pusher, "define", #"{"feed":"a","kind":"collection"}"#)
    _ = harness.ask(watcher, "watch", #"{"feed":"a"}"#)
    harness.stopped = [watcher]
    let filler = String(repeating: "x", count: 3000)
    _ = harness.ask(pusher, "update", #"{"feed":"a","element":{"id":1,"f":"\#(filler)"}}"#)
    for id in 1...2 {
      harness.send(watcher, #"{"jsonrpc":"2.0","id":\#(id),"method":"get","params":{"feed":"a","id":1}}"#)
    }
    // The delta was discarded, because it can be told later. The answers cannot.
    expect(harness.engine.sessions.quotas.bytes(of: 7) < 7000)
    harness.deliver(watcher, half(2000))
    expect(harness.wantsInput(watcher))
    harness.deliver(watcher, [UInt8](repeating: 0x78, count: 3000))
    expect(!harness.wantsInput(watcher))
    harness.resume(watcher)
    expectEqual(reasonOfBye(harness, watcher), "quota")
  }

  /// Output that was read and frames that were completed no longer count.
  @Test func completedFramesAndReadOutputDoNotCount() {
    let harness = harness(maxQueuePerUser: 9000)
    let (pusher, watcher) = (harness.connect(uid: 7), harness.connect(uid: 7))
    let observer = harness.connect(uid: 9)
    _ = harness.ask(pusher, "define", #"{"feed":"a","kind":"collection"}"#)
    _ = harness.ask(watcher, "watch", #"{"feed":"a"}"#)
    for number in 0..<10 {
      let filler = String(repeating: "x", count: 7000)
      let update = EngineHarness.request("update", #"{"feed":"a","element":{"id":\#(number),"f":"\#(filler)"}}"#)
      harness.deliver(pusher, Array(update.prefix(6000)))
      expectEqual(gauge(harness, observer, "heldBytes"), 6000 + Watch.memory)
      harness.stopped = [watcher]
      harness.deliver(pusher, Array(update.dropFirst(6000)))
      expectEqual(gauge(harness, observer, "heldBytes"), Watch.memory)
      // Read in parts, so that the queue never becomes empty in between.
      harness.resume(watcher, bytes: 6000)
      harness.deliver(pusher, Array(update.prefix(6000)))
      harness.stopped = []
      harness.turn()
      harness.deliver(pusher, Array(update.dropFirst(6000)))
    }
    expect([pusher, watcher].allSatisfy { harness.isOpen($0) })
    // A connection that closes within a frame releases its bytes.
    harness.deliver(pusher, half(8000))
    harness.disconnect(pusher)
    harness.deliver(watcher, half(8000))
    expect(harness.isOpen(watcher))
  }

  /// An answer that is read except for its end counts with all of its memory.
  @Test func answersThatAreReadInPartCount() {
    let harness = harness(maxQueuePerUser: 250_000)
    let (first, second) = (harness.connect(uid: 7), harness.connect(uid: 7))
    let observer = harness.connect(uid: 9)
    _ = harness.ask(observer, "define", #"{"feed":"a","kind":"single"}"#)
    _ = harness.ask(observer, "put", #"{"feed":"a","element":"\#(String(repeating: "x", count: 200_000))"}"#)
    for (id, isOpen) in [(first, true), (second, false)] {
      harness.stopped.insert(id)
      harness.send(id, #"{"jsonrpc":"2.0","id":1,"method":"snapshot","params":{"feed":"a"}}"#)
      harness.resume(id, bytes: 195_000)
      let clients = harness.ask(observer, "clients").first?.json?["result"]?["clients"]
      let row = clients?.items.first { $0["connection"]?.int == id.rawValue + 1 }
      if isOpen {
        expectEqual(row?["queued"]?.int.map { $0 > 5000 && $0 < 6000 }, true)
        expectEqual(row?["held"]?.int, 195_000)
      }
    }
    // The second answer exceeds the quota. One of the two connections closes, without the rest of its answer.
    expectEqual([first, second].count { harness.engine.sessions[$0]?.isClosing == false }, 1)
    expect(harness.engine.sessions.quotas.bytes(of: 7) <= 250_000)
    harness.stopped = []
    for id in [first, second] { harness.resume(id) }
    expectEqual(harness.engine.sessions.quotas.bytes(of: 7), 0)
  }

  /// A connection that ended its input counts as long as it does not read, and so does one that is being closed.
  @Test(arguments: [false, true]) func closingConnectionsCount(isKicked: Bool) {
    let harness = harness(maxQueuePerUser: 500_000, isDurable: true)
    let observer = harness.connect(uid: 9)
    _ = harness.ask(observer, "define", #"{"feed":"a","kind":"single"}"#)
    _ = harness.ask(observer, "put", #"{"feed":"a","element":"\#(String(repeating: "x", count: 200_000))"}"#)
    let ids = (0..<5).map { _ in harness.connect(uid: 7) }
    for id in ids {
      harness.stopped.insert(id)
      harness.log?.isHeld = true
      harness.send(id, #"{"jsonrpc":"2.0","method":"deselect","params":{"feed":"a"}}"#)
      harness.send(id, #"{"jsonrpc":"2.0","id":1,"method":"snapshot","params":{"feed":"a"}}"#)
      if !isKicked { harness.endInput(id) }
      harness.log?.isHeld = false
      harness.log?.store()
      harness.turn()
      harness.resume(id, bytes: 10)
      if isKicked { _ = harness.ask(observer, "kick", #"{"connection":\#(id.rawValue + 1)}"#) }
      expect(harness.engine.sessions.quotas.bytes(of: 7) <= 500_000)
    }
    expect(harness.engine.sessions.quotas.bytes(of: 7) > 400_000)
    expectEqual(ids.count { harness.isOpen($0) }, 2)
  }

  /// The tokens of a long request count until it is executed, and are freed then.
  @Test func tokensOfAStoredRequestCount() {
    let harness = EngineHarness(isDurable: true)
    let (sender, observer) = (harness.connect(uid: 7), harness.connect(uid: 9))
    _ = harness.ask(sender, "define", #"{"feed":"a","kind":"array"}"#)
    harness.log?.isHeld = true
    let elements = String(repeating: "1,", count: 400_000) + "1"
    let request = #"{"jsonrpc":"2.0","id":1,"method":"insert","params":{"feed":"a","elements":[\#(elements)]}}"#
    harness.send(sender, request)
    let least = request.utf8.count + 400_000 * JSONScanner.tokenSize
    expectEqual(harness.log?.inFlight.count, 1)
    expect(harness.engine.sessions.quotas.bytes(of: 7) >= least)
    expectEqual(gauge(harness, observer, "heldBytes").map { $0 >= least }, true)
    harness.log?.isHeld = false
    harness.log?.store()
    harness.turn()
    expectEqual(harness.take(sender).count, 1)
    expectEqual(harness.engine.sessions.quotas.bytes(of: 7), 0)
    // Two more batches reuse the one that held the tokens.
    for _ in 0..<2 { _ = harness.ask(sender, "insert", #"{"feed":"a","element":1}"#) }
    expect(harness.tapeCapacity < 300_000)
  }

  /// The token tape of a huge frame is released, whether its sender stays or disconnects.
  @Test(arguments: [false, true]) func tapeOfAHugeFrameIsReleased(senderDisconnects: Bool) {
    let harness = EngineHarness()
    let sender = harness.connect(uid: 7)
    harness.send(
      sender, #"{"jsonrpc":"2.0","id":1,"method":"ping","params":[\#(String(repeating: "1,", count: 500_000))1]}"#)
    expect(harness.tapeCapacity > 500_000)
    if senderDisconnects {
      harness.disconnect(sender)
    } else {
      harness.advance(seconds: 2)
      _ = harness.ask(sender, "ping")
      harness.advance(seconds: 2)
    }
    expect(harness.tapeCapacity < 100_000)
  }
}
