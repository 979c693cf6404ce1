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
}
