import FeedChange
import TestSupport
import Testing

@testable import FeedModel

/// What many operations of one commit may take together.
@Suite struct CommitCostTests {
  /// A segmented feed of so many empty arrays.
  private static func segmented(children: Int) throws -> CatalogSample {
    let sample = try CatalogSample()
    try sample.commit {
      for number in 0..<children { try sample.define(#"{"feed":"c\#(number)","kind":"array"}"#) }
      let names = (0..<children).map { "\"c\($0)\"" }.joined(separator: ",")
      try sample.define(#"{"feed":"s","kind":"segmented","children":[\#(names)]}"#)
    }
    return sample
  }

  @Test func changesOfChildrenAreListedOnce() throws {
    let sample = try Self.segmented(children: 50)
    sample.watch(sample.catalog.table.list)
    let provider = try sample.provider("s")
    try sample.commit {
      for number in 0..<40 { try provider.activate(index: number, in: sample.catalog) }
      expectEqual(sample.catalog.commit.log.entries.count, 0, "versions of the row")
    }
    expectEqual(sample.changes["$feeds"]?.updated.count, 1)
    let row = try sample.rows("$feeds")[0].last
    #expect(row?.hasPrefix(#"{"feed":"s","#) == true && row?.hasSuffix(#""active":39}}"#) == true, "\(row ?? "")")
  }

  @Test func rowOfAFeedThatIsUndefinedAfterItsChildrenChangedIsRemoved() throws {
    let sample = try Self.segmented(children: 3)
    sample.watch(sample.catalog.table.list)
    let provider = try sample.provider("s")
    try sample.commit {
      try provider.activate(index: 1, in: sample.catalog)
      try sample.catalog.undefine("s")
      try sample.define(#"{"feed":"s","kind":"array"}"#)
    }
    expectEqual(try sample.rows("$feeds")[0].last?.hasPrefix(#"{"feed":"s","kind":"array""#), true)
    try sample.rollBack { try sample.define(#"{"feed":"t","kind":"composed","children":["s"]}"#) }
    expectEqual(try sample.rows("$feeds")[0].count, 4)
  }

  @Test func childrenOfEachFurtherOperationCount() throws {
    let sample = try Self.segmented(children: 50)
    let provider = try sample.provider("s")
    var limits = Limits()
    limits.maxRequestRows = 120
    sample.catalog.use(limits)
    func activate(_ count: Int) throws {
      for number in 0..<count { try provider.activate(index: number, in: sample.catalog) }
    }
    try sample.commit { try activate(3) }
    let error = #expect(throws: FeedError.self) { try sample.commit { try activate(4) } }
    #expect(error.map { "\($0)" }?.contains("maxRequestRows") == true, "\(String(describing: error))")
    sample.catalog.commit.rules = 2
    try sample.commit { try activate(4) }
  }

  /// A collection of 100 elements, a view `v` that sorts them, and an empty composed feed `x`.
  private static func sortedView() throws -> CatalogSample {
    let sample = try CatalogSample(
      #"{"feed":"c","kind":"collection"}"#, #"{"feed":"one","kind":"single"}"#,
      #"{"feed":"v","kind":"view","of":"c","sort":[{"by":"$.n"}]}"#, #"{"feed":"x","kind":"composed","children":[]}"#)
    try sample.commit { for id in 0..<100 { try sample.update("c", #"{"id":\#(id),"n":\#(id * 37 % 100)}"#) } }
    return sample
  }

  @Test func evaluationsOfAViewBetweenOperationsCount() throws {
    let sample = try Self.sortedView()
    var limits = Limits()
    // Each time: a row of the update, 100 of the view that is evaluated, and 101 that come to be shown.
    limits.maxRequestRows = 300
    sample.catalog.use(limits)
    let provider = try sample.provider("x")
    func show(_ times: Int) throws {
      for time in 0..<times {
        try sample.update("c", #"{"id":1,"n":\#(time)}"#)
        try provider.insertChild("v", at: .end, in: sample.catalog)
        try provider.removeChild(at: 0, in: sample.catalog)
      }
    }
    try sample.commit { try show(1) }
    let error = #expect(throws: FeedError.self) { try sample.commit { try show(2) } }
    #expect(error.map { "\($0)" }?.contains("maxRequestRows") == true, "\(String(describing: error))")
    sample.catalog.commit.rules = 2
    try sample.commit { try show(3) }
  }

  @Test func evaluationOfAViewBetweenOperationsStops() throws {
    let sample = try Self.sortedView()
    let (provider, pace) = (try sample.provider("x"), sample.catalog.commit.pace)
    var stops = 0
    var stopsOfReads = 0
    pace.begin(units: 10) {
      stops += 1
      // Others read meanwhile.
      let before = stops
      _ = try? sample.rows("v")
      stopsOfReads += stops - before
      return 10
    }
    try sample.commit {
      try sample.update("c", #"{"id":1,"n":500}"#)
      let before = stops
      try provider.insertChild("v", at: .end, in: sample.catalog)
      // The filter of each row takes two units.
      #expect(stops - before >= 100 * 2 / 10)
    }
    pace.end()
    expectEqual(stopsOfReads, 0)
  }
}
