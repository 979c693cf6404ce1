import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// The budget of steps that all filters of a collection share for one element.
struct FilterStepsTests {
  private static let limits = {
    var limits = Limits()
    limits.maxQuerySteps = 5000
    return limits
  }()

  private func update(_ harness: EngineHarness, _ client: ConnectionID, _ feed: String, _ element: String) -> String {
    harness.ask(client, "update", #"{"feed":"\#(feed)","element":\#(element)}"#).first ?? ""
  }

  private func digest(_ harness: EngineHarness, _ client: ConnectionID, _ feed: String) -> String {
    harness.ask(client, "verify", #"{"feed":"\#(feed)"}"#).first ?? ""
  }

  /// Each filter alone is within the limit; together they exceed it, and the update is refused without a change.
  @Test func filtersOfAllBinsShareOneBudget() {
    let harness = EngineHarness(limits: Self.limits)
    let client = harness.connect()
    let bin = { (name: Int) in #"{"name":"b\#(name)","filter":"@..[?@ == 'x\#(name)']"}"# }
    _ = harness.ask(client, "define", #"{"feed":"one","kind":"collection","bins":[\#(bin(0))]}"#)
    let bins = (0..<8).map(bin).joined(separator: ",")
    _ = harness.ask(client, "define", #"{"feed":"all","kind":"collection","bins":[\#(bins)]}"#)
    _ = harness.ask(client, "define", #"{"feed":"first","kind":"collection","exclusive":true,"bins":[\#(bins)]}"#)
    let values = ((0..<1000).map { "\($0)" } + (0..<8).map { "\"x\($0)\"" }).joined(separator: ",")
    let element = #"{"id":1,"v":[\#(values)]}"#
    // In an exclusive collection the first bin that accepts the element ends the search.
    for feed in ["one", "first"] {
      expectEqual(update(harness, client, feed, element).json?["result"]?["added"]?.text, "[[0,0]]")
    }
    expectEqual(update(harness, client, "all", #"{"id":1,"v":["x3"]}"#).json?["result"]?["added"]?.text, "[[3,0]]")
    let before = digest(harness, client, "all")
    let refused = update(harness, client, "all", element)
    expect(refused.json?.errorCode == -32007 && refused.json?.errorData?["limit"]?.string == "maxQuerySteps")
    let several = harness.ask(client, "update", #"{"feed":"all","elements":[{"id":2,"v":["x1"]},\#(element)]}"#)
    expectEqual(several.first?.json?.errorCode, -32007)
    expectEqual(digest(harness, client, "all"), before)
    // Redefining a collection with so many bins is refused too.
    let rebinned = harness.ask(
      client, "define", #"{"feed":"one","kind":"collection","replace":true,"bins":[\#(bins)]}"#)
    expectEqual(rebinned.first?.json?.errorCode, -32007)
    expectEqual(update(harness, client, "all", #"{"id":2,"v":["x1"]}"#).json?["result"]?["added"]?.text, "[[1,0]]")
  }

  /// Replay refuses the same updates, although the caches of the patterns differ by then.
  @Test func replayRefusesTheSameUpdates() throws {
    let harness = EngineHarness(limits: Self.limits, isDurable: true)
    let client = harness.connect()
    let filters = ["search(@.t, '(a|b)*a(a|b){9}$')", "search(@.t, @.p)"]
    let bins = filters.enumerated().map { #"{"name":"b\#($0)","filter":"\#($1)"}"# }.joined(separator: ",")
    _ = harness.ask(client, "define", #"{"feed":"c","kind":"collection","bins":[\#(bins)]}"#)
    var refusals = 0
    for id in 0..<60 {
      let text = String(repeating: id % 3 == 0 ? "ab" : "ba", count: id * 100)
      let answer = update(harness, client, "c", #"{"id":\#(id),"t":"\#(text)","p":"(a|b){\#(id % 7 + 1)}"}"#)
      if answer.json?.errorCode == -32007 { refusals += 1 }
    }
    expect(refusals > 5 && refusals < 55)
    let again = EngineHarness(limits: Self.limits)
    for batch in harness.stored {
      try again.engine.replay(batch)
    }
    expectEqual(digest(again, again.connect(), "c"), digest(harness, client, "c"))
    expectEqual(again.engine.catalog.revision, harness.engine.catalog.revision)
  }
}
