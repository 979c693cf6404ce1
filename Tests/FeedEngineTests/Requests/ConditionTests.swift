import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

@Suite("Conditions of requests")
struct ConditionTests {
  private let harness: EngineHarness
  private let client: ConnectionID

  init() {
    harness = EngineHarness(isDurable: true)
    client = harness.connect(uid: 1)
    for definition in [
      #"{"feed":"list","kind":"array"}"#,
      #"{"feed":"inbox","kind":"collection","bins":[{"name":"high","filter":"@.p > 5"},{"name":"low"}]}"#,
      #"{"feed":"home","kind":"composed","children":["list","inbox/high"]}"#,
    ] { _ = harness.ask(client, "define", definition) }
  }

  private func ask(_ method: String, _ params: String) -> Value? {
    Value(harness.ask(client, method, params).first ?? "")
  }

  private func revision(_ feed: String) -> Int {
    ask("describe", #"{"feed":"\#(feed)"}"#)?["result"]?["revision"]?.int ?? -1
  }

  private func insert(_ condition: String) -> Value? {
    ask("insert", #"{"feed":"list","elements":[1],"if":\#(condition)}"#)
  }

  @Test("a request is executed if the feed has the revision; otherwise the error names the current revision")
  func revisions() {
    let first = revision("list")
    expectEqual(insert(#"{"feed":"list","revision":\#(first)}"#)?.errorCode, nil)
    let refused = insert(#"{"feed":"list","revision":\#(first)}"#)
    expectEqual(refused?.errorCode, -32009)
    expectEqual(refused?.errorData?["feed"]?.string, "list")
    expectEqual(refused?.errorData?["revision"]?.int, revision("list"))
    expectEqual(ask("describe", #"{"feed":"list"}"#)?["result"]?["count"]?.int, 1)
  }

  @Test("the revision null means that the feed is not defined")
  func undefinedFeeds() {
    let define = #"{"feed":"new","kind":"array","if":{"feed":"new","revision":null}}"#
    expectEqual(ask("define", define)?.errorCode, nil)
    let again = ask(
      "define", #"{"feed":"new","kind":"array","type":"$.t","replace":true,"if":{"feed":"new","revision":null}}"#)
    expectEqual(again?.errorCode, -32009)
    expectEqual(again?.errorData?["revision"]?.int, revision("new"))
    let missing = insert(#"{"feed":"nowhere","revision":1}"#)
    expectEqual(missing?.errorCode, -32009)
    expectEqual(missing?.errorData?["revision"]?.text, "null")
  }

  @Test("all conditions must hold, for feeds of any kind and for bins")
  func several() {
    _ = ask("update", #"{"feed":"inbox","element":{"id":1,"p":9}}"#)
    let (home, high, low) = (revision("home"), revision("inbox/high"), revision("inbox/low"))
    expectEqual(home, high)
    let holds = #"[{"feed":"home","revision":\#(home)},{"feed":"inbox/low","revision":\#(low)}]"#
    expectEqual(insert(holds)?.errorCode, nil)
    let fails = insert(#"[{"feed":"inbox/high","revision":\#(high)},{"feed":"home","revision":\#(home)}]"#)
    expectEqual(fails?.errorCode, -32009)
    expectEqual(fails?.errorData?["feed"]?.string, "home")
    expectEqual(insert("[]")?.errorCode, nil)
  }

  @Test("a transaction and each of its operations may have conditions")
  func transactions() {
    let now = revision("list")
    let op = #"{"method":"insert","params":{"feed":"list","elements":[1]}}"#
    let late =
      #"{"method":"insert","params":{"feed":"list","elements":[2],"if":{"feed":"list","revision":\#(now + 9)}}}"#
    let refused = ask("transaction", #"{"ops":[\#(op),\#(late)]}"#)
    expectEqual(refused?.errorCode, -32009)
    expectEqual(refused?.errorData?["op"]?.int, 1)
    let whole = ask("transaction", #"{"ops":[\#(op)],"if":{"feed":"list","revision":\#(now + 9)}}"#)
    expectEqual(whole?.errorCode, -32009)
    expectEqual(whole?.errorData?["op"], nil)
    expectEqual(revision("list"), now)
    expectEqual(ask("transaction", #"{"ops":[\#(op),\#(op)],"if":{"feed":"list","revision":\#(now)}}"#)?.errorCode, nil)
  }

  @Test(
    "conditions of operations see the feeds and bins from before the transaction",
    arguments: [
      // An earlier operation defines or adds it.
      ([#""method":"define","params":{"feed":"new","kind":"array""#], #""new","revision":null"#, nil),
      ([#""method":"define","params":{"feed":"new","kind":"array""#], #""new","revision":NEXT"#, -32009),
      ([defineBins(["high", "low", "more"])], #""inbox/more","revision":null"#, nil),
      ([defineBins(["high", "low", "more"])], #""inbox/more","revision":NEXT"#, -32009),
      // An earlier operation undefines or removes it.
      ([#""method":"undefine","params":{"feed":"old""#], #""old","revision":OLD"#, nil),
      ([#""method":"undefine","params":{"feed":"old""#], #""old","revision":null"#, -32009),
      ([defineBins(["high"])], #""inbox/low","revision":LOW"#, nil),
      ([defineBins(["high"])], #""inbox/low","revision":null"#, -32009),
      // Earlier operations define it again, or differently.
      (
        [#""method":"undefine","params":{"feed":"old""#, #""method":"define","params":{"feed":"old","kind":"array""#],
        #""old","revision":OLD"#, nil
      ),
      ([defineBins(["low", "high"])], #""inbox/low","revision":LOW"#, nil),
    ] as [([String], String, Int?)])
  func feedsBeforeTheTransaction(operations: [String], condition: String, code: Int?) {
    _ = ask("define", #"{"feed":"old","kind":"array"}"#)
    let before = revision("old")
    let condition =
      condition
      .replacing("NEXT", with: "\(before + 1)").replacing("OLD", with: "\(before)")
      .replacing("LOW", with: "\(revision("inbox/low"))")
    let last = #""method":"insert","params":{"feed":"list","elements":[1],"if":{"feed":\#(condition)}"#
    let all = (operations + [last]).map { "{\($0)}}" }.joined(separator: ",")
    let answer = ask("transaction", #"{"ops":[\#(all)]}"#)
    expectEqual(answer?.errorCode, code)
    expectEqual(answer?.errorData?["op"]?.int, (code == nil ? nil : operations.count))
    expectEqual(ask("describe", #"{"feed":"list"}"#)?["result"]?["count"]?.int, (code == nil ? 1 : 0))
  }

  private static func defineBins(_ names: [String]) -> String {
    let bins = names.map { #"{"name":"\#($0)","filter":"@.p > 5"}"# }.joined(separator: ",")
    return #""method":"define","params":{"feed":"inbox","kind":"collection","bins":[\#(bins)],"replace":true"#
  }

  @Test("selecting may have conditions")
  func selection() {
    _ = insert("[]")
    expectEqual(ask("select", #"{"feed":"list","at":[0,0],"if":{"feed":"list","revision":0}}"#)?.errorCode, -32009)
    expectEqual(ask("selected", #"{"feed":"list"}"#)?["result"]?["selected"]?.items.isEmpty, true)
  }

  @Test(
    "a malformed condition is refused",
    arguments: [
      ("7", "if"), ("[7]", "if[0]"), (#"{"revision":1}"#, "if.feed"), (#"{"feed":"list"}"#, "if.revision"),
      (#"[{"feed":"list","revision":-1}]"#, "if[0].revision"), (#"{"feed":"list","revision":"1"}"#, "if.revision"),
      (#"{"feed":"list","revision":1.5}"#, "if.revision"),
    ] as [(String, String)])
  func malformed(condition: String, member: String) {
    let refused = insert(condition)
    expectEqual(refused?.errorCode, -32602)
    expectEqual(refused?.errorData?["member"]?.string, member)
  }

  @Test("of concurrent requests with the same revision, exactly one is executed")
  func concurrency() {
    let now = revision("list")
    let clients = (0..<8).map { _ in harness.connect(uid: 1) }
    let request =
      #"{"jsonrpc":"2.0","id":1,"method":"insert","params":{"feed":"list","elements":[1],"if":{"feed":"list","revision":\#(now)}}}"#
    for client in clients { harness.supply(client, EngineHarness.frame(request)) }
    harness.turn()
    let codes = clients.map { Value(harness.take($0).first ?? "")?.errorCode }
    expectEqual(codes.filter { $0 == nil }.count, 1)
    expectEqual(codes.filter { $0 == -32009 }.count, 7)
  }

  @Test("random conditional requests succeed exactly if the revisions match, and replay gives the same state")
  func replay() throws {
    var random = SeededRandom(seed: UInt64.random(in: 0...UInt64.max))
    for _ in 0..<300 {
      let feed = ["list", "inbox", "inbox/high", "inbox/low", "home"].randomElement(using: &random) ?? ""
      let before = revision(feed)
      let guess = before - (Bool.random(using: &random) ? 0 : Int.random(in: 1...2, using: &random))
      let condition = #""if":{"feed":"\#(feed)","revision":\#(max(guess, 0))}"#
      let id = Int.random(in: 0..<4, using: &random)
      let answer =
        switch Int.random(in: 0..<3, using: &random) {
        case 0: ask("insert", #"{"feed":"list","elements":[\#(id)],\#(condition)}"#)
        case 1: ask("update", #"{"feed":"inbox","element":{"id":\#(id),"p":\#(id * 3)},\#(condition)}"#)
        default: ask("delete", #"{"feed":"inbox","id":\#(id),\#(condition)}"#)
        }
      expectEqual(answer?.errorCode, (max(guess, 0) == before ? nil : -32009), "seed \(random.seed)")
    }
    let again = EngineHarness(isDurable: true)
    for batch in harness.stored { try again.engine.replay(batch) }
    let reader = again.connect(uid: 1)
    for feed in ["list", "inbox", "home"] {
      for method in ["describe", "snapshot"] {
        let params = #"{"feed":"\#(feed)"}"#
        expectEqual(again.ask(reader, method, params), harness.ask(client, method, params), "seed \(random.seed)")
      }
    }
    expectEqual(again.engine.catalog.revision, harness.engine.catalog.revision)
  }

  @Test("a condition requires the right to read its feed")
  func access() throws {
    let harness = EngineHarness()
    try harness.configure(
      #"""
      {"feeds": [{"feed": "mine", "kind": "array"}, {"feed": "secret", "kind": "array"}],
       "access": [{"feeds": "mine", "allow": ["read", "write"]}]}
      """#)
    let client = harness.connect(uid: 2000)
    func code(_ condition: String) -> Int? {
      let params = #"{"feed":"mine","elements":[1],"if":\#(condition)}"#
      return Value(harness.ask(client, "insert", params).first ?? "")?.errorCode
    }
    expectEqual(code(#"{"feed":"secret","revision":9}"#), -32006)
    expectEqual(code(#"[{"feed":"mine","revision":9},{"feed":"secret","revision":9}]"#), -32006)
    expectEqual(code(#"{"feed":"mine","revision":99}"#), -32009)
  }
}
