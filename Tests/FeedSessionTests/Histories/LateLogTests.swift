import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// A log that stores batches some turns after it accepts them, or fails them.
struct LateLogTests {
  private let harness = EngineHarness(isDurable: true)
  private var log: ArrayLog { harness.log! }

  private static func request(_ method: String, _ params: String = "{}", id: Int = 1) -> String {
    #"{"jsonrpc":"2.0","id":\#(id),"method":"\#(method)","params":\#(params)}"#
  }

  private static func update(_ feed: String, _ element: Int, id: Int = 1) -> String {
    request("update", #"{"feed":"\#(feed)","element":{"id":\#(element)}}"#, id: id)
  }

  private func ids(_ client: ConnectionID) -> [Int] {
    harness.take(client).compactMap { Value($0)?["id"]?.int }
  }

  private func counts(_ client: ConnectionID, _ feed: String) -> String? {
    harness.ask(client, "verify", #"{"feed":"\#(feed)"}"#).first.flatMap { Value($0) }?["result"]?["counts"]?.text
  }

  @Test func allAreToldThatTheLogIsLost() {
    let (writer, reader) = (harness.connect(), harness.connect())
    _ = harness.ask(writer, "define", #"{"feed":"c","kind":"collection"}"#)
    log.isHeld = true
    harness.send(writer, Self.update("c", 1))
    expectEqual(harness.abandonIfLost(), nil)
    log.lose("the disk is gone")
    harness.turn()
    expectEqual(harness.abandonIfLost(), "the disk is gone")
    for client in [writer, reader] {
      // The update is neither confirmed nor refused.
      let frames = harness.take(client).compactMap { Value($0) }
      expectEqual(frames.map { $0["method"]?.string }, ["bye"])
      expectEqual(frames.first?["params"]?["reason"]?.string, "shutdown")
      expect(!harness.isOpen(client))
    }
  }

  @Test func readsWaitForWritesOfTheirOwnConnectionOnly() {
    let (writer, reader) = (harness.connect(), harness.connect())
    _ = harness.ask(writer, "define", #"{"feed":"c","kind":"collection"}"#)
    log.isHeld = true
    harness.deliver(
      writer,
      EngineHarness.frame(Self.update("c", 1, id: 1))
        + EngineHarness.frame(Self.request("snapshot", #"{"feed":"c"}"#, id: 2))
        + EngineHarness.frame(Self.request("verify", #"{"feed":"c"}"#, id: 3))
        + EngineHarness.frame(Self.request("ping", id: 4)))
    expect(harness.take(writer).isEmpty)
    expectEqual(counts(reader, "c"), "[0]", "another connection reads the state before the batch")
    log.store()
    harness.turn()
    let answers = harness.take(writer).compactMap { Value($0) }
    expectEqual(answers.map { $0["id"]?.int }, [1, 2, 3, 4])
    expectEqual(answers[1]["result"]?["sections"]?.items.first?["elements"]?.text, #"[{"id":1}]"#)
    expectEqual(answers[2]["result"]?["counts"]?.text, "[1]")
    expectEqual(counts(reader, "c"), "[1]")
  }

  @Test func writesAreGroupedWhileABatchIsInFlight() {
    let clients = (0..<4).map { _ in harness.connect() }
    _ = harness.ask(clients[0], "define", #"{"feed":"c","kind":"collection"}"#)
    log.isHeld = true
    for round in 0..<5 {
      for (place, client) in clients.enumerated() {
        harness.deliver(client, EngineHarness.frame(Self.update("c", place * 10 + round, id: round)))
      }
    }
    expectEqual(log.inFlight.count, 1)
    log.store()
    harness.turn()
    expectEqual(log.inFlight.count, 1, "requests that arrived meanwhile must form one batch")
    log.store()
    harness.turn()
    expect(clients.allSatisfy { ids($0) == [0, 1, 2, 3, 4] })
    expectEqual(log.stored.count, 3)
    expectEqual(counts(clients[0], "c"), "[20]")
  }

  @Test func failedBatchRefusesOnlyItsRequests() {
    let (one, two) = (harness.connect(), harness.connect())
    _ = harness.ask(one, "define", #"{"feed":"c","kind":"collection"}"#)
    log.isHeld = true
    harness.deliver(one, EngineHarness.frame(Self.update("c", 1, id: 1)))
    harness.deliver(one, EngineHarness.frame(Self.update("c", 2, id: 2)))
    harness.deliver(one, EngineHarness.frame(Self.request("snapshot", #"{"feed":"c"}"#, id: 3)))
    harness.deliver(two, EngineHarness.frame(Self.update("c", 3, id: 1)))
    log.fail("the disk is full")
    harness.turn()
    let refused = harness.take(one).compactMap { Value($0) }
    expectEqual(refused.map(\.errorCode), [-32008])
    log.store()
    harness.turn()
    let answers = harness.take(one).compactMap { Value($0) }
    expectEqual(answers.map { $0["id"]?.int }, [2, 3])
    expectEqual(answers.map(\.errorCode), [nil, nil])
    expectEqual(harness.take(two).compactMap { Value($0)?.errorCode }, [])
    log.isHeld = false
    expectEqual(counts(two, "c"), "[2]")
  }

  /// A thread of the log reports the failure at any time. Batches that were appended since can be stored.
  @Test func batchThatFollowsAFailedOneIsStored() throws {
    let harness = EngineHarness(isDurable: true, window: 4)
    let (client, log) = (harness.connect(), try require(harness.log))
    _ = harness.ask(client, "define", #"{"feed":"c","kind":"collection"}"#)
    log.isHeld = true
    harness.deliver(client, EngineHarness.frame(Self.update("c", 1, id: 1)))
    log.failureBeforeNext = "the servers do not answer"
    harness.deliver(client, EngineHarness.frame(Self.update("c", 2, id: 2)))
    harness.turn()
    let refused = harness.take(client).compactMap { Value($0) }
    expectEqual(refused.map { $0["id"]?.int }, [1])
    expectEqual(refused.map(\.errorCode), [-32008])
    expectEqual(log.inFlight.count, 1)
    log.store()
    harness.turn()
    let answers = harness.take(client).compactMap { Value($0) }
    expectEqual(answers.map { $0["id"]?.int }, [2])
    expectEqual(answers.map(\.errorCode), [nil])
    let snapshot = harness.ask(client, "snapshot", #"{"feed":"c"}"#).first.flatMap { Value($0) }
    expectEqual(snapshot?["result"]?["sections"]?.items.first?["elements"]?.text, #"[{"id":2}]"#)
  }

  @Test func requestsOfADisconnectedPeerAreExecutedOnceStored() {
    let (gone, other) = (harness.connect(), harness.connect())
    _ = harness.ask(gone, "define", #"{"feed":"c","kind":"collection"}"#)
    log.isHeld = true
    harness.deliver(
      gone,
      EngineHarness.frame(Self.update("c", 1)) + EngineHarness.frame(Self.request("snapshot", #"{"feed":"c"}"#)))
    harness.disconnect(gone)
    let next = harness.connect()
    expectEqual(next, gone, "the number is reused")
    log.store()
    harness.turn()
    expect(harness.take(next).isEmpty, "another connection must not receive the answers")
    expectEqual(counts(other, "c"), "[1]")
  }

  @Test func peerThatEndsItsInputReceivesItsAnswers() {
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"c","kind":"collection"}"#)
    log.isHeld = true
    harness.deliver(client, EngineHarness.frame(Self.update("c", 1, id: 5)))
    harness.endInput(client)
    expect(harness.isOpen(client))
    log.store()
    harness.turn()
    expectEqual(ids(client), [5])
    expect(!harness.isOpen(client))
  }

  @Test func drainWaitsForBatchesInFlight() {
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"c","kind":"collection"}"#)
    log.isHeld = true
    harness.deliver(client, EngineHarness.frame(Self.update("c", 1, id: 1)))
    harness.deliver(client, EngineHarness.frame(Self.update("c", 2, id: 2)))
    harness.drain()
    expect(!harness.isDrained && harness.take(client).isEmpty)
    log.store()
    harness.turn()
    log.store()
    harness.turn()
    let frames = harness.take(client).compactMap { Value($0) }
    expectEqual(frames.dropLast().map { $0["id"]?.int }, [1, 2])
    expectEqual(frames.last?["method"]?.string, "bye")
    expect(harness.isDrained)
  }

  @Test func errorsAreAnsweredInOrder() {
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"c","kind":"collection"}"#)
    log.isHeld = true
    let requests = [
      Self.update("c", 1, id: 1), "no JSON", Self.request("nothing", id: 3), Self.request("ping", id: 4),
      "[\(Self.request("ping", id: 5)),\(Self.update("c", 2, id: 6))]", Self.update("c", 3, id: 7),
    ]
    harness.deliver(client, requests.flatMap { EngineHarness.frame($0) })
    harness.deliver(client, [0, 0, 0, 0])
    for _ in 0..<3 {
      expect(harness.isOpen(client))
      log.store()
      harness.turn()
    }
    let frames = harness.take(client).compactMap { Value($0) }
    expectEqual(
      frames.map {
        $0.items.isEmpty ? $0["id"]?.text : "[\($0.items.compactMap { $0["id"]?.text }.joined(separator: ","))]"
      }, ["1", "null", "3", "4", "[5,6]", "7", "null", nil])
    expect(!harness.isOpen(client))
  }

  @Test func requestsBeyondTheBatchLimitStayUnread() {
    let harness = EngineHarness(isDurable: true) { $0.maxFrame = 1 << 20 }
    let (client, observer) = (harness.connect(), harness.connect())
    _ = harness.ask(client, "define", #"{"feed":"c","kind":"collection"}"#)
    harness.log?.isHeld = true
    let filler = String(repeating: "x", count: 200_000)
    let requests = (0..<30).map {
      EngineHarness.frame(Self.request("update", #"{"feed":"c","element":{"id":\#($0),"f":"\#(filler)"}}"#, id: $0))
    }
    harness.deliver(client, requests.reduce([], +))
    expect(harness.waitingInput(of: client) > 3_000_000)
    let taken = harness.engine.sessions[client]?.line.bytes ?? 0
    expect(taken > 1 << 20 && taken <= 2 << 20)
    expect(harness.engine.sessions[client]?.charged ?? 0 >= taken, "unexecuted requests must be charged to their user")
    expectEqual(harness.ask(observer, "ping").count, 1)
    var answered: [Int] = []
    while answered.count < 30, harness.log?.inFlight.isEmpty == false {
      harness.log?.store()
      harness.turn()
      answered += harness.take(client).compactMap { Value($0)?["id"]?.int }
    }
    expectEqual(answered, Array(0..<30))
    expectEqual(harness.engine.sessions[client]?.charged, 0)
  }
}
