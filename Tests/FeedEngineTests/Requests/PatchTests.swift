import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

@Suite("Patches, deletion by filter and positions of query results")
struct PatchTests {
  private let harness = EngineHarness()
  private let client: ConnectionID

  init() {
    client = harness.connect(uid: 1)
    for (method, params) in [
      (
        "define",
        #"{"feed":"c","kind":"collection","bins":[{"name":"high","filter":"@.p > 5","sort":[{"by":"$.p"}]},{"name":"low","filter":"@.p <= 5"}]}"#
      ),
      ("define", #"{"feed":"a","kind":"array"}"#), ("define", #"{"feed":"s","kind":"single"}"#),
      ("define", #"{"feed":"fixed","kind":"array","editable":false}"#),
      ("define", #"{"feed":"home","kind":"composed","children":["a","c"]}"#),
      ("update", #"{"feed":"c","elements":[{"id":1,"p":9.0,"t":"x"},{"id":2,"p":7},{"id":"3","p":1e0}]}"#),
      ("insert", #"{"feed":"a","elements":[{"n":1},[1],null]}"#), ("set", #"{"feed":"fixed","elements":[{"n":1}]}"#),
    ] { expectEqual(ask(method, params)?.errorCode, nil) }
  }

  private func ask(_ method: String, _ params: String) -> Value? {
    Value(harness.ask(client, method, params).first ?? "")
  }

  private func elements(_ feed: String) -> String {
    ask("query", #"{"feed":"\#(feed)","path":"$[*]"}"#)?["result"]?["nodes"]?.text ?? ""
  }

  @Test("bins filter and sort a patched element like an updated one")
  func collections() {
    let result = ask("patch", #"{"feed":"c","id":1.0,"patch":{"p":2,"t":null,"u":{"v":null}}}"#)?["result"]
    expectEqual(result?["deleted"]?.text, "[[0,1]]")
    expectEqual(result?["added"]?.text, "[[1,1]]")
    expectEqual(result?["moves"]?.text, "[[0,0]]")
    expectEqual(elements("c"), #"[{"id":2,"p":7},{"id":"3","p":1e0},{"id":1,"p":2,"u":{}}]"#)
    let several =
      #"{"feed":"c","patches":[{"id":2,"patch":{"a":1}},{"id":"3","patch":{"p":8}},{"id":2,"patch":{"b":2}}]}"#
    expectEqual(ask("patch", several)?.errorCode, nil)
    expectEqual(elements("c"), #"[{"id":2,"p":7,"a":1,"b":2},{"id":"3","p":8},{"id":1,"p":2,"u":{}}]"#)
  }

  @Test("a patch without effect makes no commit")
  func nothing() {
    let before = harness.engine.catalog.revision
    expectEqual(ask("patch", #"{"feed":"c","id":1,"patch":{"p":9.0,"z":null}}"#)?["result"]?["updated"]?.text, "[]")
    expectEqual(ask("patch", #"{"feed":"c","patches":[]}"#)?.errorCode, nil)
    expectEqual(harness.engine.catalog.revision, before)
  }

  @Test("an unknown identity is refused by name and nothing is patched")
  func unknownIdentity() {
    let before = elements("c")
    let refused = ask("patch", #"{"feed":"c","patches":[{"id":1,"patch":{"p":1}},{"id":"nine","patch":{"p":1}}]}"#)
    expectEqual(refused?.errorCode, -32010)
    expectEqual(refused?.errorData?["id"]?.text, "\"nine\"")
    expectEqual(refused?.errorData?["index"]?.int, 1)
    expectEqual(refused?.errorData?["feed"]?.string, "c")
    expectEqual(elements("c"), before)
  }

  @Test("rows of arrays and the row of a single are patched in place")
  func lists() {
    let result = ask(
      "patch",
      #"{"feed":"a","patches":[{"at":2,"patch":{"m":1}},{"at":0,"patch":{"n":null}},{"at":2,"patch":{"k":1}}]}"#)
    expectEqual(result?["result"]?["updated"]?.text, "[[0,0],[0,2]]")
    expectEqual(ask("patch", #"{"feed":"a","at":1,"patch":7}"#)?.errorCode, nil)
    expectEqual(elements("a"), #"[{},7,{"m":1,"k":1}]"#)
    _ = ask("put", #"{"feed":"s","element":{"text":"noon","n":1.50}}"#)
    expectEqual(ask("patch", #"{"feed":"s","patch":{"text":"one"}}"#)?["result"]?["updated"]?.text, "[[0,0]]")
    expectEqual(ask("get", #"{"feed":"s","at":[0,0]}"#)?["result"]?["element"]?.text, #"{"text":"one","n":1.50}"#)
    expectEqual(ask("patch", #"{"feed":"s","patch":null}"#)?["result"]?["deleted"]?.text, "[[0,0]]")
  }

  @Test(
    "a patch that cannot be applied changes nothing",
    arguments: [
      (#"{"feed":"home","patch":{}}"#, -32002), (#"{"feed":"c/high","id":1,"patch":{}}"#, -32002),
      (#"{"feed":"c","patch":{}}"#, -32602), (#"{"feed":"c","id":1}"#, -32602),
      (#"{"feed":"c","id":1,"patch":{},"patches":[]}"#, -32602), (#"{"feed":"c","id":[],"patch":{}}"#, -32003),
      (#"{"feed":"c","id":1,"patch":{"id":2}}"#, -32602), (#"{"feed":"c","id":1,"patch":{"id":"1"}}"#, -32602),
      (#"{"feed":"c","id":1,"patch":{"id":null}}"#, -32003), (#"{"feed":"c","id":1,"patch":7}"#, -32003),
      (#"{"feed":"c","patches":[{"id":1}]}"#, -32602), (#"{"feed":"c","patches":[{"patch":{}}]}"#, -32602),
      (#"{"feed":"a","at":3,"patch":{}}"#, -32005), (#"{"feed":"a","at":-1,"patch":{}}"#, -32005),
      (#"{"feed":"a","at":"0","patch":{}}"#, -32602), (#"{"feed":"s","patch":{}}"#, -32005),
      (#"{"feed":"s","id":1,"patch":{}}"#, -32602), (#"{"feed":"fixed","at":0,"patch":{"n":2}}"#, -32006),
      (#"{"feed":"none","id":1,"patch":{}}"#, -32000), (#"{"feed":"c","id":1,"at":0,"patch":{"p":1}}"#, -32602),
      (#"{"feed":"c","at":0,"patches":[{"id":1,"patch":{"p":1}}]}"#, -32602),
      (#"{"feed":"c","patches":[{"id":1,"at":0,"patch":{"p":1}}]}"#, -32602),
      (#"{"feed":"a","id":1,"at":0,"patch":{"p":1}}"#, -32602),
      (#"{"feed":"a","patches":[{"at":0,"patch":{"p":1}},{"at":1,"id":1,"patch":{"p":1}}]}"#, -32602),
    ] as [(String, Int)])
  func refused(params: String, code: Int) {
    let before = (harness.engine.catalog.revision, elements("home"))
    expectEqual(ask("patch", params)?.errorCode, code)
    expect((harness.engine.catalog.revision, elements("home")) == before)
  }

  @Test("the member that names no element of the feed is refused by its name")
  func wrongKeys() {
    for (method, params, member) in [
      ("patch", #"{"feed":"c","at":0,"patch":{"p":1}}"#, "at"),
      ("patch", #"{"feed":"a","id":1,"patch":{"p":1}}"#, "id"),
      ("patch", #"{"feed":"a","patches":[{"id":1,"patch":{"p":1}}]}"#, "patches[0].id"),
      ("patch", #"{"feed":"c","patch":{"p":1}}"#, "id"), ("patch", #"{"feed":"a","patch":{"p":1}}"#, "at"),
      ("move", #"{"feed":"a","id":1,"to":0}"#, "id"), ("move", #"{"feed":"a","to":0}"#, "from"),
    ] {
      let refused = ask(method, params)
      expectEqual(refused?.errorCode, -32602, "\(params)")
      expectEqual(refused?.errorData?["member"]?.string, member, "\(params)")
    }
  }

  @Test("a patch may write the identity as another text of the same value")
  func sameIdentity() {
    expectEqual(ask("patch", #"{"feed":"c","id":1,"patch":{"id":1.0}}"#)?.errorCode, nil)
    expectEqual(ask("get", #"{"feed":"c","id":1}"#)?["result"]?["element"]?.text, #"{"id":1.0,"p":9.0,"t":"x"}"#)
  }

  @Test("delete with where removes all matching elements from all bins in one commit")
  func deletion() {
    let before = harness.engine.catalog.revision
    let result = ask("delete", #"{"feed":"c","where":"@.p < 8 && @.id != 9"}"#)?["result"]
    expectEqual(result?["deleted"]?.text, "[[0,0],[1,0]]")
    expectEqual(harness.engine.catalog.revision, before + 1)
    expectEqual(ask("delete", #"{"feed":"c","where":"@.p < 8"}"#)?["result"]?["deleted"]?.text, "[]")
    expectEqual(elements("c"), #"[{"id":1,"p":9.0,"t":"x"}]"#)
    let malformed = ask("delete", #"{"feed":"c","where":"@.p <"}"#)
    expectEqual(malformed?.errorCode, -32004)
    expectEqual(malformed?.errorData?["member"]?.string, "where")
    expectEqual(ask("delete", #"{"feed":"c","where":"@.p","id":1,"ids":[1]}"#)?.errorCode, -32602)
    expectEqual(ask("delete", #"{"feed":"c","where":7}"#)?.errorCode, -32602)
    expectEqual(ask("delete", #"{"feed":"a","where":"@.p"}"#)?.errorCode, -32002)
  }

  @Test("a filter that exceeds the step limit deletes nothing")
  func steps() {
    _ = ask(
      "update", #"{"feed":"c","element":{"id":4,"p":1,"l":[\#((0..<2000).map { "\($0)" }.joined(separator: ","))]}}"#)
    let refused = ask("delete", #"{"feed":"c","where":"@.id == 1 || count(@..*[?count($..*) > 0]) > 0"}"#)
    expectEqual(refused?.errorCode, -32007)
    expectEqual(refused?.errorData?["limit"]?.string, "maxQuerySteps")
    expectEqual(ask("describe", #"{"feed":"c"}"#)?["result"]?["count"]?.int, 4)
  }

  @Test(
    "places tells the section and row of each node",
    arguments: [
      ("home", "$[?@.p > 5].p", "[7,9.0]", "[[1,0],[1,1]]"), ("home", "$[0,1][*]", "[1,1]", "[[0,0],[0,1]]"),
      ("home", "$[::-2].id", #"["3",2]"#, "[[2,0],[1,0]]"), ("home", "$[?@.nothing]", "[]", "[]"),
      ("home", "$..n", "[1]", "[[0,0]]"), ("c", "$..id", #"[2,1,"3"]"#, "[[0,0],[0,1],[1,0]]"),
      ("a", "$", #"[[{"n":1},[1],null]]"#, "[null]"), ("s", "$..*", "[]", "[]"),
    ] as [(String, String, String, String)])
  func places(feed: String, path: String, nodes: String, places: String) {
    let result = ask("query", #"{"feed":"\#(feed)","path":"\#(path)","places":true}"#)?["result"]
    expectEqual(result?["nodes"]?.text, nodes)
    expectEqual(result?["places"]?.text, places)
    expectEqual(ask("query", #"{"feed":"\#(feed)","path":"\#(path)"}"#)?["result"]?["places"], nil)
  }

  @Test("all nodes of a single are at row [0,0]")
  func placesOfASingle() {
    _ = ask("put", #"{"feed":"s","element":{"a":[1,2]}}"#)
    let result = ask("query", #"{"feed":"s","path":"$.a[*]","places":true}"#)?["result"]
    expectEqual(result?["places"]?.text, "[[0,0],[0,0]]")
  }
}
