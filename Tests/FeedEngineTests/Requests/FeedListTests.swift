import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// The feed `$feeds`.
struct FeedListTests {
  private let harness = EngineHarness()
  private let id: ConnectionID

  init() {
    id = harness.connect()
  }

  private func ask(_ method: String, _ params: String) -> Value? { harness.ask(id, method, params).last?.json }

  /// What `$feeds` holds, and that each definition is the one that `describe` returns.
  private func names() -> [String] {
    let rows = ask("snapshot", #"{"feed":"$feeds"}"#)?["result"]?["sections"]?.items.first?["elements"]?.items ?? []
    return rows.map { row in
      let name = row["feed"]?.string ?? ""
      let described = ask("describe", #"{"feed":"\#(name)"}"#)?["result"]
      expectEqual(row["kind"], described?["kind"])
      expectEqual(described?.text.hasPrefix(String(row["definition"]?.text.dropLast() ?? "none")), true)
      return name
    }
  }

  @Test func hasARowForEachDefinedFeedInTheOrderOfNames() {
    expectEqual(names(), [])
    for name in ["b", "a.b", "B", "a"] { _ = ask("define", #"{"feed":"\#(name)","kind":"collection"}"#) }
    expectEqual(names(), ["B", "a", "a.b", "b"])
    _ = ask("undefine", #"{"feed":"a"}"#)
    expectEqual(names(), ["B", "a.b", "b"])
    expectEqual(ask("feeds", "{}")?["result"]?["feeds"]?.items.count, 3)
    expectEqual(ask("get", #"{"feed":"$feeds","id":"b"}"#)?["result"]?["at"]?.text, "[[0,2]]")
    expectEqual(ask("get", #"{"feed":"$feeds","id":"c"}"#)?["result"]?["found"]?.bool, false)
    expectEqual(ask("describe", #"{"feed":"$feeds"}"#)?["result"]?["kind"]?.string, "feeds")
  }

  @Test func followsDefinitionsInTheirCommits() {
    let watcher = harness.connect()
    _ = harness.ask(watcher, "watch", #"{"feed":"$feeds"}"#)
    func delta() -> Value? { harness.take(watcher).last?.json?["params"] }
    _ = ask("define", #"{"feed":"a","kind":"array"}"#)
    expectEqual(delta()?["elements"]?.text, #"[{"feed":"a","kind":"array","definition":{"feed":"a","kind":"array"}}]"#)
    let defined = ask("define", #"{"feed":"p","kind":"segmented","children":[]}"#)
    expectEqual(delta()?["revision"], defined?["result"]?["revision"])
    _ = ask("insertChild", #"{"feed":"p","child":"a"}"#)
    expectEqual(delta()?["updated"]?.text, "[[0,1]]")
    _ = ask("activate", #"{"feed":"p","child":-1}"#)
    expectEqual(delta()?["elements"]?.items.first?["definition"]?["current"]?.int, -1)
    _ = ask("define", #"{"feed":"a","kind":"array","multiple":false,"replace":true}"#)
    expectEqual(delta()?["updated"]?.text, "[[0,0]]")
    // The same definition again, and changes of rows, are none of the list.
    _ = ask("define", #"{"feed":"a","kind":"array","multiple":false}"#)
    _ = ask("insert", #"{"feed":"a","elements":[1]}"#)
    expectEqual(delta(), nil)
    _ = ask(
      "transaction",
      #"{"ops":[{"method":"undefine","params":{"feed":"p"}},{"method":"define","params":{"feed":"p","kind":"single"}}]}"#
    )
    let replaced = delta()
    expectEqual(replaced?["updated"]?.text, "[[0,1]]")
    expectEqual(replaced?["deleted"]?.text, "[]")
    let refused = #"{"ops":[{"method":"define","params":{"feed":"x","kind":"single"}},{"method":"ping"}]}"#
    expect(ask("transaction", refused)?["error"] != nil)
    expectEqual(delta(), nil)
    expectEqual(names(), ["a", "p"])
  }

  @Test(arguments: [
    ("define", #"{"feed":"$feeds","kind":"array"}"#), ("undefine", #"{"feed":"$feeds"}"#),
    ("update", #"{"feed":"$feeds","element":{"id":1}}"#), ("delete", #"{"feed":"$feeds","id":"a"}"#),
    ("set", #"{"feed":"$feeds","elements":[]}"#), ("insert", #"{"feed":"$feeds","element":1}"#),
    ("put", #"{"feed":"$feeds","element":1}"#), ("patch", #"{"feed":"$feeds","id":"a","patch":{}}"#),
    ("activate", #"{"feed":"$feeds","child":0}"#), ("insertChild", #"{"feed":"$feeds","child":"a"}"#),
  ])
  func nobodyChangesIt(_ method: String, _ params: String) {
    _ = ask("define", #"{"feed":"a","kind":"array"}"#)
    let answer = ask(method, params)
    expectEqual(answer?.errorCode, -32006)
    expectEqual(answer?.errorData?["feed"]?.string, "$feeds")
    expectEqual(answer?["error"]?["message"]?.string?.contains("read-only"), true)
  }

  @Test func otherFeedsShowIt() {
    _ = ask("define", #"{"feed":"arrays","kind":"view","of":"$feeds","filter":"@.kind == 'array'"}"#)
    _ = ask("define", #"{"feed":"a","kind":"array"}"#)
    _ = ask("define", #"{"feed":"home","kind":"composed","children":["$feeds","arrays"]}"#)
    let sections = ask("describe", #"{"feed":"home"}"#)?["result"]?["sections"]
    expectEqual(sections?.text, #"[{"name":"$feeds","count":3},{"name":"arrays","count":1}]"#)
  }

  @Test func accessRulesMustNameIt() throws {
    try harness.configure(#"{"access":[{"allow":["read","define"]}]}"#)
    let other = harness.connect()
    func code(_ method: String, _ params: String) -> Int? { harness.ask(other, method, params).last?.json?.errorCode }
    expectEqual(code("watch", #"{"feed":"$feeds"}"#), -32006)
    expectEqual(code("define", #"{"feed":"v","kind":"view","of":"$feeds"}"#), -32006)
    // A feed that shows it may be neither watched, nor shown by another one, nor named in a condition.
    let root = harness.connect(uid: 0)
    _ = harness.ask(root, "define", #"{"feed":"names","kind":"view","of":"$feeds"}"#)
    _ = harness.ask(root, "define", #"{"feed":"home","kind":"composed","children":["names"]}"#)
    let requests = [
      ("watch", #"{"feed":"home"}"#), ("define", #"{"feed":"mine","kind":"composed","children":["home"]}"#),
      ("define", #"{"feed":"list","kind":"array","if":{"feed":"home","revision":99}}"#),
      (
        "transaction",
        #"{"ops":[{"method":"define","params":{"feed":"mine","kind":"slots","contents":{"A":"home"},"pattern":["A"]}}]}"#
      ),
    ]
    for (method, params) in requests { expectEqual(code(method, params), -32006, "\(method) \(params)") }
    try harness.configure(#"{"access":[{"allow":["read","define"]},{"feeds":"$*","allow":"read"}]}"#)
    expectEqual(requests.map { code($0, $1) }, [nil, nil, -32009, -32001])
    expectEqual(code("watch", #"{"feed":"$feeds"}"#), nil)
    expectEqual(code("define", #"{"feed":"v","kind":"view","of":"$feeds"}"#), nil)
  }
}
