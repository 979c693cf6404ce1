import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// A request at a limit is executed. A request beyond it is refused with the name of the limit and changes nothing.
@Suite struct LimitTests {
  private struct Case: Sendable {
    let limit: String
    let set: @Sendable (inout Limits) -> Void
    var before: [(String, String)] = []
    let fits: (String, String)
    let exceeds: (String, String)
  }

  private static let collection = ("define", #"{"feed":"c","kind":"collection"}"#)

  private static let cases: [Case] = [
    Case(
      limit: "maxFeeds", set: { $0.maxFeeds = 2 }, before: [collection],
      fits: ("define", #"{"feed":"d","kind":"array"}"#), exceeds: ("define", #"{"feed":"e","kind":"array"}"#)),
    Case(
      limit: "maxBins", set: { $0.maxBins = 2 },
      fits: ("define", #"{"feed":"c","kind":"collection","bins":[{"name":"a"},{"name":"b"}]}"#),
      exceeds: ("define", #"{"feed":"d","kind":"collection","bins":[{"name":"a"},{"name":"b"},{"name":"c"}]}"#)),
    Case(
      limit: "maxElements", set: { $0.maxElements = 2 }, before: [collection],
      fits: ("update", #"{"feed":"c","elements":[{"id":1},{"id":2},{"id":1,"x":1}]}"#),
      exceeds: ("update", #"{"feed":"c","elements":[{"id":2,"x":1},{"id":3}]}"#)),
    Case(
      limit: "maxElementBytes", set: { $0.maxElementBytes = 20 }, before: [collection],
      fits: ("update", #"{"feed":"c","element":{"id":1, "a":"23456"}}"#),
      exceeds: ("update", #"{"feed":"c","elements":[{"id":2},{"id":1,"a":"23456789"}]}"#)),
    Case(
      limit: "maxBytes", set: { $0.maxBytes = 1024 }, before: [collection],
      fits: ("update", #"{"feed":"c","element":{"id":1,"a":"\#(String(repeating: "x", count: 700))"}}"#),
      exceeds: ("update", #"{"feed":"c","elements":[{"id":3},{"id":2,"a":"\#(String(repeating: "x", count: 700))"}]}"#)),
    Case(
      limit: "maxWatches", set: { $0.maxWatches = 1 }, before: [collection], fits: ("watch", #"{"feed":"c"}"#),
      exceeds: ("watch", #"{"feed":"c/all"}"#)),
    Case(
      limit: "maxQueryBytes", set: { $0.maxQueryBytes = 1024 },
      before: [
        collection, ("update", #"{"feed":"c","element":{"id":1,"a":"\#(String(repeating: "x", count: 900))"}}"#),
      ], fits: ("query", #"{"feed":"c","path":"$..id"}"#),
      exceeds: ("update", #"{"feed":"c","element":{"id":2,"a":"\#(String(repeating: "x", count: 900))"}}"#)),
  ]

  @Test(arguments: 0..<6) func requestBeyondALimitIsRefused(index: Int) {
    let this = Self.cases[index]
    var limits = Limits()
    this.set(&limits)
    let harness = EngineHarness(limits: limits)
    let id = harness.connect()
    for (method, params) in this.before { _ = harness.ask(id, method, params) }
    expectEqual(Value(harness.ask(id, this.fits.0, this.fits.1)[0])?.errorCode, nil)
    let before = harness.ask(id, "feeds") + harness.ask(id, "verify", #"{"feed":"c"}"#)
    let refusal = Value(harness.ask(id, this.exceeds.0, this.exceeds.1)[0])
    expectEqual(refusal?.errorCode, -32007)
    expectEqual(refusal?.errorData?["limit"]?.string, this.limit)
    expectEqual(harness.ask(id, "feeds") + harness.ask(id, "verify", #"{"feed":"c"}"#), before)
    // A transaction is rolled back, and the error names the operation.
    if this.limit == "maxWatches" { return }
    let ops = [this.fits, this.exceeds].map { #"{"method":"\#($0)","params":\#($1)}"# }.joined(separator: ",")
    let transaction = Value(harness.ask(id, "transaction", #"{"ops":[\#(ops)]}"#)[0])
    #expect(transaction?.errorCode == -32007 && transaction?.errorData?["op"]?.int == 1)
    expectEqual(harness.ask(id, "feeds") + harness.ask(id, "verify", #"{"feed":"c"}"#), before)
  }

  @Test func queryOfTooManyBytesIsRefused() {
    let this = Self.cases[6]
    var limits = Limits()
    this.set(&limits)
    let harness = EngineHarness(limits: limits)
    let id = harness.connect()
    for (method, params) in this.before { _ = harness.ask(id, method, params) }
    expectEqual(Value(harness.ask(id, this.fits.0, this.fits.1)[0])?.errorCode, nil)
    _ = harness.ask(id, this.exceeds.0, this.exceeds.1)
    let refusal = Value(harness.ask(id, this.fits.0, this.fits.1)[0])
    #expect(refusal?.errorCode == -32007 && refusal?.errorData?["limit"]?.string == "maxQueryBytes")
    expectEqual(Value(harness.ask(id, "query", #"{"feed":"c","path":"$[1].id"}"#)[0])?.errorCode, nil)
  }

  /// The depth is checked while a frame is scanned, so the error has no request id.
  @Test func deepFrameIsRefusedWithoutAnId() {
    var limits = Limits()
    limits.maxDepth = 8
    let harness = EngineHarness(limits: limits)
    let id = harness.connect()
    _ = harness.ask(id, Self.collection.0, Self.collection.1)
    for (depth, fits) in [(5, true), (6, false), (600, false)] {
      let deep = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
      let reply = Value(harness.ask(id, "update", #"{"feed":"c","element":{"id":1,"a":\#(deep)}}"#)[0])
      expectEqual((reply?.errorCode == nil), fits, "\(depth)")
      if !fits {
        #expect(reply?.errorCode == -32007 && reply?.errorData?["limit"]?.string == "maxDepth")
        expectEqual(reply?["id"]?.text, "null")
      }
    }
  }
}
