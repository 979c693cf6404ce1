import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

struct HistoryBoundTests {
  /// The histories of all feeds together are bounded by `maxHistoryBytes`; a revision that was discarded gets a snapshot.
  @Test func totalSizeOfHistoriesIsBounded() {
    let harness = EngineHarness { $0.maxHistoryBytes = 8192 }
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
    expect(kept.reduce(0, +) <= 8192)
    expect(kept.allSatisfy { $0 > 0 })
    let answer = harness.ask(client, "watch", #"{"feed":"f0","since":{"epoch":"test","revision":\#(first)}}"#)
    expectEqual(answer.first?.json?["result"]?["resumed"]?.bool, false)
  }

  /// Among many feeds, histories are trimmed in parts. All of them are looked at, and share what is left after the first round.
  @Test func historiesOfManyFeedsAreTrimmedInParts() throws {
    let harness = EngineHarness { $0.maxHistoryBytes = 8192 }
    let client = harness.connect()
    func fill(_ feed: String) {
      _ = harness.ask(client, "define", #"{"feed":"\#(feed)","kind":"array"}"#)
      _ = harness.ask(client, "watch", #"{"feed":"\#(feed)"}"#)
      for number in 0..<400 { _ = harness.ask(client, "insert", #"{"feed":"\#(feed)","elements":[\#(number)]}"#) }
    }
    fill("first")
    let bins = (0..<250).map { #"{"name":"\#($0)"}"# }.joined(separator: ",")
    for number in 0..<20 {
      _ = harness.ask(client, "define", #"{"feed":"c\#(number)","kind":"collection","id":"$.id","bins":[\#(bins)]}"#)
    }
    fill("last")
    harness.advance(seconds: 2)
    expect(!harness.engine.catalog.isTrimming)
    let kept = try ["first", "last"].map { try harness.engine.catalog.feed(named: $0).history?.bytes ?? 0 }
    // 22 feeds have a history.
    expect(kept.allSatisfy { $0 > 0 && $0 <= 8192 / 22 }, "\(kept)")
  }

  /// Many feeds record each change, so histories grow fast. They are trimmed before the next second, and during replay.
  @Test func manyChangesAreTrimmedBeforeTheSweep() throws {
    var limits = Limits()
    limits.maxHistoryBytes = 1 << 20
    let harness = EngineHarness(limits: limits, isDurable: true)
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"f0","kind":"array"}"#)
    for feed in 1...400 {
      _ = harness.ask(client, "define", #"{"feed":"f\#(feed)","kind":"composed","children":["f\#(feed - 1)"]}"#)
    }
    let inserts = (0..<600).flatMap { _ in
      EngineHarness.frame(#"{"jsonrpc":"2.0","method":"insert","params":{"feed":"f0","at":0,"element":1}}"#)
    }
    harness.deliver(client, inserts)
    // Each feed records each change.
    let all = 240_000 * 36
    expect(harness.engine.catalog.historyBytes < all / 2)
    let again = EngineHarness(limits: limits, isDurable: true)
    for batch in harness.stored { try again.engine.replay(batch) }
    expectEqual(again.engine.catalog.revision, harness.engine.catalog.revision)
    expect(again.engine.catalog.historyBytes < all / 2)
  }
}
