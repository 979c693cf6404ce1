import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// What `LimitFamilyTests` does not say of limits on requests.
@Suite struct LimitTests {
  private static let collection = ("define", #"{"feed":"c","kind":"collection"}"#)

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
        #expect(reply?.errorCode == -32007 && reply?.errorData?["limit"]?.string == "maxDepth")
        expectEqual(reply?["id"]?.text, "null")
      }
    }
  }
}
