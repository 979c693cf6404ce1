import TestSupport
import Testing

@testable import FeedEngine
@testable import FeedModel
@testable import FeedStorage

/// A start with other limits than those under which the state was made.
struct ChangedLimitsTests {
  private let directory: TemporaryDirectory
  private var path: String { directory.file("state") }

  init() throws { directory = try TemporaryDirectory() }

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
    let (high, low) = (Self.limits { $0.maxDepth = 600 }, Self.limits { $0.maxDepth = 100 })
    let deep = String(repeating: "[", count: 300) + String(repeating: "]", count: 300)
    let daemon = try DurableEngine(path, limits: high)
    daemon.ask("define", #"{"feed":"a","kind":"array","id":"$.id"}"#)
    daemon.ask("define", #"{"feed":"k","kind":"collection"}"#)
    daemon.ask("define", #"{"feed":"s","kind":"collection","section":"$.s"}"#)
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

  // MARK: maxViewSteps

  /// A view, and what shows its rows, after a start with fewer steps.
  @Test(arguments: [true, false])
  func viewsFollowTheLimitOnSteps(writesImage: Bool) throws {
    let few = Self.limits { $0.maxViewSteps = 1000 }
    let daemon = try DurableEngine(path)
    daemon.ask("define", #"{"feed":"a","kind":"array"}"#)
    daemon.ask("define", #"{"feed":"v","kind":"view","of":"a","filter":"count(@..x) > 0"}"#)
    daemon.ask("define", #"{"feed":"w","kind":"view","of":"v","limit":5}"#)
    daemon.ask("define", #"{"feed":"c","kind":"composed","children":["a","w"]}"#)
    daemon.ask("define", #"{"feed":"t","kind":"slots","contents":{"m":"v"},"pattern":["m"]}"#)
    daemon.ask("define", #"{"feed":"other","kind":"view","of":"a","filter":"@.x"}"#)
    let long = "[" + (0..<3000).map(String.init).joined(separator: ",") + "]"
    daemon.ask("insert", #"{"feed":"a","element":{"x":1}}"#)
    daemon.ask("insert", #"{"feed":"a","element":{"x":\#(long)}}"#)
    for (feed, count) in [("v", "[2]"), ("w", "[2]"), ("c", "[2,2]"), ("t", "[2]"), ("other", "[2]")] {
      try expectEqual(counts(daemon, feed), JSONValue(count))
    }
    let revision = daemon.catalog.revision
    if writesImage { daemon.stop() }

    let again = try DurableEngine(path, limits: few)
    expectEqual(again.log.epoch, daemon.log.epoch)
    for (feed, count) in [("v", "[1]"), ("w", "[1]"), ("c", "[2,1]"), ("t", "[1]"), ("other", "[2]")] {
      try expectEqual(counts(again, feed), JSONValue(count))
    }
    // A client that has the former rows gets the new ones.
    for feed in ["v", "w", "c", "t"] {
      let told = again.resume(feed, from: revision, epoch: again.log.epoch)
      expect(told.contains { $0.contains(#""resumed":false"#) }, "\(feed): \(told)")
    }
    again.ask("insert", #"{"feed":"a","element":{"x":2}}"#)
    try expectEqual(counts(again, "v"), "[2]")
    again.catalog.checkInvariants()
    // Replay counts the revision that the start added, with and without an image of the new rows.
    let state = again.visibleState
    func withoutRevisions(_ lines: [String]) -> [String] {
      lines.map { $0.replacing(#/"revision":[0-9]+/#, with: "") }
    }
    let third = try DurableEngine(path, limits: few)
    expectEqual(withoutRevisions(third.visibleState), withoutRevisions(state))
    third.ask("insert", #"{"feed":"a","element":{"x":3}}"#)
    third.stop()
    let fourth = try DurableEngine(path)
    try expectEqual(counts(fourth, "v"), "[4]")
    fourth.ask("insert", #"{"feed":"a","element":{"x":4}}"#)
    try expectEqual(counts(DurableEngine(path), "v"), "[5]")
  }

  /// A view `v` of `a`, with one element whose filter takes more than 1,000 steps.
  private static func storeLongElement(_ path: String) throws {
    let daemon = try DurableEngine(path)
    daemon.ask("define", #"{"feed":"a","kind":"array"}"#)
    daemon.ask("define", #"{"feed":"v","kind":"view","of":"a","filter":"count(@..x) > 0"}"#)
    let long = "[" + (0..<3000).map(String.init).joined(separator: ",") + "]"
    daemon.ask("insert", #"{"feed":"a","element":{"x":\#(long)}}"#)
    daemon.stop()
  }

  /// Each start gives replaced rows a revision, which conditions name: replay finds it too.
  @Test func conditionsHoldOnReplacedRows() throws {
    let few = Self.limits { $0.maxViewSteps = 1000 }
    try Self.storeLongElement(path)
    // The second start has the limits of the segment before.
    for count in 1...2 {
      let again = try DurableEngine(path, limits: few)
      try expectEqual(counts(again, "a"), JSONValue("[\(count)]"))
      let revision = try again.catalog.feed(named: "v").revision
      let answer = again.ask("insert", #"{"feed":"a","element":0,"if":{"feed":"v","revision":\#(revision)}}"#)
      expectEqual(try JSONValue(answer)["result"]["added"].elements.count, 1)
    }
    try expectEqual(counts(DurableEngine(path, limits: few), "a"), "[3]")
  }

  /// A start under other limits that stores no change gives replaced rows a revision too, which no other rows get later.
  @Test func revisionsOfReplacedRowsAreNotGivenAgain() throws {
    try Self.storeLongElement(path)
    let few = try DurableEngine(path, limits: Self.limits { $0.maxViewSteps = 1000 })
    few.run()
    try expectEqual(counts(few, "v"), "[0]")
    let revision = try few.catalog.feed(named: "v").revision
    let again = try DurableEngine(path)
    try expectEqual(counts(again, "v"), "[1]")
    again.ask("insert", #"{"feed":"a","element":0}"#)
    let told = again.resume("v", from: revision, epoch: again.log.epoch)
    expect(told.contains { $0.contains(#""resumed":false"#) }, "\(told)")
  }

  /// A start under other limits writes an image soon, so that watches resume across the next start under the same limits.
  @Test func watchesOfReplacedRowsResumeAfterAnImage() throws {
    try Self.storeLongElement(path)
    var policy = ImagePolicy()
    policy.idle = 3_600_000_000_000
    let few = Self.limits { $0.maxViewSteps = 1000 }
    let daemon = try DurableEngine(path, policy: policy, limits: few)
    daemon.settle()
    expect(daemon.log.wantsImage)
    expect(daemon.writeImage())
    let revision = try daemon.catalog.feed(named: "v").revision
    let again = try DurableEngine(path, policy: policy, limits: few)
    again.settle()
    expect(!again.log.wantsImage)
    let told = again.resume("v", from: revision, epoch: again.log.epoch)
    expect(told.contains { $0.contains(#""resumed":true"#) }, "\(told)")
  }

  /// The steps of views that are limited together are those of the present limits, as they are after an image.
  @Test func stepsOfViewsFollowTheLimit() throws {
    let many = Self.limits { $0.maxViewSteps = 500_000 }
    let daemon = try DurableEngine(path)
    daemon.ask("define", #"{"feed":"a","kind":"array"}"#)
    for number in 0..<9 {
      daemon.ask("define", #"{"feed":"v\#(number)","kind":"view","of":"a","filter":"count(@..x) > 0"}"#)
    }
    daemon.stop()
    let again = try DurableEngine(path, limits: many)
    again.ask("insert", #"{"feed":"a","element":{"x":1}}"#)
    again.writeImage()
    let refused = again.ask("define", #"{"feed":"v9","kind":"view","of":"a","filter":"count(@..x) > 0"}"#)
    expectEqual(try JSONValue(refused)["error"]["data"]["limit"], #""maxDerivedSteps""#)
    again.ask("insert", #"{"feed":"a","element":{"x":2}}"#)
    expectEqual(try DurableEngine(path, limits: many).visibleState, again.visibleState)
  }

  // MARK: maxSections

  /// An image is read without the limit, which holds again in the log behind it.
  @Test func sectionsAreLimitedInReplayOnAnImage() throws {
    let few = Self.limits { ($0.maxSections, $0.maxBins) = (3, 3) }
    let daemon = try DurableEngine(path, limits: few)
    daemon.ask("define", #"{"feed":"g","kind":"collection","section":"$.g"}"#)
    daemon.ask("define", #"{"feed":"s","kind":"single"}"#)
    for id in 1...3 { daemon.ask("update", #"{"feed":"g","element":{"id":\#(id),"g":\#(id)}}"#) }
    daemon.writeImage()
    let refused = daemon.ask("update", #"{"feed":"g","element":{"id":4,"g":4}}"#)
    expectEqual(try JSONValue(refused)["error"]["data"]["limit"], #""maxSections""#)
    daemon.ask("put", #"{"feed":"s","element":1}"#)
    expectEqual(try DurableEngine(path, limits: few).visibleState, daemon.visibleState)
  }

  // MARK: maxElementBytes

  /// The rows of `$feeds`, and what shows them, after a start with shorter elements.
  @Test(arguments: [true, false])
  func listedDefinitionsFollowTheLimitOnElements(writesImage: Bool) throws {
    let short = Self.limits { $0.maxElementBytes = 1000 }
    let daemon = try DurableEngine(path)
    let bins = (0..<40).map { #"{"name":"b\#($0)","filter":"@.x == \#($0)"}"# }.joined(separator: ",")
    daemon.ask("define", #"{"feed":"k","kind":"collection","bins":[\#(bins)]}"#)
    daemon.ask("define", #"{"feed":"s","kind":"single"}"#)
    daemon.ask("define", #"{"feed":"v","kind":"view","of":"$feeds","filter":"@.definition.bins"}"#)
    daemon.ask("select", #"{"feed":"v","at":[[0,0]]}"#)
    try expectEqual(counts(daemon, "v"), "[1]")
    let revision = daemon.catalog.revision
    if writesImage { daemon.stop() }

    let again = try DurableEngine(path, limits: short)
    try expectEqual(counts(again, "v"), "[0]")
    for feed in ["$feeds", "v"] {
      let told = again.resume(feed, from: revision, epoch: again.log.epoch)
      expect(told.contains { $0.contains(#""resumed":false"#) }, "\(feed): \(told)")
    }
    again.ask("put", #"{"feed":"s","element":1}"#)
    again.catalog.checkInvariants()
    let state = again.visibleState
    again.stop()
    let third = try DurableEngine(path, limits: short)
    expectEqual(third.visibleState, state)
    third.ask("put", #"{"feed":"s","element":2}"#)
    third.stop()
    try expectEqual(counts(DurableEngine(path), "v"), "[1]")
  }
}
