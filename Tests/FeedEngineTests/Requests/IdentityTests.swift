import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Arrays whose elements have an identity. Their changes are compared with the vectors and the random trees.
@Suite("Arrays with identity")
struct IdentityTests {
  private let harness = EngineHarness()
  private let client: ConnectionID

  init() {
    client = harness.connect()
    expectEqual(ask("define", #"{"feed":"a","kind":"array","id":"$.id"}"#)?.errorCode, nil)
    expectEqual(ask("insert", #"{"feed":"a","elements":[{"id":1,"v":1},{"id":2,"v":2},{"id":"3"}]}"#)?.errorCode, nil)
  }

  private func ask(_ method: String, _ params: String) -> Value? {
    Value(harness.ask(client, method, params).last ?? "")
  }

  private func elements() -> String {
    ask("query", #"{"feed":"a","path":"$[*]"}"#)?["result"]?["nodes"]?.text ?? ""
  }

  @Test("a second element of an identity is refused by its name")
  func duplicates() {
    let before = elements()
    for (method, params) in [
      ("insert", #""elements":[{"id":9},{"id":1.0}]"#), ("replace", #""elements":[{"id":1.0}],"at":2"#),
      ("set", #""elements":[{"id":1.0},{"id":2},{"id":1.0}]"#),
    ] {
      let refused = ask(method, #"{"feed":"a",\#(params)}"#)
      expectEqual(refused?.errorCode, -32001, "\(method)")
      expectEqual(refused?.errorData?["feed"]?.string, "a")
      expectEqual(refused?.errorData?["id"]?.text, "1.0")
    }
    expectEqual(elements(), before)
  }

  /// Comparing each two of these elements would take minutes.
  @Test("a long list of one identity is refused")
  func manyDuplicates() {
    let elements = Array(repeating: #"{"id":5}"#, count: 20_000).joined(separator: ",")
    let refused = ask("set", #"{"feed":"a","elements":[\#(elements)]}"#)
    expectEqual(refused?.errorCode, -32001)
    expectEqual(refused?.errorData?["index"]?.int, 1)
    expectEqual(refused?.errorData?["id"]?.text, "5")
  }

  @Test("get finds an element by its identity")
  func getting() {
    let found = ask("get", #"{"feed":"a","id":2.0}"#)?["result"]
    expectEqual(found?["element"]?.text, #"{"id":2,"v":2}"#)
    expectEqual(found?["at"]?.text, "[[0,1]]")
    expectEqual(found?["found"]?.bool, true)
    expectEqual(ask("get", #"{"feed":"a","id":"2"}"#)?["result"]?["found"]?.bool, false)
    expectEqual(ask("get", #"{"feed":"a","id":null}"#)?.errorCode, -32003)
  }

  /// One that is too long for all elements is not decoded, but its text may be much longer than that of the element that it finds.
  @Test("get finds a long identity however it is written", arguments: ["array", "collection"])
  func longIdentities(kind: String) {
    let escapes = String(repeating: #"\u0078"#, count: 5000)
    let plain = String(repeating: "x", count: 5000)
    expectEqual(ask("define", #"{"feed":"l","kind":"\#(kind)","id":"$.id"}"#)?.errorCode, nil)
    let elements = #"[{"id":"\#(plain)"},{"id":1e5000}]"#
    expectEqual(ask(kind == "array" ? "insert" : "update", #"{"feed":"l","elements":\#(elements)}"#)?.errorCode, nil)
    let zeros = String(repeating: "0", count: 5000)
    for (id, isFound) in [
      (#""\#(escapes)""#, true), (#""\#(escapes)x""#, false), (#""\#(escapes + escapes + escapes)""#, false),
      (#""\#(plain)""#, true), (#""\#(plain + plain)""#, false),
      ("1\(zeros)", true), ("1\(zeros)0", false), (String(repeating: "9", count: 20_000), false),
    ] {
      let name = "\(id.prefix(8)), \(id.count) bytes"
      expectEqual(ask("get", #"{"feed":"l","id":\#(id)}"#)?["result"]?["found"]?.bool, isFound, "\(name)")
      expectEqual(ask("delete", #"{"feed":"l","id":\#(id),"result":"counts"}"#)?.errorCode, nil, "\(name)")
      expectEqual(ask("set", #"{"feed":"l","elements":\#(elements)}"#)?.errorCode, nil, "\(name)")
    }
  }

  @Test("an array without identity takes no identities")
  func plainArrays() {
    expectEqual(ask("define", #"{"feed":"p","kind":"array"}"#)?.errorCode, nil)
    expectEqual(ask("insert", #"{"feed":"p","elements":[{"id":1},{"id":1}]}"#)?.errorCode, nil)
    for (method, params) in [("update", #""element":{"id":1}"#), ("delete", #""id":1"#), ("get", #""id":1"#)] {
      expectEqual(ask(method, #"{"feed":"p",\#(params)}"#)?.errorCode, -32002, "\(method)")
    }
    expectEqual(ask("move", #"{"feed":"p","id":1,"to":0}"#)?.errorCode, -32602)
    expectEqual(ask("define", #"{"feed":"s","kind":"single","id":"$.id"}"#)?.errorCode, -32602)
  }

  @Test("adding an identity is refused while it does not hold, and removing it forgets it")
  func redefinition() {
    expectEqual(ask("define", #"{"feed":"a","kind":"array","replace":true}"#)?.errorCode, nil)
    expectEqual(ask("insert", #"{"feed":"a","elements":[{"id":2},{"v":4}]}"#)?.errorCode, nil)
    let duplicate = ask("define", #"{"feed":"a","kind":"array","id":"$.id","replace":true}"#)
    expectEqual(duplicate?.errorCode, -32001)
    expectEqual(duplicate?.errorData?["id"]?.text, "2")
    expectEqual(duplicate?.errorData?["index"]?.int, 3)
    expectEqual(ask("remove", #"{"feed":"a","at":[3]}"#)?.errorCode, nil)
    let absent = ask("define", #"{"feed":"a","kind":"array","id":"$.id","replace":true}"#)
    expectEqual(absent?.errorCode, -32003)
    expectEqual(absent?.errorData?["index"]?.int, 3)
    expectEqual(ask("delete", #"{"feed":"a","id":2}"#)?.errorCode, -32002)
    expectEqual(ask("remove", #"{"feed":"a","at":[3]}"#)?.errorCode, nil)
    let revision = ask("describe", #"{"feed":"a"}"#)?["result"]?["revision"]?.int
    expectEqual(ask("define", #"{"feed":"a","kind":"array","id":"$.id","replace":true}"#)?.errorCode, nil)
    expectEqual(ask("describe", #"{"feed":"a"}"#)?["result"]?["revision"]?.int, revision)
    expectEqual(ask("describe", #"{"feed":"a"}"#)?["result"]?["id"]?.string, "$.id")
    expectEqual(ask("insert", #"{"feed":"a","element":{"id":2}}"#)?.errorCode, -32001)
    // Another path: the third element has nothing there.
    expectEqual(ask("define", #"{"feed":"a","kind":"array","id":"$.v","replace":true}"#)?.errorCode, -32003)
    expectEqual(ask("insert", #"{"feed":"a","element":{"id":2}}"#)?.errorCode, -32001)
    expectEqual(ask("delete", #"{"feed":"a","id":"3"}"#)?["result"]?["deleted"]?.text, "[[0,2]]")
    expectEqual(ask("define", #"{"feed":"a","kind":"array","id":"$.v","replace":true}"#)?.errorCode, nil)
    expectEqual(ask("update", #"{"feed":"a","element":{"id":7,"v":2}}"#)?["result"]?["updated"]?.text, "[[0,1]]")
  }

  @Test("a transaction that fails undoes a change of the identity")
  func undone() {
    let failed = ask(
      "transaction",
      #"{"ops":[{"method":"delete","params":{"feed":"a","id":1}},{"method":"define","params":{"feed":"a","kind":"array","id":"$.v","type":"$.t","retain":{"count":1},"replace":true}},{"method":"update","params":{"feed":"a","element":{"v":7}}},{"method":"move","params":{"feed":"a","id":8,"to":0}}]}"#
    )
    expectEqual(failed?.errorCode, -32003)
    expectEqual(elements(), #"[{"id":1,"v":1},{"id":2,"v":2},{"id":"3"}]"#)
    expectEqual(ask("insert", #"{"feed":"a","element":{"id":1}}"#)?.errorCode, -32001)
    expectEqual(ask("update", #"{"feed":"a","element":{"id":"3","v":2}}"#)?["result"]?["updated"]?.text, "[[0,2]]")
    expectEqual(ask("delete", #"{"feed":"a","ids":[1,2,"3"]}"#)?["result"]?["deleted"]?.text, "[[0,0],[0,1],[0,2]]")
  }

  @Test("the selection follows the identity")
  func selection() {
    expectEqual(ask("select", #"{"feed":"a","at":[[0,0],[0,2]]}"#)?.errorCode, nil)
    let set = ask("set", #"{"feed":"a","elements":[{"id":"3","v":9},{"id":5},{"id":2,"v":2},{"id":1,"v":8}]}"#)?[
      "result"]
    expect(set?["moves"] != nil)
    expectEqual(ask("selected", #"{"feed":"a"}"#)?["result"]?["selected"]?.text, "[[0,0],[0,3]]")
    expectEqual(ask("replace", #"{"feed":"a","elements":[{"id":6}],"at":0}"#)?.errorCode, nil)
    expectEqual(ask("selected", #"{"feed":"a"}"#)?["result"]?["selected"]?.text, "[[0,3]]")
    expectEqual(ask("move", #"{"feed":"a","id":1,"to":1}"#)?.errorCode, nil)
    expectEqual(ask("selected", #"{"feed":"a"}"#)?["result"]?["selected"]?.text, "[[0,1]]")
  }

  @Test("what is not editable or movable stays")
  func behaviours() {
    let frozen = #"{"feed":"a","kind":"array","id":"$.id","editable":false,"movable":false,"replace":true}"#
    expectEqual(ask("define", frozen)?.errorCode, nil)
    for (method, params) in [
      ("update", #""element":{"id":1}"#), ("delete", #""id":1"#), ("patch", #""id":1,"patch":{}"#),
      ("move", #""id":1,"to":0"#),
    ] { expectEqual(ask(method, #"{"feed":"a",\#(params)}"#)?.errorCode, -32006, "\(method)") }
    expectEqual(ask("set", #"{"feed":"a","elements":[]}"#)?["result"]?["deleted"]?.items.count, 3)
  }

  @Test("a row removed and inserted again in a transaction is the same row")
  func returning() {
    let watcher = harness.connect()
    _ = harness.ask(watcher, "watch", #"{"feed":"a","initial":false}"#)
    let done = ask(
      "transaction",
      #"{"ops":[{"method":"delete","params":{"feed":"a","id":1}},{"method":"update","params":{"feed":"a","element":{"id":1,"v":5}}}]}"#
    )
    expectEqual(done?.errorCode, nil)
    let delta = Value(harness.take(watcher).last ?? "")?["params"]
    expectEqual(delta?["deleted"]?.text, "[[0,0]]")
    expectEqual(delta?["added"]?.text, "[[0,2]]")
    expectEqual(delta?["moves"]?.text, "[[0,0]]")
  }

  @Test("a set moves as few rows as possible, also if others are evicted")
  func fewestMovesBesidesEvictions() {
    let six = (1...6).map { "{\"id\":\($0)}" }.joined(separator: ",")
    expectEqual(ask("define", #"{"feed":"k","kind":"array","id":"$.id","retain":{"count":6}}"#)?.errorCode, nil)
    expectEqual(ask("insert", #"{"feed":"k","elements":[\#(six)]}"#)?.errorCode, nil)
    // The first three are evicted. With them four rows would keep their order, without them 5 and 6 do.
    let wanted = [5, 6, 1, 2, 3, 4, 7, 8, 9].map { "{\"id\":\($0)}" }.joined(separator: ",")
    let change = ask("set", #"{"feed":"k","elements":[\#(wanted)]}"#)?["result"]
    expectEqual(change?["deleted"]?.text, "[[0,0],[0,1],[0,2],[0,3]]")
    expectEqual(change?["added"]?.text, "[[0,2],[0,3],[0,4],[0,5]]")
    expectEqual(change?["updated"]?.text, "[]")
    expectEqual(change?["moves"]?.text, "[[3,0]]")
  }
}
