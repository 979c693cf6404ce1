import FeedJSON
import FeedQuery
import TestSupport
import Testing

@testable import FeedChange
@testable import FeedModel

@Suite("Managed feeds")
struct ManagedFeedTests {
  @Test func rowsWithEqualIdentitiesAreRefused() throws {
    let sample = try ManagedSample(bySection: false)
    try sample.set([SampleRow(key: 1), SampleRow(key: 2)])
    let before = FeedMirrors.state(of: sample.feed)
    for keys in [[1, 1], [1, 2, 1], [3, 3], [2, 1, 3, 2], [1, 3, 2, 3]] {
      #expect(throws: FeedError.self) { try sample.set(keys.map { SampleRow(key: $0) }) }
      expectEqual(FeedMirrors.state(of: sample.feed), before)
    }
    expectEqual(sample.mirrors.faults, [])
  }

  @Test func redefinedIdentityReplacesTheRows() throws {
    let sample = try ManagedSample(bySection: false)
    try sample.set((0..<4).map { SampleRow(key: $0, version: 10 + $0) })
    try redefine(sample, ManagedDefinition(database: "d", query: "q", id: "v"))
    let change = try sample.set((0..<4).map { SampleRow(key: $0, version: 10 + $0) })
    expect(change.deleted.count == 4 && change.added.count == 4)
    try expectEqual(sample.set((0..<4).reversed().map { SampleRow(key: $0, version: 10 + $0) }).moves.count, 3)
  }

  @Test func redefinedTypeUpdatesTheRows() throws {
    let sample = try ManagedSample(bySection: false)
    try sample.set([SampleRow(key: 1, section: "x"), SampleRow(key: 2, section: "y")])
    let type = try SingularPath(parsing: "$.s")
    try redefine(sample, ManagedDefinition(database: "d", query: "q", type: type))
    let change = try sample.set([SampleRow(key: 1, section: "x"), SampleRow(key: 2, section: "y")])
    expectEqual(change, Change(updated: [IndexPath(section: 0, row: 0), IndexPath(section: 0, row: 1)]))
    expectEqual(String(decoding: sample.feed.section(at: 0).row(at: 1).type, as: UTF8.self), #""y""#)
  }

  @Test func viewDoesNotUpdateARowThatMovedOnlyInItsSource() throws {
    let sample = try ManagedSample(bySection: false)
    try sample.set([1, 2, 3].map { SampleRow(key: $0) })
    try sample.define(#"{"feed":"top","kind":"view","of":"people","limit":2}"#)
    let change = try sample.set([4, 2, 1].map { SampleRow(key: $0) })
    expectEqual(change.moves.count, 1)
    let first = IndexPath(section: 0, row: 0)
    expectEqual(sample.mirrors.changes["top"], Change(deleted: [first], added: [first]))
    expectEqual(sample.mirrors.faults, [])
  }

  @Test func viewJudgesNoRowAgainThatOnlyMoves() throws {
    let sample = try ManagedSample(bySection: false)
    try sample.set((0..<8).map { SampleRow(key: $0, version: $0 % 3) })
    try sample.define(
      #"{"feed":"v","kind":"view","of":"people","filter":"count(@..*) > 0 && @.v > 0","sort":[{"by":"$.v"}]}"#)
    let pace = sample.catalog.commit.pace
    let steps = pace.stepsOfViews
    try sample.set((0..<8).reversed().map { SampleRow(key: $0, version: $0 % 3) })
    expectEqual(pace.stepsOfViews, steps)
    expectEqual(sample.mirrors.faults, [])
    try sample.set((0..<8).map { SampleRow(key: $0, version: $0 % 2) })
    expect(pace.stepsOfViews > steps)
    expectEqual(sample.mirrors.faults, [])
  }

  @Test func limitsApplyToManagedRows() throws {
    let sample = try ManagedSample(bySection: true)
    #expect(throws: FeedError.self) {
      try sample.set((0..<300).map { SampleRow(key: $0, section: "s\($0)") })
    }
    expectEqual(sample.feed.sectionCount, 0)
    // A start restores the feed under the limits of the run before, and then sets its own.
    var limits = Limits()
    limits.maxBins = 300
    sample.catalog.use(limits)
    try sample.set((0..<300).map { SampleRow(key: $0, section: "s\($0)") })
    expectEqual(sample.feed.sectionCount, 300)
    limits.maxElements = 3
    sample.catalog.use(limits)
    #expect(throws: FeedError.self) {
      try sample.set((300..<304).map { SampleRow(key: $0, section: "s") })
    }
    expectEqual(sample.feed.sectionCount, 300)
  }

  /// An image is restored without some of the limits, which must hold for the rows that follow.
  @Test func limitsApplyToRowsOfARestoredFeed() throws {
    let catalog = Catalog(limits: Limits(), seed: 3)
    let definition = #"{"feed":"people","kind":"managed","database":"d","query":"q","section":"s"}"#
    let feed = try withView(definition) {
      try catalog.restore(definition: $0, given: $0, revision: 1, selection: [], bins: [])
    }
    try catalog.finishRestoring(revision: 1, at: Instant(nanoseconds: 1))
    let managed = try require(feed.kind as? ManagedKind)
    let rows = ManagedSample.rows((0..<300).map { SampleRow(key: $0, section: "s\($0)") })
    catalog.begin(at: Instant(nanoseconds: 2))
    #expect(throws: FeedError.self) { try managed.set(rows, in: catalog.commit) }
    catalog.rollBack()
  }

  @Test func snapshotsKeepTheRowsTheyHaveToSend() throws {
    let sample = try ManagedSample(bySection: true)
    try sample.set((0..<300).map { SampleRow(key: $0, section: $0 % 2 == 0 ? "even" : "odd") })
    let snapshot = sample.feed.makeSnapshot()
    try sample.set([SampleRow(key: 7, section: "odd", version: 2)])
    var texts: [String] = []
    while snapshot.next(max: 7, { texts.append(String(decoding: $0.text, as: UTF8.self)) }) > 0 {}
    expectEqual(texts.count, 300)
    expectEqual(texts.first, SampleRow(key: 0, section: "even").text)
    expectEqual(texts.last, SampleRow(key: 299, section: "odd").text)
  }

  private func redefine(_ sample: ManagedSample, _ definition: ManagedDefinition) throws {
    sample.catalog.begin(at: Instant(nanoseconds: 2))
    try sample.catalog.define(FeedDefinition(name: "people", content: .managed(definition)), replace: true)
    sample.catalog.finish(to: sample.mirrors)
  }
}
