import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Requests that read the same long elements many times, although they are short themselves (Protocol/limits.md, "How work is counted").
@Suite("Elements that one request reads again") struct RepeatedReadingTests {
  /// Four elements of about 4000 bytes, to read which takes a little more than 1000 steps.
  private static let elements = (0..<4).map {
    #"{"id":\#($0),"t":"x","text":"\#(String(repeating: "a", count: 4000))"}"#
  }
  .joined(separator: ",")

  private static let limits: Limits = {
    var limits = Limits()
    limits.maxRequestSteps = 2500
    return limits
  }()

  private let harness = EngineHarness(limits: RepeatedReadingTests.limits, isDurable: true)
  private let client: ConnectionID

  init() {
    client = harness.connect(uid: 1)
    for (feed, kind) in [("c", "collection"), ("a", #"array","id":"$.id"#)] {
      expectEqual(refusal("define", #"{"feed":"\#(feed)","kind":"\#(kind)"}"#), nil)
      expectEqual(refusal("update", #"{"feed":"\#(feed)","elements":[\#(Self.elements)]}"#), nil)
    }
  }

  /// The limit that refused a request, and the operation; nil if it was executed.
  private func refusal(_ method: String, _ params: String) -> String? {
    let answer = harness.ask(client, method, params).first?.json
    if answer?["result"] != nil { return nil }
    let (limit, op) = (answer?.errorData?["limit"]?.string, answer?.errorData?["op"]?.int)
    return "\(limit ?? "\(answer?.errorCode ?? 0)")\(op.map { " \($0)" } ?? "")"
  }

  private var state: [Value?] {
    ["c", "a", "$feeds"].map { harness.ask(client, "snapshot", #"{"feed":"\#($0)"}"#).first?.json?["result"] }
  }

  @Test("each element that a condition judges counts, as often as the request names it")
  func conditions() {
    let before = state
    func ids(_ count: Int) -> String { Array(repeating: "1", count: count).joined(separator: ",") }
    let patches = Array(repeating: #"{"at":1,"patch":{}}"#, count: 20).joined(separator: ",")
    expectEqual(refusal("delete", #"{"feed":"c","ids":[\#(ids(20))],"where":"@.id"}"#), "maxRequestSteps")
    expectEqual(refusal("delete", #"{"feed":"a","ids":[\#(ids(20))],"where":"@.id"}"#), "maxRequestSteps")
    expectEqual(refusal("patch", #"{"feed":"a","patches":[\#(patches)],"where":"@.id"}"#), "maxRequestSteps")
    let new = Array(repeating: #"{"id":1}"#, count: 20).joined(separator: ",")
    expectEqual(refusal("update", #"{"feed":"c","elements":[\#(new)],"where":"@.id"}"#), "maxRequestSteps")
    let move = #"{"method":"move","params":{"feed":"a","id":1,"to":1,"where":"@.id"}}"#
    let moves = Array(repeating: move, count: 20).joined(separator: ",")
    expectEqual(refusal("transaction", #"{"ops":[\#(moves)]}"#)?.hasPrefix("maxRequestSteps "), true)
    expectEqual(state, before)
    expectEqual(refusal("delete", #"{"feed":"c","ids":[\#(ids(5))],"where":"@.id"}"#), nil)
  }

  /// Operations of which each reads all elements.
  static let readings: [(name: String, ops: @Sendable (Int) -> [String])] = [
    (
      "bins",
      {
        let sort = #"[{"name":"all","sort":[{"by":"$.id","order":"\#($0 % 2 == 0 ? "ascending" : "descending")"}]}]"#
        return [#"{"method":"define","params":{"feed":"c","kind":"collection","replace":true,"bins":\#(sort)}}"#]
      }
    ),
    (
      "types",
      {
        let type = #""type":"$.\#($0 % 2 == 0 ? "t" : "u")""#
        return [#"{"method":"define","params":{"feed":"a","kind":"array","id":"$.id","replace":true,\#(type)}}"#]
      }
    ),
    ("filters", { _ in [#"{"method":"delete","params":{"feed":"c","where":"@.none"}}"#] }),
    (
      "views",
      { _ in
        [
          #"{"method":"define","params":{"feed":"v","kind":"view","of":"a","sort":[{"by":"$.id"}]}}"#,
          #"{"method":"undefine","params":{"feed":"v"}}"#,
        ]
      }
    ),
  ]

  @Test("each operation after the first that reads all elements counts", arguments: readings.indices)
  func operations(_ index: Int) throws {
    let (name, ops) = Self.readings[index]
    let before = state
    func ask(_ count: Int) -> String? {
      refusal("transaction", #"{"ops":[\#((0..<count).flatMap(ops).joined(separator: ","))]}"#)
    }
    expectEqual(ask(9), "maxRequestSteps \(3 * ops(0).count)", "\(name)")
    expectEqual(state, before)
    expectEqual(ask(3), nil, "\(name)")
    // Alone, each of them is possible, however long the elements are.
    for count in 0..<5 {
      let op = try require(Value(ops(count)[0]))
      expectEqual(refusal(op["method"]?.string ?? "", op["params"]?.text ?? ""), nil, "\(name)")
      if name == "views" { expectEqual(refusal("undefine", #"{"feed":"v"}"#), nil) }
    }
  }

  @Test("requests of older rules are replayed without the count")
  func olderRules() throws {
    let delete = #"{"method":"delete","params":{"feed":"c","where":"@.id == 1"}}"#
    let ops = Array(repeating: delete, count: 9).joined(separator: ",")
    let daemon = EngineHarness(isDurable: true)
    let client = daemon.connect(uid: 1)
    for (method, params) in [
      ("define", #"{"feed":"c","kind":"collection"}"#), ("update", #"{"feed":"c","elements":[\#(Self.elements)]}"#),
      ("transaction", #"{"ops":[\#(ops)]}"#),
    ] { expect(daemon.ask(client, method, params).first?.json?["result"] != nil) }
    for (rules, count) in [(2, 3), (3, 3), (ExecutionRules.current, 4)] {
      let again = EngineHarness(limits: Self.limits, isDurable: true)
      for batch in daemon.stored { try? again.engine.replay(batch, rules: rules) }
      expectEqual(try again.engine.catalog.feed(named: "c").count, count, "rules \(rules)")
      // A member of a group executes all requests by the rules of the group.
      let member = EngineHarness(limits: Self.limits, isDurable: true)
      member.engine.catalog.commit.rules = rules
      for batch in daemon.stored { try? member.engine.replay(batch) }
      expectEqual(try member.engine.catalog.feed(named: "c").count, count, "rules \(rules)")
    }
  }
}
