import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import FeedModel
@testable import ReferenceModel

/// A slots feed with another definition keeps the rows that both definitions show.
struct SlotsRedefinitionTests {
  private let harness = EngineHarness()
  private let id: ConnectionID

  init() {
    id = harness.connect()
    for definition in [
      #"{"feed":"a","kind":"array","type":"$.k"}"#, #"{"feed":"b","kind":"array"}"#, #"{"feed":"c","kind":"array"}"#,
    ] { _ = harness.ask(id, "define", definition) }
    _ = harness.ask(id, "insert", #"{"feed":"a","elements":[{"n":1,"k":"A"},{"n":2,"k":"x"},{"n":3}]}"#)
    _ = harness.ask(id, "insert", #"{"feed":"b","elements":[10,20]}"#)
    _ = harness.ask(id, "insert", #"{"feed":"c","elements":[100]}"#)
    _ = define(#""contents":{"A":"a","B":"b"},"pattern":["A","B"],"repeatables":["A","B"]"#)
    // 1 10 2 20 3
    _ = harness.ask(id, "select", #"{"feed":"s","at":[[0,1],[0,4]]}"#)
    _ = harness.ask(id, "watch", #"{"feed":"s"}"#)
    _ = harness.take(id)
  }

  private func ask(_ method: String, _ params: String) -> [Value] { harness.ask(id, method, params).compactMap(\.json) }

  private func define(_ members: String) -> [Value] {
    ask("define", #"{"feed":"s","kind":"slots","replace":true,\#(members)}"#)
  }

  /// The lists of the delta among messages: deleted, added, updated and moves; nil if there is none.
  private func delta(_ messages: [Value]) -> String? {
    guard let delta = messages.first(where: { $0["method"]?.string == "delta" })?["params"] else { return nil }
    return ["deleted", "added", "updated", "moves"].map { delta[$0]?.text ?? "[]" }.joined(separator: " ")
  }

  private var rows: [String] {
    ask("snapshot", #"{"feed":"s"}"#).first?["result"]?["sections"]?.items.first?["elements"]?.items.map(\.text) ?? []
  }

  private var selected: String? { ask("selected", #"{"feed":"s"}"#).first?["result"]?["selected"]?.text }
  private var revision: Int? { ask("describe", #"{"feed":"s"}"#).first?["result"]?["revision"]?.int }

  /// Rows of contents that are not shown do not count, for the request and for views above.
  @Test func definitionCountsTheRowsThatAreShown() {
    let harness = EngineHarness { ($0.maxRequestRows, $0.maxTotalViewRows) = (40, 20) }
    let id = harness.connect()
    func ask(_ method: String, _ params: String) -> Value? { harness.ask(id, method, params).first?.json }
    for feed in ["a", "b"] { _ = ask("define", #"{"feed":"\#(feed)","kind":"array"}"#) }
    _ = ask("insert", #"{"feed":"a","elements":[1,2]}"#)
    for _ in 0..<3 {
      _ = ask("insert", #"{"feed":"b","elements":[\#((0..<20).map(String.init).joined(separator: ","))]}"#)
    }
    func define(_ members: String) -> Value? {
      ask("define", #"{"feed":"s","kind":"slots","contents":{"A":"a","B":"b"},"replace":true,\#(members)}"#)
    }
    _ = define(#""pattern":["A"]"#)
    _ = ask("define", #"{"feed":"v","kind":"view","of":"s","sort":[{"by":"$.n"}]}"#)
    expectEqual(define(#""pattern":["A"],"header":["B"]"#)?["error"], nil)
    expectEqual(ask("describe", #"{"feed":"v"}"#)?["result"]?["count"]?.int, 3)
    for (pattern, limit) in [("B", "maxRequestRows"), ("A", nil)] as [(String, String?)] {
      let answer = define(#""pattern":["\#(pattern)"],"repeatables":["A"]"#)
      expectEqual(answer?.errorData?["limit"]?.string, limit, "\(pattern)")
    }
    expectEqual(ask("describe", #"{"feed":"v"}"#)?["result"]?["count"]?.int, 2)
  }

  @Test func definitionThatShowsTheSameRowsIsNoChange() {
    let before = (rows, revision, selected)
    expectEqual(
      delta(define(#""contents":{"B":"b","A":"a"},"pattern":["A","B"],"repeatables":["B","A"],"fixed":{"99":"C"}"#)),
      nil)
    expect(rows == before.0 && revision == before.1 && selected == before.2)
    expectEqual(selected, "[[0,1],[0,4]]")
  }

  @Test func rowsThatStayMoveAndStaySelected() {
    let changed = define(#""contents":{"A":"a","B":"b"},"pattern":["B","A"],"repeatables":["A","B"]"#)
    // 10 1 20 2 3
    expectEqual(delta(changed), "[[0,1],[0,3]] [[0,0],[0,2]] [] [[0,0],[1,1]]")
    expectEqual(rows.map { $0.prefix(6) }, ["10", "{\"n\":1", "20", "{\"n\":2", "{\"n\":3"])
    expectEqual(selected, "[[0,0],[0,4]]")
  }

  @Test func rowsOfAnotherFeedAreOthers() {
    let changed = define(#""contents":{"A":"a","B":"c"},"pattern":["A","B"],"repeatables":["A","B"]"#)
    // 1 100 2 3
    expectEqual(delta(changed), "[[0,1],[0,3]] [[0,1]] [] []")
    expectEqual(selected, "[[0,3]]")
    // The same feed under another type.
    let renamed = define(#""contents":{"X":"a","B":"c"},"pattern":["X","B"],"repeatables":["X","B"]"#)
    expectEqual(delta(renamed), "[[0,0],[0,2],[0,3]] [[0,0],[0,2],[0,3]] [] []")
    expectEqual(selected, "[]")
  }

  @Test func rowsWithAnotherTypeAreUpdated() {
    let members = #""contents":{"A":"a","B":"b"},"pattern":["A","B"],"repeatables":["A","B"]"#
    let own = define(members + #","types":"element""#)
    // The first row has the type A either way.
    expectEqual(delta(own), "[] [] [[0,1],[0,2],[0,3],[0,4]] []")
    expectEqual(delta(define(members)), "[] [] [[0,1],[0,2],[0,3],[0,4]] []")
    expectEqual(selected, "[[0,1],[0,4]]")
  }

  @Test func transactionListsTheNetChange() {
    func define(_ members: String) -> String {
      #"{"method":"define","params":{"feed":"s","kind":"slots","replace":true,\#(members)}}"#
    }
    let operations = [
      #"{"method":"insert","params":{"feed":"b","element":5,"at":0}}"#,
      define(#""contents":{"A":"a","C":"c"},"pattern":["A","C"],"repeatables":["A","C"]"#),
      #"{"method":"remove","params":{"feed":"b","at":1}}"#,
      define(#""contents":{"C":"c","B":"b","A":"a"},"pattern":["A","B"],"repeatables":["A","B"]"#),
    ]
    let answers = ask("transaction", #"{"ops":[\#(operations.joined(separator: ","))]}"#)
    // Before: 1 10 2 20 3; after: 1 5 2 20 3.
    expectEqual(rows.map { $0.prefix(6) }, ["{\"n\":1", "5", "{\"n\":2", "20", "{\"n\":3"])
    expectEqual(delta(answers), "[[0,1]] [[0,1]] [] []")
    expectEqual(selected, "[[0,4]]")
    // A refused transaction leaves the former plan.
    let before = (rows, revision, selected)
    let failing = #"{"ops":[\#(operations[1]),{"method":"undefine","params":{"feed":"nobody"}}]}"#
    expectEqual(ask("transaction", failing).first?.errorCode, -32000)
    expect(rows == before.0 && revision == before.1 && selected == before.2)
  }

  /// The members of an object have no order.
  @Test func contentsInAnotherOrderAreTheSame() {
    let before = harness.engine.catalog.revision
    func members(_ feed: String) -> String {
      #""contents":{"B":"\#(feed)","A":"a"},"pattern":["A","B"],"repeatables":["A","B"]"#
    }
    func defineAgain(_ feed: String) -> Value? {
      ask("define", #"{"feed":"s","kind":"slots",\#(members(feed))}"#).first
    }
    expectEqual(defineAgain("b")?["result"]?.text, #"{"revision":\#(before)}"#)
    expectEqual(define(members("b")).first?["result"]?.text, #"{"revision":\#(before)}"#)
    expectEqual(defineAgain("c")?.errorCode, -32001)
    harness.engine.catalog.commit.rules = 4
    expectEqual(defineAgain("b")?.errorCode, -32001, "by older rules")
  }

  /// Types that come and go use the numbers of those that went, so that a feed that is redefined often stays small.
  @Test func numbersOfTypesAreUsedAgain() throws {
    for round in 0..<50 {
      let contents = (0...(round % 3)).map { #""T\#(round)-\#($0)":"b""# }.joined(separator: ",")
      _ = define(#""contents":{"A":"a",\#(contents)},"pattern":["A","T\#(round)-0"],"repeatables":["A"]"#)
      expectEqual(rows.count, 5)
    }
    let kind = try require(harness.engine.catalog.feed(named: "s").kind as? SlotsKind)
    expect(kind.typeCount <= 8)
  }
}
