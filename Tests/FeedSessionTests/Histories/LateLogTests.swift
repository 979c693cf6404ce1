import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// A log that stores batches some turns after it accepts them, or fails them.
@Suite struct LateLogTests {
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
      #expect(!harness.isOpen(client))
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
    #expect(harness.take(writer).isEmpty)
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
    #expect(clients.allSatisfy { ids($0) == [0, 1, 2, 3, 4] })
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
    let (client, log) = (harness.connect(), try #require(harness.log))
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
    #expect(harness.take(next).isEmpty, "another connection must not receive the answers")
    expectEqual(counts(other, "c"), "[1]")
  }

  @Test func peerThatEndsItsInputReceivesItsAnswers() {
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"c","kind":"collection"}"#)
    log.isHeld = true
    harness.deliver(client, EngineHarness.frame(Self.update("c", 1, id: 5)))
    harness.endInput(client)
    #expect(harness.isOpen(client))
    log.store()
    harness.turn()
    expectEqual(ids(client), [5])
    #expect(!harness.isOpen(client))
  }

  @Test func drainWaitsForBatchesInFlight() {
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"c","kind":"collection"}"#)
    log.isHeld = true
    harness.deliver(client, EngineHarness.frame(Self.update("c", 1, id: 1)))
    harness.deliver(client, EngineHarness.frame(Self.update("c", 2, id: 2)))
    harness.drain()
    #expect(!harness.isDrained && harness.take(client).isEmpty)
    log.store()
    harness.turn()
    log.store()
    harness.turn()
    let frames = harness.take(client).compactMap { Value($0) }
    expectEqual(frames.dropLast().map { $0["id"]?.int }, [1, 2])
    expectEqual(frames.last?["method"]?.string, "bye")
    #expect(harness.isDrained)
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
      #expect(harness.isOpen(client))
      log.store()
      harness.turn()
    }
    let frames = harness.take(client).compactMap { Value($0) }
    expectEqual(
      frames.map {
        $0.items.isEmpty ? $0["id"]?.text : "[\($0.items.compactMap { $0["id"]?.text }.joined(separator: ","))]"
      }, ["1", "null", "3", "4", "[5,6]", "7", "null", nil])
    #expect(!harness.isOpen(client))
  }

  @Test func requestsBeyondTheBatchLimitStayUnread() {
    var limits = Limits()
    limits.maxFrame = 1 << 20
    let harness = EngineHarness(limits: limits, isDurable: true)
    let (client, observer) = (harness.connect(), harness.connect())
    _ = harness.ask(client, "define", #"{"feed":"c","kind":"collection"}"#)
    harness.log?.isHeld = true
    let filler = String(repeating: "x", count: 200_000)
    let requests = (0..<30).map {
      EngineHarness.frame(Self.request("update", #"{"feed":"c","element":{"id":\#($0),"f":"\#(filler)"}}"#, id: $0))
    }
    harness.deliver(client, Array(requests.joined()))
    #expect(harness.waitingInput(of: client) > 3_000_000)
    let taken = harness.engine.sessions[client]?.line.bytes ?? 0
    #expect(taken > 1 << 20 && taken <= 2 << 20)
    #expect(harness.engine.sessions[client]?.charged ?? 0 >= taken, "unexecuted requests must be charged to their user")
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

  // MARK: Random histories

  /// The requests of a history, turn by turn. Each client has its own feed, so its answers do not depend on the others.
  private struct History {
    let clients: Int
    var turns: [[(client: Int, text: String)]] = []

    init(seed: UInt64, clients: Int = 3, turns count: Int = 60) {
      self.clients = clients
      var random = SeededRandom(seed: seed)
      turns.append((0..<clients).map { ($0, request("define", #"{"feed":"c\#($0)","kind":"collection"}"#)) })
      for number in 0..<count {
        turns.append(
          (0..<Int.random(in: 0...6, using: &random)).map { place in
            let client = Int.random(in: 0..<clients, using: &random)
            let id = number * 10 + place
            let feed = "c\(client)"
            switch Int.random(in: 0..<8, using: &random) {
            case 0: return (client, request("snapshot", #"{"feed":"\#(feed)"}"#, id: id))
            case 1: return (client, request("delete", #"{"feed":"\#(feed)","id":\#(id % 7)}"#, id: id))
            case 2: return (client, request("nothing", id: id))
            case 3: return (client, request("update", #"{"feed":"\#(feed)","element":{}}"#, id: id))
            case 4: return (client, request("select", #"{"feed":"\#(feed)","at":[0,0]}"#, id: id))
            default: return (client, update(feed, id % 7, id: id))
            }
          })
      }
    }
  }

  /// Plays a history and returns the frames of each client. `delay` returns the number of turns until a batch is stored.
  private static func play(
    _ history: History, _ harness: EngineHarness, delay: () -> Int
  ) -> [[String]] {
    let clients = (0..<history.clients).map { _ in harness.connect() }
    var left = 0
    for turn in history.turns {
      for (client, text) in turn { harness.supply(clients[client], EngineHarness.frame(text)) }
      harness.turn()
      if left == 0 {
        harness.log?.store()
        left = delay()
      } else {
        left -= 1
      }
    }
    repeat {
      harness.log?.store()
      harness.turn()
    } while harness.log?.inFlight.isEmpty == false
    return clients.map { harness.take($0) }
  }

  @Test(arguments: 1...20, [1, 4]) func lateStoringGivesTheSameAnswers(seed: UInt64, window: Int) throws {
    let history = History(seed: seed)
    let immediate = Self.play(history, EngineHarness(isDurable: true)) { 0 }
    let late = EngineHarness(isDurable: true, window: window)
    late.log?.isHeld = true
    var random = SeededRandom(seed: seed &+ 1000)
    let answers = Self.play(history, late) { Int.random(in: 0...5, using: &random) }
    expectEqual(answers, immediate)
    expectEqual(answers.joined().count, history.turns.joined().count)
    let again = EngineHarness(isDurable: true)
    for batch in late.stored { try again.engine.replay(batch) }
    expectEqual(again.engine.catalog.revision, late.engine.catalog.revision)
    for name in (0..<history.clients).map({ "c\($0)" }) {
      let (first, second) = (try late.engine.catalog.feed(named: name), try again.engine.catalog.feed(named: name))
      expectEqual(first.revision, second.revision)
      expectEqual(World.contents(of: first), World.contents(of: second))
    }
  }

  /// Peers disconnect, batches fail and the daemon stops in random states; exactly the stored requests were executed.
  @Test(arguments: 1...30) func exactlyTheStoredRequestsAreExecuted(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let harness = EngineHarness(isDurable: true, window: seed % 2 == 0 ? 1 : 3)
    guard let log = harness.log else { return }
    log.isHeld = true
    var clients = (0..<3).map { _ in harness.connect() }
    let history = History(seed: seed)
    for turn in history.turns {
      for place in clients.indices where !harness.isOpen(clients[place]) { clients[place] = harness.connect() }
      for (client, text) in turn { harness.supply(clients[client], EngineHarness.frame(text)) }
      harness.turnOnce()
      switch Int.random(in: 0..<12, using: &random) {
      case 0:
        let place = Int.random(in: 0..<clients.count, using: &random)
        harness.drop(clients[place])
        harness.turnOnce()
      case 1: harness.endInput(clients[Int.random(in: 0..<clients.count, using: &random)])
      case 2: log.fail("no space")
      case 3..<6: log.store(1)
      case 6: log.store()
      default: break
      }
    }
    harness.drain()
    for _ in 0..<50 where !harness.isDrained {
      if Bool.random(using: &random) { log.store() } else { log.fail("no space") }
      harness.turn()
    }
    #expect(harness.isDrained)
    let again = EngineHarness(isDurable: true)
    for batch in harness.stored { try again.engine.replay(batch) }
    expectEqual(again.engine.catalog.revision, harness.engine.catalog.revision)
    for feed in harness.engine.catalog.feeds.values {
      try expectEqual(World.contents(of: again.engine.catalog.feed(named: feed.name)), World.contents(of: feed))
    }
  }
}
