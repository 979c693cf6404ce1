import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

@Suite("Answers with the counts of the change")
struct CountedResultTests {
  private let harness = EngineHarness()
  private let client: ConnectionID

  init() {
    client = harness.connect(uid: 1)
    for definition in [
      #"{"feed":"inbox","kind":"collection","bins":[{"name":"high","filter":"@.p > 5"},{"name":"low"}],"exclusive":true}"#,
      #"{"feed":"days","kind":"collection","section":"$.day"}"#,
      #"{"feed":"list","kind":"array","id":"$.id"}"#,
    ] { _ = harness.ask(client, "define", definition) }
  }

  private func ask(_ method: String, _ params: String) -> Value? {
    Value(harness.ask(client, method, params).last ?? "")
  }

  private func result(_ method: String, _ params: String) -> String? { ask(method, params)?["result"]?.text }

  @Test("the counts are those of the change")
  func counts() {
    expectEqual(
      result(
        "update", #"{"feed":"inbox","elements":[{"id":1,"p":1},{"id":2,"p":9},{"id":3,"p":2}],"result":"counts"}"#),
      #"{"revision":4,"counts":{"deleted":0,"added":3,"updated":0,"moves":0}}"#)
    expectEqual(
      result(
        "update", #"{"feed":"inbox","elements":[{"id":1,"p":7},{"id":2,"p":8},{"id":9,"p":0}],"result":"counts"}"#),
      #"{"revision":5,"counts":{"deleted":1,"added":2,"updated":1,"moves":1}}"#)
    expectEqual(
      result("update", #"{"feed":"days","elements":[{"id":1,"day":"a"},{"id":2,"day":"b"}],"result":"counts"}"#),
      #"{"revision":6,"counts":{"deleted":0,"added":2,"updated":0,"moves":0,"sections":{"deleted":0,"added":2}}}"#)
    expectEqual(
      result("delete", #"{"feed":"days","where":"@.id > 0","result":"counts"}"#),
      #"{"revision":7,"counts":{"deleted":0,"added":0,"updated":0,"moves":0,"sections":{"deleted":2,"added":0}}}"#)
    expectEqual(
      result("delete", #"{"feed":"days","id":5,"result":"counts"}"#),
      #"{"revision":7,"counts":{"deleted":0,"added":0,"updated":0,"moves":0}}"#)
  }

  @Test("the default is the change, and other values are refused and change nothing")
  func values() {
    expectEqual(
      result("insert", #"{"feed":"list","element":{"id":1},"result":"change"}"#),
      #"{"revision":4,"deleted":[],"added":[[0,0]],"updated":[]}"#)
    for value in ["null", "true", "\"count\"", "\"\"", "[\"counts\"]"] {
      let refused = ask("insert", #"{"feed":"list","element":{"id":2},"result":\#(value)}"#)
      expectEqual(refused?.errorCode, -32602)
      expectEqual(refused?.errorData?["member"]?.string, "result")
      let transaction = ask("transaction", #"{"ops":[],"result":\#(value)}"#)
      expectEqual(transaction?.errorData?["member"]?.string, "result")
      let op = #"{"method":"insert","params":{"feed":"list","element":{"id":2},"result":\#(value)}}"#
      let operation = ask("transaction", #"{"ops":[\#(op)]}"#)
      expectEqual(operation?.errorCode, -32602)
      expectEqual(operation?.errorData?["op"]?.int, 0)
    }
    expectEqual(harness.engine.catalog.revision, 4)
  }

  @Test("a transaction counts all of its operations, or those that ask for it")
  func transactions() {
    let insert = #"{"method":"insert","params":{"feed":"list","element":{"id":1}}}"#
    let remove = #"{"method":"remove","params":{"feed":"list","at":0,"result":"counts"}}"#
    let define = #"{"method":"define","params":{"feed":"new","kind":"single"}}"#
    expectEqual(
      result("transaction", #"{"ops":[\#(insert),\#(remove)]}"#),
      #"{"revision":3,"results":[{"deleted":[],"added":[[0,0]],"updated":[]},{"counts":{"deleted":1,"added":0,"updated":0,"moves":0}}]}"#
    )
    expectEqual(
      result("transaction", #"{"ops":[\#(insert),\#(remove),\#(define)],"result":"counts"}"#),
      #"{"revision":4,"results":[{"counts":{"deleted":0,"added":1,"updated":0,"moves":0}},{"counts":{"deleted":1,"added":0,"updated":0,"moves":0}},{"counts":{"deleted":0,"added":0,"updated":0,"moves":0}}]}"#
    )
  }

  @Test("a change that is too long for a frame can be counted, and watchers get the same delta")
  func longChanges() {
    let harness = EngineHarness(isDurable: true) { $0.maxFrame = 64 << 10 }
    let (client, watcher) = (harness.connect(uid: 1), harness.connect(uid: 1))
    _ = harness.ask(client, "define", #"{"feed":"list","kind":"array"}"#)
    let elements = Array(repeating: "1", count: 9000).joined(separator: ",")
    _ = harness.ask(client, "insert", #"{"feed":"list","elements":[\#(elements)],"result":"counts"}"#)
    _ = harness.ask(watcher, "watch", #"{"feed":"list","initial":false}"#)
    let rows = (0..<9000).map(String.init).joined(separator: ",")
    let refused = harness.ask(client, "remove", #"{"feed":"list","at":[\#(rows)]}"#).last ?? ""
    expectEqual(Value(refused)?.errorCode, -32007)
    let counted = harness.ask(client, "remove", #"{"feed":"list","at":[\#(rows)],"result":"counts"}"#).last ?? ""
    expectEqual(
      Value(counted)?["result"]?.text, #"{"revision":3,"counts":{"deleted":9000,"added":0,"updated":0,"moves":0}}"#)
    let copy = EngineHarness(isDurable: true)
    for batch in harness.stored { try? copy.engine.replay(batch) }
    expectEqual(copy.engine.catalog.revision, 3)
  }
}
