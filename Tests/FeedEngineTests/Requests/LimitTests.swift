import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// What `LimitFamilyTests` does not say of limits on requests.
struct LimitTests {
  private static let collection = ("define", #"{"feed":"c","kind":"collection"}"#)

  /// Requests that use all of a limit, and others beyond it. An element counts once, and without the spaces between its tokens.
  private static let cases: [(limit: String, value: Int, fits: (String, String), exceeds: (String, String))] = [
    ("maxFeeds", 2, ("define", #"{"feed":"d","kind":"array"}"#), ("define", #"{"feed":"e","kind":"array"}"#)),
    (
      "maxBins", 2, ("define", #"{"feed":"d","kind":"collection","bins":[{"name":"a"},{"name":"b"}]}"#),
      ("define", #"{"feed":"e","kind":"collection","bins":[{"name":"a"},{"name":"b"},{"name":"c"}]}"#)
    ),
    (
      "maxElements", 2, ("update", #"{"feed":"c","elements":[{"id":1},{"id":2},{"id":1,"x":1}]}"#),
      ("update", #"{"feed":"c","elements":[{"id":2,"x":1},{"id":3}]}"#)
    ),
    (
      "maxElementBytes", 20, ("update", #"{"feed":"c","element":{"id":1, "a":"23456"}}"#),
      ("update", #"{"feed":"c","elements":[{"id":2},{"id":1,"a":"23456789"}]}"#)
    ),
    (
      "maxBytes", 1024,
      ("update", #"{"feed":"c","element":{"id":1,"a":"\#(String(repeating: "x", count: 700))"}}"#),
      ("update", #"{"feed":"c","elements":[{"id":3},{"id":2,"a":"\#(String(repeating: "x", count: 700))"}]}"#)
    ),
  ]

  @Test(arguments: cases.indices) func requestBeyondALimitIsUndoneWithItsTransaction(index: Int) throws {
    let (name, value, fits, exceeds) = Self.cases[index]
    let limit = try require(Limits.all.first { $0.name == name })
    let harness = EngineHarness { $0[keyPath: limit.keyPath] = value }
    let id = harness.connect()
    for (method, params) in [Self.collection, fits] {
      expect(harness.ask(id, method, params).first?.json?["result"] != nil)
    }
    func state() -> [String] { harness.ask(id, "feeds") + harness.ask(id, "verify", #"{"feed":"c"}"#) }
    let before = state()
    let ops = [fits, exceeds].map { #"{"method":"\#($0)","params":\#($1)}"# }.joined(separator: ",")
    let requests: [(String, String, op: Int?)] = [
      (exceeds.0, exceeds.1, nil), ("transaction", #"{"ops":[\#(ops)]}"#, 1),
    ]
    for (method, params, op) in requests {
      let refusal = harness.ask(id, method, params).first?.json
      expectEqual(refusal?.errorCode, -32007)
      expectEqual(refusal?.errorData?["limit"]?.string, name)
      expectEqual(refusal?.errorData?["op"]?.int, op)
      expectEqual(state(), before)
    }
  }

  @Test func queryOfOneElementReadsNoOthers() {
    let harness = EngineHarness { $0.maxQueryBytes = 1024 }
    let id = harness.connect()
    _ = harness.ask(id, Self.collection.0, Self.collection.1)
    func refusal() -> Value? { harness.ask(id, "query", #"{"feed":"c","path":"$..id"}"#).first?.json?.errorData }
    for number in 1...2 {
      expectEqual(refusal()?["limit"], nil)
      let text = String(repeating: "x", count: 900)
      _ = harness.ask(id, "update", #"{"feed":"c","element":{"id":\#(number),"a":"\#(text)"}}"#)
    }
    expectEqual(refusal()?["limit"]?.string, "maxQueryBytes")
    let found = harness.ask(id, "query", #"{"feed":"c","path":"$[1].id"}"#).first?.json
    expectEqual(found?["result"]?["nodes"]?.text, "[2]")
  }

  /// The depth is checked while a frame is scanned, so the error has no request id.
  @Test func deepFrameIsRefusedWithoutAnId() {
    let harness = EngineHarness { $0.maxDepth = 8 }
    let id = harness.connect()
    _ = harness.ask(id, Self.collection.0, Self.collection.1)
    for (depth, fits) in [(5, true), (6, false), (600, false)] {
      let deep = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
      let reply = Value(harness.ask(id, "update", #"{"feed":"c","element":{"id":1,"a":\#(deep)}}"#)[0])
      expectEqual((reply?.errorCode == nil), fits, "\(depth)")
      if !fits {
        expect(reply?.errorCode == -32007 && reply?.errorData?["limit"]?.string == "maxDepth")
        expectEqual(reply?["id"]?.text, "null")
      }
    }
  }
}
