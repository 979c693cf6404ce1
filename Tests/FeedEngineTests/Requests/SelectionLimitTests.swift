import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// A selection that does not fit a frame is refused before any row is selected.
struct SelectionLimitTests {
  @Test func selectionLargerThanAFrameIsRefused() {
    let harness = EngineHarness { $0.maxFrame = 4096 }
    let (client, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(client, "define", #"{"feed":"c","kind":"collection","multiple":true}"#)
    for start in stride(from: 0, to: 900, by: 100) {
      let elements = (start..<start + 100).map { #"{"id":\#($0)}"# }.joined(separator: ",")
      _ = harness.ask(client, "update", #"{"feed":"c","elements":[\#(elements)]}"#)
    }
    _ = harness.ask(watcher, "watch", #"{"feed":"c"}"#)
    let all = Value(harness.ask(client, "select", #"{"feed":"c","all":true}"#).first ?? "")
    expectEqual(all?.errorCode, -32007)
    expectEqual(all?.errorData?["limit"]?.string, "maxFrame")
    expectEqual(harness.ask(client, "selected", #"{"feed":"c"}"#).first?.json?["result"]?["selected"]?.text, "[]")
    expectEqual(harness.take(watcher), [])
    for start in stride(from: 0, to: 900, by: 20) {
      let paths = (start..<start + 20).map { "[0,\($0)]" }.joined(separator: ",")
      _ = harness.ask(client, "select", #"{"feed":"c","at":[\#(paths)]}"#)
    }
    let frames = harness.take(watcher)
    expect(!frames.isEmpty)
    expect(frames.allSatisfy { $0.utf8.count <= 4096 })
    let selected = Value(harness.ask(client, "selected", #"{"feed":"c"}"#).first ?? "")?["result"]?["selected"]?.items
    expect((100..<900).contains(selected?.count ?? 0))
  }
}
