import FeedModel
import Testing

@testable import FeedEngine
@testable import ReferenceModel

@Suite struct HistoryBoundTests {
  /// The histories of all feeds together are bounded by `maxHistoryBytes`; a revision that was discarded gets a snapshot.
  @Test func totalSizeOfHistoriesIsBounded() {
    var limits = Limits()
    limits.maxHistoryBytes = 8192
    let harness = EngineHarness(limits: limits)
    let client = harness.connect()
    for feed in 0..<8 {
      _ = harness.ask(client, "define", #"{"feed":"f\#(feed)","kind":"array"}"#)
      _ = harness.ask(client, "watch", #"{"feed":"f\#(feed)"}"#)
    }
    let first = harness.engine.catalog.revision
    for number in 0..<800 {
      _ = harness.ask(client, "insert", #"{"feed":"f\#(number % 8)","elements":[\#(number)]}"#)
    }
    harness.advance(seconds: 2)
    let kept = (0..<8).map { (try? harness.engine.catalog.feed(named: "f\($0)"))?.history?.bytes ?? 0 }
    #expect(kept.reduce(0, +) <= 8192)
    #expect(kept.allSatisfy { $0 > 0 })
    let answer = harness.ask(
      client, "watch", #"{"feed":"f0","since":{"epoch":"test","revision":\#(first)}}"#)
    #expect(answer.first?.json?["result"]?["resumed"]?.bool == false)
  }
}
