import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Answers and JSON-RPC batches that take several turns: they share each turn, are charged to their user, and are cancelled
/// when their peer disconnects.
struct LongAnswersTests {
  private static let ping = #"{"jsonrpc":"2.0","id":1,"method":"ping"}"#
  private static let insert =
    #"{"jsonrpc":"2.0","id":2,"method":"insert","params":{"feed":"a","elements":[7]}}"#

  private func harness(isDurable: Bool) -> (EngineHarness, ConnectionID) {
    let harness = EngineHarness(isDurable: isDurable)
    let observer = harness.connect(uid: 9)
    _ = harness.ask(observer, "define", #"{"feed":"a","kind":"array"}"#)
    return (harness, observer)
  }

  /// So many requests of a batch take more than one turn.
  private static let pings = 3 * LongAnswers.turnBudget

  /// Sends a batch that takes more than one turn, and runs turns until its first requests were taken.
  private func begin(_ harness: EngineHarness, _ client: ConnectionID, _ last: String = insert) {
    let requests = Array(repeating: Self.ping, count: Self.pings) + [last]
    harness.supply(client, EngineHarness.frame("[" + requests.joined(separator: ",") + "]"))
    for _ in 0..<100 where harness.engine.sessions[client]?.line.array == nil { harness.turnOnce() }
  }

  private func count(_ harness: EngineHarness, _ observer: ConnectionID) -> Int? {
    harness.ask(observer, "describe", #"{"feed":"a"}"#).first?.json?["result"]?["count"]?.int
  }

  @Test(arguments: [false, true]) func batchOfADisconnectedPeerIsExecutedWithoutReads(isDurable: Bool) {
    let (harness, observer) = harness(isDurable: isDurable)
    let client = harness.connect(uid: 7)
    begin(harness, client)
    let line = harness.engine.sessions[client]
    expectEqual(line?.line.array?.isUnfinished, true)
    harness.hangUp(client)
    harness.turn()
    expectEqual(count(harness, observer), 1)
    expect(harness.engine.longAnswers.isEmpty && line?.line.isDone == true)
    expectEqual(harness.take(client), [])
    harness.endInput(client)
    expect(!harness.isOpen(client))
  }

  @Test(arguments: [false, true]) func batchIsChargedUntilComplete(isDurable: Bool) {
    let (harness, observer) = harness(isDurable: isDurable)
    let client = harness.connect(uid: 7)
    begin(harness, client)
    expect(harness.engine.sessions.quotas.bytes(of: 7) > 10_000)
    harness.turn()
    expectEqual(harness.take(client).count, 1)
    expectEqual(harness.engine.sessions.quotas.bytes(of: 7), 0)
    expectEqual(count(harness, observer), 1)
  }

  /// Users share a turn equally, however many connections each has.
  @Test func usersShareATurn() {
    let (harness, observer) = harness(isDurable: false)
    let long = String(repeating: "x", count: 100 * 128)
    _ = harness.ask(observer, "insert", #"{"feed":"a","elements":["\#(long)"]}"#)
    let get = #"{"jsonrpc":"2.0","id":1,"method":"get","params":{"feed":"a","at":[0,0]}}"#
    let requests = Array(repeating: get, count: 200).joined(separator: ",")
    let many = (0..<3).map { _ in harness.connect(uid: 7) }
    let one = harness.connect(uid: 8)
    for client in many + [one] { harness.supply(client, EngineHarness.frame("[\(requests)]")) }
    harness.turnOnce()
    let answered = { (id: ConnectionID) in harness.engine.sessions[id]?.line.array?.answersSize ?? 0 }
    let before = (many.map(answered), answered(one))
    harness.supply(observer, EngineHarness.frame(Self.ping))
    harness.turnOnce()
    expectEqual(harness.take(observer).count, 1, "a ping does not wait for the batch of another connection")
    let made = zip(many, before.0).map { answered($0) - $1 }
    expect(made.allSatisfy { $0 > 0 } && answered(one) - before.1 >= 2 * (made.max() ?? 0))
    harness.turn()
    for client in many + [one] { expectEqual(harness.take(client).first?.json?.items.count, 200) }
  }

  /// A long answer is cancelled and its document released when its peer disconnects.
  @Test func queryIsCancelledWhenItsPeerDisconnects() {
    let (harness, observer) = harness(isDurable: false)
    let filler = String(repeating: "x", count: 2000)
    let elements = (0..<6000).map { #"{"id":\#($0),"t":"\#(filler)"}"# }.joined(separator: ",")
    _ = harness.ask(observer, "insert", #"{"feed":"a","elements":[\#(elements)]}"#)
    let client = harness.connect(uid: 7)
    harness.supply(client, "query", #"{"feed":"a","path":"$..id"}"#)
    harness.turnOnce()
    expect(harness.engine.sessions.quotas.bytes(of: 7) > 100_000)
    harness.hangUp(client)
    harness.turnOnce()
    expectEqual(harness.engine.sessions.quotas.bytes(of: 7), 0)
    harness.turn()
    expect(harness.engine.longAnswers.isEmpty)
  }
}
