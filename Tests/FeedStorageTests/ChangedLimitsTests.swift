import TestSupport
import Testing

@testable import FeedEngine
@testable import FeedModel

/// A start with other limits than those under which the state was made.
@Suite struct ChangedLimitsTests {
  private static func limits(_ change: (inout Limits) -> Void) -> Limits {
    var limits = Limits()
    change(&limits)
    return limits
  }

  /// The counts of a feed.
  private func counts(_ daemon: DurableEngine, _ feed: String) throws -> JSONValue {
    try JSONValue(daemon.ask("describe", #"{"feed":"\#(feed)"}"#))["result"]["counts"]
  }

  // MARK: maxDepth

  @Test(arguments: [true, false])
  func elementsDeeperThanMaxDepthAreKept(writesImage: Bool) throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("state")
    let (high, low) = (Self.limits { $0.maxDepth = 600 }, Self.limits { $0.maxDepth = 100 })
    let deep = String(repeating: "[", count: 300) + String(repeating: "]", count: 300)
    let daemon = try DurableEngine(path, limits: high)
    daemon.ask("define", #"{"feed":"a","kind":"array","id":"$.id"}"#)
    daemon.ask("define", #"{"feed":"k","kind":"collection"}"#)
    daemon.ask("define", #"{"feed":"s","kind":"collection","section":{"by":"$.s"}}"#)
    daemon.ask("define", #"{"feed":"v","kind":"view","of":"a","filter":"@.id > 0","sort":[{"by":"$.id"}]}"#)
    for id in 1...2 {
      // The first one is stored without its white space; a lone surrogate is read from the text.
      let element = #"{"id": \#(id), "s":"\ud800", "x":\#(deep)}"#
      daemon.ask("insert", #"{"feed":"a","at":0,"element":\#(element)}"#)
      for feed in ["k", "s"] { daemon.ask("update", #"{"feed":"\#(feed)","element":\#(element)}"#) }
    }
    for feed in ["a", "k", "s", "v"] { try expectEqual(counts(daemon, feed), "[2]") }
    let state = daemon.visibleState
    if writesImage { daemon.stop() }
    let again = try DurableEngine(path, limits: low)
    expectEqual(again.visibleState, state)

    again.ask("define", #"{"feed":"k","kind":"collection","exclusive":true,"replace":true}"#)
    try expectEqual(counts(again, "k"), "[2]")
    again.ask("define", #"{"feed":"a","kind":"array","id":"$.id","type":"$.s","replace":true}"#)
    try expectEqual(counts(again, "a"), "[2]")
    let found = again.ask("query", #"{"feed":"k","path":"$[*].id"}"#)
    expectEqual(try JSONValue(found)["result"]["nodes"].elements.count, 2)
    again.ask("delete", #"{"feed":"s","where":"@.id == 1"}"#)
    try expectEqual(counts(again, "s"), "[1]")
    let refused = again.ask("update", #"{"feed":"k","element":{"id":3,"x":\#(deep)}}"#)
    expectEqual(try JSONValue(refused)["error"]["data"]["limit"], #""maxDepth""#)

    let after = again.visibleState
    if writesImage { again.stop() }
    expectEqual(try DurableEngine(path, limits: low).visibleState, after)
  }

  @Test func elementsDeeperThanAFormerMaxDepthAreAccepted() throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("state")
    let (high, low) = (Self.limits { $0.maxDepth = 600 }, Self.limits { $0.maxDepth = 100 })
    let daemon = try DurableEngine(path, limits: low)
    daemon.ask("define", #"{"feed":"k","kind":"collection"}"#)
    daemon.stop()
    let deep = String(repeating: "[", count: 300) + String(repeating: "]", count: 300)
    let again = try DurableEngine(path, limits: high)
    again.ask("update", #"{"feed":"k","element":{"id": 1, "x":\#(deep)}}"#)
    try expectEqual(counts(again, "k"), "[1]")
    // Replayed on the image.
    expectEqual(try DurableEngine(path, limits: high).visibleState, again.visibleState)
    again.stop()
  }
}
