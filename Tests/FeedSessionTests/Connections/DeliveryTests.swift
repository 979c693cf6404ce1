import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Output larger than what one turn offers.
struct DeliveryTests {
  private let harness = EngineHarness()
  private static let size = 3 << 20

  /// Connects the clients, of which the first stores an element of ``size`` bytes.
  private func clients(_ count: Int) -> [ConnectionID] {
    let clients = (0..<count).map { _ in harness.connect() }
    _ = harness.ask(clients[0], "define", #"{"feed":"c","kind":"collection"}"#)
    let text = String(repeating: "x", count: Self.size)
    _ = harness.ask(clients[0], "update", #"{"feed":"c","element":{"id":1,"text":"\#(text)"}}"#)
    return clients
  }

  /// Runs turns until the clients have received everything. Returns the new bytes of each client in each turn.
  private func turns(_ clients: [ConnectionID]) -> [[Int]] {
    var counts: [[Int]] = []
    var before = clients.map { harness.halfFrame(of: $0) }
    while counts.count < 1000 {
      harness.turnOnce()
      let now = clients.map { harness.halfFrame(of: $0) }
      if now == before && !harness.hasWork { return counts }
      counts.append(zip(now, before).map { $0 - $1 })
      before = now
    }
    Issue.record("the output has no end")
    return counts
  }

  @Test func longAnswersShareTheTurns() {
    let clients = clients(9)
    for client in clients[1...7] { harness.supply(client, "get", #"{"feed":"c","id":1}"#) }
    harness.supply(clients[8], "ping")
    let counts = turns(Array(clients[1...8]))
    // At most 512 KiB for a connection and 2 MiB for a turn, besides small answers.
    expect(counts.allSatisfy { $0.allSatisfy { $0 <= 512 << 10 } })
    expect(counts.allSatisfy { $0.reduce(0, +) <= 2 << 20 + 16 << 10 })
    // Nobody waits for the end of the others.
    let last = (0..<7).map { client in counts.lastIndex { $0[client] > 0 } ?? -1 }
    let first = (0..<7).map { client in counts.firstIndex { $0[client] > 0 } ?? -1 }
    expect(first.max() ?? 0 < last.min() ?? 0)
    expectEqual(counts.firstIndex { $0[7] > 0 }, 0)
    for client in clients[1...7] {
      let answers = harness.take(client).map { Value($0)?["result"]?["element"]?["text"]?.string?.utf8.count }
      expectEqual(answers, [Self.size])
    }
    expectEqual(harness.take(clients[8]).count, 1)
  }

  @Test func outputThatFollowsALongAnswerKeepsItsPlace() {
    let clients = clients(2)
    harness.supply(clients[1], "get", #"{"feed":"c","id":1}"#)
    harness.turnOnce()
    harness.supply(clients[1], "nothing")
    harness.supply(clients[0], "get", #"{"feed":"c","id":1}"#)
    harness.turnOnce()
    harness.supply(clients[1], "get", #"{"feed":"c","id":1}"#)
    harness.turn()
    let answers = harness.take(clients[1]).compactMap { Value($0) }
    expectEqual(answers.map { $0["result"]?["element"]?["text"]?.string?.utf8.count }, [Self.size, nil, Self.size])
    expectEqual(answers.map { $0["error"]?["code"]?.int }, [nil, -32601, nil])
  }
}
