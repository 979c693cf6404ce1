import FeedModel
import FeedServer
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

@Suite("Conditions on elements")
struct ElementConditionTests {
  private let harness: EngineHarness
  private let client: ConnectionID

  init() {
    harness = EngineHarness(isDurable: true) { ($0.maxQuerySteps, $0.maxRequestSteps) = (5000, 8000) }
    client = harness.connect(uid: 1)
    for (method, params) in [
      ("define", #"{"feed":"todo","kind":"collection"}"#),
      ("define", #"{"feed":"queue","kind":"array","id":"$.id"}"#),
      ("define", #"{"feed":"plain","kind":"array"}"#),
      ("define", #"{"feed":"lock","kind":"single"}"#),
      ("update", #"{"feed":"todo","elements":[{"id":1,"n":1},{"id":"two","n":2}]}"#),
      ("insert", #"{"feed":"queue","elements":[{"id":1,"n":1},{"id":"two","n":2}]}"#),
      ("insert", #"{"feed":"plain","elements":[{"n":1},{"n":2}]}"#),
      ("put", #"{"feed":"lock","element":{"n":1}}"#),
    ] { _ = harness.ask(client, method, params) }
  }

  private func ask(_ method: String, _ params: String) -> Value? {
    Value(harness.ask(client, method, params).last ?? "")
  }

  private var state: [String] {
    ["todo", "queue", "plain", "lock"].map { harness.ask(client, "snapshot", #"{"feed":"\#($0)"}"#).last ?? "" }
  }

  @Test(
    "a condition that does not hold changes nothing and names the element",
    arguments: [
      ("patch", #""feed":"todo","id":"two","patch":{"n":3},"where":"@.n == 1""#, #"{"index":0,"id":"two"}"#),
      (
        "patch", #""feed":"todo","patches":[{"id":1,"patch":{"n":3}},{"id":"two","patch":{"n":3}}],"where":"@.n == 1""#,
        #"{"index":1,"id":"two"}"#
      ),
      ("patch", #""feed":"queue","id":1e0,"patch":{"n":3},"where":"@.n == 2""#, #"{"index":0,"id":1e0}"#),
      ("patch", #""feed":"queue","at":1,"patch":{"n":3},"where":"@.n == 1""#, #"{"index":0,"id":"two","at":1}"#),
      ("patch", #""feed":"plain","at":1,"patch":{"n":3},"where":"@.n == 1""#, #"{"index":0,"at":1}"#),
      ("patch", #""feed":"lock","patch":{"n":3},"where":"@.n == 2""#, #"{"index":0}"#),
      ("update", #""feed":"todo","element":{"id":"two"},"where":"@.n == 1""#, #"{"index":0,"id":"two"}"#),
      ("update", #""feed":"todo","elements":[{"id":1},{"id":9}],"where":"@.n == 1""#, #"{"index":1,"id":9}"#),
      ("update", #""feed":"queue","elements":[{"id":1},{"id":9}],"where":"@.n == 1""#, #"{"index":1,"id":9}"#),
      ("update", #""feed":"todo","elements":[{"id":9},{"id":1}],"absent":true"#, #"{"index":1,"id":1}"#),
      ("update", #""feed":"queue","element":{"id":"two"},"absent":true"#, #"{"index":0,"id":"two"}"#),
      ("delete", #""feed":"todo","id":1,"where":"@.n == 2""#, #"{"index":0,"id":1}"#),
      ("delete", #""feed":"todo","ids":[1,9],"where":"@.n == 1""#, #"{"index":1,"id":9}"#),
      ("delete", #""feed":"queue","ids":[1,"two"],"where":"@.n == 1""#, #"{"index":1,"id":"two"}"#),
      ("move", #""feed":"queue","id":1,"to":1,"where":"@.n == 2""#, #"{"index":0,"id":1}"#),
      ("move", #""feed":"queue","from":1,"to":0,"where":"@.n == 1""#, #"{"index":0,"id":"two","at":1}"#),
      ("move", #""feed":"plain","from":1,"to":0,"where":"@.n == 1""#, #"{"index":0,"at":1}"#),
    ] as [(String, String, String)])
  func unmet(method: String, params: String, data: String) throws {
    let (before, revision) = (state, harness.engine.catalog.revision)
    let feed = try require(Value("{\(params)}")?["feed"]?.string)
    let present = try require(ask("describe", #"{"feed":"\#(feed)"}"#)?["result"]?["revision"]?.int)
    let expected = #"{"feed":"\#(feed)","revision":\#(present),"# + data.dropFirst()
    let refused = ask(method, "{\(params)}")
    expectEqual(refused?.errorCode, -32009)
    expectEqual(refused?["error"]?["data"]?.text, expected)
    let operation = ask("transaction", #"{"ops":[{"method":"\#(method)","params":{\#(params)}}]}"#)
    expectEqual(operation?["error"]?["data"]?.text, #"{"op":0,"# + expected.dropFirst())
    expectEqual(state, before)
    expectEqual(harness.engine.catalog.revision, revision)
  }

  @Test("an identity that is not there is refused by patch and move as without a condition")
  func unknownIdentities() {
    for (method, params) in [
      ("patch", #"{"feed":"todo","id":9,"patch":{},"where":"@.n"}"#),
      ("patch", #"{"feed":"queue","id":9,"patch":{},"where":"@.n"}"#),
      ("move", #"{"feed":"queue","id":9,"to":0,"where":"@.n"}"#),
    ] { expectEqual(ask(method, params)?.errorCode, -32010) }
    expectEqual(ask("move", #"{"feed":"plain","from":9,"to":0,"where":"@.n"}"#)?.errorCode, -32005)
    // A combination of parameters that the method refuses anyway is refused first.
    expectEqual(ask("update", #"{"feed":"plain","element":1,"where":"@.n"}"#)?.errorCode, -32002)
    expectEqual(ask("update", #"{"feed":"todo/all","element":{"id":1},"absent":true}"#)?.errorCode, -32002)
  }

  @Test("an identity of the wrong kind is refused with its position")
  func positions() {
    let patches = #"{"feed":"todo","patches":[{"id":1,"patch":{}},{"id":null,"patch":{}}]}"#
    for (method, params) in [
      ("patch", patches), ("delete", #"{"feed":"todo","ids":[1,{}],"where":"@.n"}"#),
      ("delete", #"{"feed":"queue","ids":[1,{}],"where":"@.n"}"#),
      ("update", #"{"feed":"todo","elements":[{"id":5},{}],"absent":true}"#),
      ("update", #"{"feed":"queue","elements":[{"id":5},{"id":true}],"absent":true}"#),
    ] {
      let refused = ask(method, params)
      expectEqual(refused?.errorCode, -32003)
      expectEqual(refused?.errorData?["index"]?.int, 1)
    }
  }

  @Test("a filter is refused even if there is no element to judge")
  func filters() {
    for (method, params) in [
      ("patch", #""feed":"todo","patches":[]"#), ("update", #""feed":"todo","elements":[]"#),
      ("delete", #""feed":"queue","ids":[]"#), ("move", #""feed":"queue","id":9,"to":0"#),
      ("patch", #""feed":"lock","patch":{}"#),
    ] {
      let unfinished = ask(method, "{\(params),\"where\":\"@.n ==\"}")
      expectEqual(unfinished?.errorCode, -32004)
      expectEqual(unfinished?.errorData?["member"]?.string, "where")
      expectEqual(unfinished?.errorData?["offset"]?.int, 6)
      for value in ["7", "null", "[]", "{}"] {
        expectEqual(ask(method, "{\(params),\"where\":\(value)}")?.errorCode, -32602)
      }
    }
  }

  @Test("a condition takes no more steps than an element and a request may")
  func steps() {
    let values = (0..<1000).map(String.init).joined(separator: ",")
    let long = (10..<20).map { #"{"id":\#($0),"v":[\#(values)]}"# }
    for element in long { _ = ask("update", #"{"feed":"todo","element":\#(element)}"#) }
    let before = state
    let limit = { (params: String) -> String? in
      let refused = ask("delete", #"{"feed":"todo",\#(params)}"#)
      return refused?.errorCode == -32007 ? refused?.errorData?["limit"]?.string : nil
    }
    expectEqual(limit(#""id":10,"where":"@.v[?count($.v[?@ > 1]) == 7]""#), "maxQuerySteps")
    expectEqual(limit(#""ids":[10,11,12,13,14,15,16,17,18,19],"where":"@.v[?@ == 999]""#), "maxRequestSteps")
    expectEqual(state, before)
    expectEqual(ask("delete", #"{"feed":"todo","id":10,"where":"@.v[?@ == 999]"}"#)?.errorCode, nil)
  }

  @Test("a condition on elements requires the right to read the feed")
  func access() throws {
    let harness = EngineHarness()
    try harness.configure(
      #"""
      {"feeds": [{"feed": "c", "kind": "collection"}, {"feed": "a", "kind": "array", "id": "$.id"}],
       "access": [{"feeds": "*", "allow": ["write"]}]}
      """#)
    let client = harness.connect(uid: 2000)
    func code(_ method: String, _ params: String) -> Int? {
      Value(harness.ask(client, method, params).last ?? "")?.errorCode
    }
    expectEqual(code("update", #"{"feed":"c","element":{"id":1}}"#), nil)
    expectEqual(code("update", #"{"feed":"a","element":{"id":1}}"#), nil)
    for (method, params) in [
      ("update", #""feed":"c","element":{"id":1}"#), ("patch", #""feed":"c","id":1,"patch":{}"#),
      ("delete", #""feed":"c","id":1"#), ("delete", #""feed":"c","ids":[1]"#), ("move", #""feed":"a","id":1,"to":0"#),
    ] {
      expectEqual(code(method, #"{\#(params),"where":"@.id"}"#), -32006)
      let operation = #"{"ops":[{"method":"\#(method)","params":{\#(params),"where":"@.id"}}]}"#
      expectEqual(code("transaction", operation), -32006)
    }
    expectEqual(code("update", #"{"feed":"c","element":{"id":2},"absent":true}"#), -32006)
    expectEqual(code("delete", #"{"feed":"c","where":"@.id == 1"}"#), nil)
  }

  @Test("random conditional requests are decided alike by all paths and by replay")
  func replay() throws {
    var random = SeededRandom(seed: UInt64.random(in: 0...UInt64.max))
    let sliced = EngineHarness(isDurable: true, slices: SlicedWork("slices", slice: 0))
    let direct = EngineHarness()
    let harnesses = [sliced, direct]
    let clients = harnesses.map { $0.connect(uid: 1) }
    let define =
      #"{"feed":"c","kind":"collection","bins":[{"name":"free","filter":"!@.o"},{"name":"taken"}],"exclusive":true}"#
    for (harness, client) in zip(harnesses, clients) { _ = harness.ask(client, "define", define) }
    var refusals = 0
    for _ in 0..<300 {
      let (id, owner) = (Int.random(in: 0..<5, using: &random), Int.random(in: 0..<3, using: &random))
      let filter = ["!@.o", "@.o == \(owner)", "@.id > 2"].randomElement(using: &random) ?? ""
      let (method, params) =
        switch Int.random(in: 0..<4, using: &random) {
        case 0: ("patch", #"{"feed":"c","id":\#(id),"patch":{"o":\#(owner)},"where":"\#(filter)"}"#)
        case 1: ("update", #"{"feed":"c","elements":[{"id":\#(id),"o":\#(owner)},{"id":4}],"where":"\#(filter)"}"#)
        case 2: ("update", #"{"feed":"c","element":{"id":\#(id)},"absent":true}"#)
        default: ("delete", #"{"feed":"c","ids":[\#(id),\#(owner)],"where":"\#(filter)"}"#)
        }
      let answers = zip(harnesses, clients).map { $0.ask($1, method, params).last }
      expectEqual(answers[0], answers[1], "seed \(random.seed): \(method) \(params)")
      if Value(answers[0] ?? "")?.errorCode != nil { refusals += 1 }
    }
    expect(refusals > 20 && refusals < 280, "seed \(random.seed)")
    let again = EngineHarness(isDurable: true)
    for batch in sliced.stored { try again.engine.replay(batch) }
    let reader = again.connect(uid: 1)
    let snapshot = { (harness: EngineHarness, client: ConnectionID) in
      harness.ask(client, "snapshot", #"{"feed":"c"}"#)
    }
    expectEqual(snapshot(again, reader), snapshot(sliced, clients[0]), "seed \(random.seed)")
    expectEqual(snapshot(direct, clients[1]), snapshot(sliced, clients[0]), "seed \(random.seed)")
  }

  @Test(
    "one of many claims wins", arguments: [false, true])
  func claims(isDurable: Bool) {
    let harness = EngineHarness(isDurable: isDurable)
    let clients = (0..<8).map { _ in harness.connect(uid: 1) }
    _ = harness.ask(clients[0], "define", #"{"feed":"c","kind":"collection"}"#)
    _ = harness.ask(clients[0], "update", #"{"feed":"c","element":{"id":1}}"#)
    for (owner, client) in clients.enumerated() {
      let params = #"{"feed":"c","id":1,"patch":{"owner":\#(owner)},"where":"!@.owner"}"#
      harness.supply(client, "patch", params)
    }
    harness.turn()
    let codes = clients.map { Value(harness.take($0).last ?? "")?.errorCode }
    expectEqual(codes.filter { $0 == nil }.count, 1)
    expectEqual(codes.filter { $0 == -32009 }.count, 7)
    let element = Value(harness.ask(clients[0], "get", #"{"feed":"c","id":1}"#).last ?? "")?["result"]
    expectEqual(element?["element"]?["owner"]?.int, codes.firstIndex { $0 == nil })
    expectEqual(element?["revision"]?.int, 3)
  }
}
