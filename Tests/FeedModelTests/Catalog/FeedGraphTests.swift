import TestSupport
import Testing

@testable import FeedChange
@testable import FeedModel

struct FeedGraphTests {
  private static let collection = #"{"feed":"c","kind":"collection","bins":[{"name":"a"},{"name":"b"}]}"#
  private static let array = #"{"feed":"n","kind":"array"}"#

  /// Describes a route: its feeds, the shift of their sections and whether each derives its own change.
  private func steps(_ sample: CatalogSample, _ name: String) throws -> [String]? {
    let route = sample.catalog.graph.route(of: try sample.feed(name))
    guard route.isWhole else { return nil }
    return route.steps.map { step in
      "\(step.feed.takeUnretainedValue().name) \(step.derives ? "derives" : "+\(step.shift)")"
    }
  }

  @Test func routeShiftsSectionsThroughComposedFeeds() throws {
    let sample = try CatalogSample(
      Self.collection, Self.array, #"{"feed":"x","kind":"composed","children":["c","n"]}"#,
      #"{"feed":"y","kind":"composed","children":["c/a","x"]}"#)
    try expectEqual(steps(sample, "n"), ["x +2", "y +3"])
    try expectEqual(steps(sample, "c"), ["x +0", "y +1"])
    try expectEqual(steps(sample, "c/a"), ["y +0"])
  }

  @Test func routeFollowsOnlyTheActiveChildOfASegmentedFeed() throws {
    let sample = try CatalogSample(
      Self.collection, Self.array, #"{"feed":"s","kind":"segmented","children":["c","n"],"current":1}"#)
    try expectEqual(steps(sample, "n"), ["s +0"])
    try expectEqual(steps(sample, "c"), [])
    try sample.commit { try sample.provider("s").activate(index: 0, in: sample.catalog) }
    try expectEqual(steps(sample, "n"), [])
    try expectEqual(steps(sample, "c"), ["s +0"])
  }

  @Test func slotsOnARouteDeriveAChangeThatFeedsAboveShift() throws {
    let slots = #""kind":"slots","pattern":["t"]"#
    let sample = try CatalogSample(
      Self.array, #"{"feed":"s","contents":{"t":"n"},\#(slots)}"#,
      #"{"feed":"x","kind":"composed","children":["s"]}"#, #"{"feed":"u","contents":{"t":"x"},\#(slots)}"#)
    try expectEqual(steps(sample, "n"), ["s derives", "x +0", "u derives"])
  }

  @Test func routeIsIncompleteIfAFeedShowsTheRowsTwice() throws {
    let sample = try CatalogSample(
      Self.array, #"{"feed":"x","kind":"composed","children":["n"]}"#,
      #"{"feed":"y","kind":"composed","children":["n","x"]}"#)
    try expectEqual(steps(sample, "n"), nil)
    try expectEqual(steps(sample, "x"), ["y +1"])
  }

  @Test func routeIsRebuiltAfterAStructuralChange() throws {
    let sample = try CatalogSample(Self.collection, Self.array, #"{"feed":"x","kind":"composed","children":["n"]}"#)
    try expectEqual(steps(sample, "n"), ["x +0"])
    try sample.commit { try sample.provider("x").insertChild("c", at: .index(0), in: sample.catalog) }
    try expectEqual(steps(sample, "n"), ["x +2"])
    try sample.commit {
      try sample.define(#"{"feed":"c","kind":"collection","bins":[{"name":"a"}]}"#, replace: true)
    }
    try expectEqual(steps(sample, "n"), ["x +1"])
    try sample.rollBack { try sample.provider("x").removeChild(at: 0, in: sample.catalog) }
    try expectEqual(steps(sample, "n"), ["x +1"])
  }

  @Test func rankExceedsAllSourcesEvenIfTheyRiseLater() throws {
    let sample = try CatalogSample(
      Self.collection, Self.array, #"{"feed":"x","kind":"composed","children":["n"]}"#,
      #"{"feed":"y","kind":"composed","children":["x"]}"#)
    func rank(_ name: String) throws -> Int { sample.catalog.graph.rank(of: try sample.feed(name).number) }
    try expectEqual([rank("n"), rank("x"), rank("y")], [0, 1, 2])
    try sample.commit { try sample.provider("x").insertChild("c/a", at: .end, in: sample.catalog) }
    try expectEqual([rank("c/a"), rank("x"), rank("y")], [1, 2, 3])
  }

  @Test func cycleIsRefusedAtEveryDistance() throws {
    let sample = try CatalogSample(
      Self.array, #"{"feed":"x","kind":"composed","children":["n"]}"#,
      #"{"feed":"y","kind":"composed","children":["x"]}"#, #"{"feed":"z","kind":"composed","children":["y"]}"#)
    for name in ["x", "y", "z"] {
      #expect(throws: FeedError.self) {
        try sample.commit { try sample.provider("x").insertChild(name, at: .end, in: sample.catalog) }
      }
    }
    try expect(sample.catalog.graph.isShown(sample.feed("n"), by: sample.feed("z")))
    try expect(!sample.catalog.graph.isShown(sample.feed("z"), by: sample.feed("n")))
  }

  @Test func shownFeedCannotBeUndefined() throws {
    let sample = try CatalogSample(Self.collection, #"{"feed":"x","kind":"composed","children":["c/b"]}"#)
    #expect(throws: FeedError.self) { try sample.commit { try sample.catalog.undefine("c") } }
    try sample.commit { try sample.catalog.undefine("x") }
    try sample.commit { try sample.catalog.undefine("c") }
    expect(sample.catalog.feeds.isEmpty)
  }
}

struct FeedTableTests {
  @Test func feedsAndBinsAreFoundByName() throws {
    let sample = try CatalogSample(#"{"feed":"c","kind":"collection","bins":[{"name":"a"},{"name":"b"}]}"#)
    let table = sample.catalog.table
    expectEqual(table.find("c")?.name, "c")
    expectEqual(table.find("c/b")?.name, "c/b")
    for name in ["", "/", "c/", "c/x", "a", "c/a/b", "/a"] { expect(table.find(name) == nil, "\(name)") }
  }

  @Test func numberIsReusedOnlyAfterTheCommit() throws {
    let sample = try CatalogSample(#"{"feed":"x","kind":"array"}"#)
    let first = try sample.feed("x").number
    try sample.commit {
      try sample.catalog.undefine("x")
      try sample.define(#"{"feed":"y","kind":"array"}"#)
    }
    try expect(sample.feed("y").number != first)
    try sample.commit { try sample.define(#"{"feed":"z","kind":"array"}"#) }
    try expectEqual(sample.feed("z").number, first)
  }

  @Test func rollbackKeepsTheNumbersOfUndefinedFeedsAndFreesThoseOfNewOnes() throws {
    let sample = try CatalogSample(#"{"feed":"x","kind":"array"}"#)
    let (x, number) = (try sample.feed("x"), try sample.feed("x").number)
    for _ in 0..<5 {
      try sample.rollBack {
        try sample.catalog.undefine("x")
        try sample.define(#"{"feed":"c","kind":"collection","bins":[{"name":"a"}]}"#)
      }
      try expect(sample.feed("x") === x && sample.catalog.table[number] === x && !x.isGone)
    }
    try sample.commit { try sample.define(#"{"feed":"y","kind":"array"}"#) }
    try expect(sample.feed("y").number <= 3)
  }

  @Test func redefinedBinsKeepTheirNumbers() throws {
    let sample = try CatalogSample(#"{"feed":"c","kind":"collection","bins":[{"name":"a"},{"name":"b"}]}"#)
    let kept = try sample.feed("c/b")
    try sample.commit {
      try sample.define(#"{"feed":"c","kind":"collection","bins":[{"name":"z"},{"name":"b"}]}"#, replace: true)
    }
    try expect(sample.feed("c/b") === kept)
    expectEqual(sample.ended, ["c/a"])
  }
}

struct ExpiryTests {
  private static func retaining(_ name: String, seconds: Int) -> String {
    #"{"feed":"\#(name)","kind":"collection","bins":[{"name":"b"}],"retain":{"seconds":\#(seconds)}}"#
  }

  @Test func nextIsTheOldestElementOfAllCollections() throws {
    let sample = try CatalogSample(
      Self.retaining("slow", seconds: 100), Self.retaining("quick", seconds: 10),
      #"{"feed":"c","kind":"collection","bins":[{"name":"b"}]}"#)
    expectEqual(sample.catalog.nextExpiry, nil)
    try sample.commit { try sample.update("slow", #"{"id":1}"#) }
    let slow = try require(sample.catalog.nextExpiry)
    try sample.commit { try sample.update("quick", #"{"id":1}"#) }
    let quick = try require(sample.catalog.nextExpiry)
    expect(quick < slow)
    expectEqual(sample.catalog.expired(at: quick).map(\.kind.rows?.retention?.seconds), [10])
    expectEqual(sample.catalog.expired(at: slow).count, 2)
    try sample.commit { try sample.delete("quick", "1") }
    expectEqual(sample.catalog.nextExpiry, slow)
  }

  @Test func collectionsAreFollowedThroughRedefinitionsAndRollbacks() throws {
    let sample = try CatalogSample(Self.retaining("c", seconds: 10))
    try sample.commit { try sample.update("c", #"{"id":1}"#) }
    let before = sample.catalog.nextExpiry
    try sample.rollBack { try sample.catalog.undefine("c") }
    expectEqual(sample.catalog.nextExpiry, before)
    try sample.commit {
      try sample.define(#"{"feed":"c","kind":"collection","bins":[{"name":"b"}]}"#, replace: true)
    }
    expectEqual(sample.catalog.nextExpiry, nil)
  }

  /// The next times of all feeds, after commits, rollbacks, redefinitions and evictions.
  @Test(arguments: UInt64(1)...6) func nextIsFollowedInFeedsThatChange(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let sample = try CatalogSample()
    func all() -> [(name: String, next: Instant)] {
      sample.catalog.feeds.values.compactMap { feed in feed.kind.rows?.nextExpiry.map { (feed.name, $0) } }
    }
    func step() throws {
      let name = "f\(Int.random(in: 0..<6, using: &random))"
      let (isDefined, number) = (sample.catalog.feeds[name] != nil, Int.random(in: 1..<9, using: &random))
      switch Int.random(in: 0..<8, using: &random) {
      case 0:
        let rules = [#""seconds":\#(number * 10)"#, #""until":"$.t""#, #""count":3"#]
        let retain = rules[Int.random(in: 0..<3, using: &random)]
        try sample.define(#"{"feed":"\#(name)","kind":"collection","retain":{\#(retain)}}"#, replace: true)
      case 1 where isDefined: try sample.catalog.undefine(name)
      case 2 where isDefined: try sample.delete(name, "\(number)")
      case 3 where sample.catalog.feeds[name]?.kind.rows?.nextExpiry.map { $0 <= sample.catalog.commit.moment } ?? false:
        _ = sample.catalog.evictExpired(of: try sample.feed(name), limit: number)
      default:
        if isDefined { try sample.update(name, #"{"id":\#(number),"t":\#(Int.random(in: 0..<900, using: &random))}"#) }
      }
    }
    for _ in 0..<400 {
      let steps = Int.random(in: 1..<4, using: &random)
      if Bool.random(using: &random) {
        try sample.commit { for _ in 0..<steps { try step() } }
      } else {
        try sample.rollBack { for _ in 0..<steps { try step() } }
      }
      let next = sample.catalog.nextExpiry ?? Instant(nanoseconds: .max)
      expectEqual(next, all().map(\.next).min() ?? Instant(nanoseconds: .max))
      for moment in [next, next.adding(seconds: 40)] {
        let due = all().filter { $0.next <= moment }.map(\.name).sorted()
        expectEqual(sample.catalog.expired(at: moment).map(\.name), due)
      }
    }
  }

  @Test func evictionIsOneOperationOfTheOldestElements() throws {
    let sample = try CatalogSample(Self.retaining("c", seconds: 10))
    try sample.commit { for id in 1...4 { try sample.update("c", "{\"id\":\(id)}") } }
    var evicted = 0
    try sample.commit(after: 60_000_000_000) {
      evicted = sample.catalog.evictExpired(of: try sample.catalog.feed(named: "c"), limit: 3)
    }
    expectEqual(evicted, 3)
    expectEqual(sample.changes["c"], Change(deleted: [IndexPath(0, 0), IndexPath(0, 1), IndexPath(0, 2)]))
    try expectEqual(sample.rows("c"), [[#"{"id":4}"#]])
  }
}
