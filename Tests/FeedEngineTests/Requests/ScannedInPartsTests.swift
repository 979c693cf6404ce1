import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Requests whose text is scanned in parts by several turns.
@Suite("Long texts") struct ScannedInPartsTests {
  private static func numbers(_ count: Int) -> String {
    "[" + (0..<count).map { "\($0)" }.joined(separator: ",") + "]"
  }

  private func insert(_ id: Int, _ element: String) -> String {
    #"{"jsonrpc":"2.0","id":\#(id),"method":"insert","params":{"feed":"a","element":\#(element)}}"#
  }

  private func harness(isDurable: Bool) -> (EngineHarness, ConnectionID, ConnectionID) {
    let harness = EngineHarness(isDurable: isDurable)
    let (client, other) = (harness.connect(uid: 7), harness.connect(uid: 8))
    _ = harness.ask(other, "define", #"{"feed":"a","kind":"array"}"#)
    return (harness, client, other)
  }

  private func count(_ harness: EngineHarness, _ id: ConnectionID) -> Int? {
    harness.ask(id, "describe", #"{"feed":"a"}"#).first?.json?["result"]?["count"]?.int
  }

  @Test("a long request takes several turns, and others are served between them", arguments: [false, true])
  func request(isDurable: Bool) {
    let (harness, client, other) = harness(isDurable: isDurable)
    harness.supply(client, EngineHarness.frame(insert(1, Self.numbers(150_000))))
    harness.supply(client, "ping", id: 2)
    var turns = 0
    while harness.engine.sessions.longTexts.isEmpty && turns < 100 {
      harness.turnOnce()
      turns += 1
    }
    expect(!harness.engine.sessions.longTexts.isEmpty, "the text is scanned in part")
    harness.supply(other, "ping", id: 9)
    harness.turnOnce()
    expectEqual(harness.take(other).count, 1)
    harness.turn()
    expectEqual(harness.take(client).compactMap { $0.json?["id"]?.int }, [1, 2])
    expect(harness.engine.sessions.longTexts.isEmpty)
    expectEqual(count(harness, other), 1)
  }

  /// A transaction of many operations that insert into `a`, the last one into another feed.
  private static func transaction(last: String) -> String {
    let operations = (1...20_000).map { number in
      #"{"method":"insert","params":{"feed":"\#(number == 20_000 ? last : "a")","element":\#(number)}}"#
    }
    let list = operations.joined(separator: ",")
    return #"{"jsonrpc":"2.0","id":1,"method":"transaction","params":{"ops":[\#(list)]}}"#
  }

  private static let readers = #"{"uid":8,"allow":["read","define"]}"#

  @Test("the operations of a long transaction are checked by the access rules in parts", arguments: [false, true])
  func access(isInBatch: Bool) throws {
    let (harness, client, other) = harness(isDurable: true)
    try harness.configure(#"{"access":[{"uid":7,"feeds":"a","allow":"write"},\#(Self.readers)]}"#)
    func send(last: String) -> Value? {
      let request = Self.transaction(last: last)
      harness.send(client, isInBatch ? "[\(request)]" : request)
      let answer = harness.take(client).first?.json
      return isInBatch ? answer?.items.first : answer
    }
    expectEqual(send(last: "b")?["error"]?["data"]?["op"]?.int, 19_999)
    expectEqual(count(harness, other), 0)
    expectEqual(send(last: "a")?["result"]?["results"]?.items.count, 20_000)
    expectEqual(count(harness, other), 20_000)
  }

  @Test("rules that change while a long transaction is checked hold for all its operations", arguments: [false, true])
  func changedRules(isInBatch: Bool) throws {
    let (harness, client, other) = harness(isDurable: true)
    try harness.configure(#"{"access":[{"uid":7,"feeds":"a","allow":"write"},\#(Self.readers)]}"#)
    let request = Self.transaction(last: "a")
    harness.supply(client, EngineHarness.frame(isInBatch ? "[\(request)]" : request))
    var checked: Int { harness.engine.sessions[client]?.longText?.check.operations.count ?? 0 }
    for _ in 0..<1000 where checked == 0 { harness.turnOnce() }
    // Also if a turn tries a request of a batch several times.
    expect(checked > 0 && checked <= RequestCheck.unitsPerTurn / RequestCheck.unitsOfPart)
    try harness.configure(#"{"access":[\#(Self.readers)]}"#)
    let answer = harness.take(client).first?.json
    let error = (isInBatch ? answer?.items.first : answer)?["error"]
    expectEqual(error?["code"]?.int, -32006)
    expectEqual(error?["data"]?["op"]?.int, 0)
    expectEqual(count(harness, other), 0)
  }

  /// A request with 40,000 conditions on `a`, the last one on another feed.
  private static func conditional(last: String) -> String {
    let conditions = (1...40_000).map { #"{"feed":"\#($0 == 40_000 ? last : "a")","revision":1}"# }
    let list = conditions.joined(separator: ",")
    return #"{"jsonrpc":"2.0","id":1,"method":"insert","params":{"feed":"a","element":1,"if":[\#(list)]}}"#
  }

  @Test("the conditions of a long request are checked by the access rules in parts", arguments: [false, true])
  func conditions(isOperation: Bool) throws {
    let (harness, client, other) = harness(isDurable: true)
    try harness.configure(#"{"access":[{"uid":7,"feeds":"a","allow":["read","write"]},\#(Self.readers)]}"#)
    func send(last: String) -> Value? {
      var request = Self.conditional(last: last)
      if isOperation {
        let params = request.dropFirst(#"{"jsonrpc":"2.0","id":1,"method":"insert","params":"#.utf8.count).dropLast()
        let operation = #"{"method":"insert","params":\#(params)}"#
        request = #"{"jsonrpc":"2.0","id":1,"method":"transaction","params":{"ops":[\#(operation)]}}"#
      }
      harness.supply(client, EngineHarness.frame(request))
      var turns = 0
      var lines: [String] = []
      while lines.isEmpty && turns < 1000 {
        harness.turnOnce()
        turns += 1
        lines = harness.take(client)
      }
      expect(turns > 10, "the conditions are checked in parts")
      return lines.first?.json
    }
    expectEqual(send(last: "b")?["error"]?["code"]?.int, -32006)
    expectEqual(count(harness, other), 0)
    expect(send(last: "a")?["result"] != nil)
    expectEqual(count(harness, other), 1)
  }

  @Test("definitions of a long transaction are checked before its feeds, also those that may not be read")
  func definitions() throws {
    let (harness, client, _) = harness(isDurable: true)
    try harness.configure(#"{"access":[{"uid":7,"feeds":"a*","allow":"define"},\#(Self.readers)]}"#)
    func transaction(last: String) -> Value? {
      let operations = (0..<5000).map { number in
        #"{"method":"define","params":{"feed":"a\#(number)","kind":"composed","children":["b"]}}"#
      }
      let list = (operations + [last]).joined(separator: ",")
      harness.send(client, #"{"jsonrpc":"2.0","id":1,"method":"transaction","params":{"ops":[\#(list)]}}"#)
      return harness.take(client).first?.json?["error"]
    }
    let unknown = transaction(last: #"{"method":"define","params":{"feed":"a","kind":"array","colour":1}}"#)
    expectEqual(unknown?["code"]?.int, -32602)
    expectEqual(unknown?["data"]?["op"]?.int, 5000)
    let hidden = transaction(last: #"{"method":"define","params":{"feed":"a","kind":"array"}}"#)
    expectEqual(hidden?["code"]?.int, -32006)
    expectEqual(hidden?["data"]?["op"]?.int, 0)
  }

  @Test("a long JSON-RPC batch is answered as a short one", arguments: [false, true])
  func batch(isDurable: Bool) {
    let (harness, client, other) = harness(isDurable: isDurable)
    let requests = (0..<40).map { insert($0, Self.numbers(5000)) }.joined(separator: ",")
    harness.send(client, "[\(requests)]")
    let answers = harness.take(client).first?.json?.items ?? []
    expectEqual(answers.compactMap { $0["id"]?.int }, Array(0..<40))
    expectEqual(count(harness, other), 40)
    // A batch of one request that is long itself.
    harness.send(client, "[\(insert(1, Self.numbers(60_000)))]")
    expectEqual(harness.take(client).count, 1)
    expectEqual(count(harness, other), 41)
  }

  @Test("a long text that is no JSON is refused, and the connection goes on")
  func invalid() {
    let (harness, client, other) = harness(isDurable: false)
    harness.send(client, insert(1, Self.numbers(150_000)) + "]")
    expectEqual(harness.take(client).first?.json?.errorCode, -32700)
    harness.send(client, "[" + String(repeating: " ", count: 300_000) + "]")
    expectEqual(harness.take(client).first?.json?.errorCode, -32600)
    expectEqual(harness.ask(client, "ping").count, 1)
    expectEqual(count(harness, other), 0)
    expect(harness.engine.sessions.longTexts.isEmpty)
  }

  @Test("a client that disconnects within its text leaves nothing")
  func disconnected() {
    let (harness, client, other) = harness(isDurable: true)
    harness.supply(client, EngineHarness.frame(insert(1, Self.numbers(150_000))))
    for _ in 0..<100 where harness.engine.sessions.longTexts.isEmpty { harness.turnOnce() }
    expect(!harness.engine.sessions.longTexts.isEmpty)
    harness.disconnect(client)
    expect(harness.engine.sessions.longTexts.isEmpty)
    expectEqual(count(harness, other), 0)
  }

  @Test("texts of several connections of a user are scanned one after the other")
  func several() {
    let (harness, client, other) = harness(isDurable: false)
    let clients = [client, harness.connect(uid: 7), harness.connect(uid: 8)]
    for id in clients { harness.supply(id, EngineHarness.frame(insert(1, Self.numbers(100_000)))) }
    harness.turn()
    for id in clients { expect(harness.take(id).first?.json?["result"] != nil) }
    expectEqual(count(harness, other), 3)
  }
}
