import FeedChange
import TestSupport
import Testing

@testable import FeedModel

/// What many operations of one commit may take together.
struct CommitCostTests {
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
    expect(row?.hasPrefix(#"{"feed":"s","#) == true && row?.contains(":39") == true, "\(row ?? "")")
  }

  @Test func feedsThatNobodyWatchesRecordNoMoreThanAllHistoriesKeep() throws {
    let sample = try CatalogSample(#"{"feed":"c","kind":"collection"}"#)
    try sample.commit {
      for name in ["x", "y", "z"] { try sample.define(#"{"feed":"\#(name)","kind":"composed","children":["c"]}"#) }
    }
    try sample.watch(sample.feed("z"))
    sample.catalog.commit.publisher.mostLongEntries = 2 * Feed.fewEntries
    func resumes(after elements: Int) throws -> [Bool] {
      let revision = sample.catalog.revision
      try sample.commit {
        for number in 0..<elements { try sample.update("c", #"{"id":\#(number),"t":\#(revision)}"#) }
      }
      let feeds = try ["c", "x", "y", "z"].map(sample.feed)
      expect(feeds.allSatisfy { $0.revision == sample.catalog.revision })
      return feeds.map { $0.history?.reaches(revision) ?? false }
    }
    // The second feed reaches the limit. The last one is watched.
    try expectEqual(resumes(after: Feed.fewEntries + 1), [true, true, false, true])
    try expectEqual(sample.rows("y"), sample.rows("c"))
    try expectEqual(resumes(after: Feed.fewEntries), [true, true, true, true])
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
    try expectEqual(sample.rows("$feeds")[0].last?.hasPrefix(#"{"feed":"s","kind":"array""#), true)
    try sample.rollBack { try sample.define(#"{"feed":"t","kind":"composed","children":["s"]}"#) }
    try expectEqual(sample.rows("$feeds")[0].count, 4)
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
    expectEqual(error.map { "\($0)" }?.contains("maxRequestRows"), true, "\(String(describing: error))")
    sample.catalog.commit.rules = 2
    try sample.commit { try activate(4) }
  }

  @Test func feedsAboveOfEachFurtherOperationCount() throws {
    let sample = try CatalogSample(
      #"{"feed":"e","kind":"collection","section":"$.s"}"#, #"{"feed":"x","kind":"composed","children":["e"]}"#,
      #"{"feed":"p","kind":"composed","children":[]}"#)
    try sample.commit {
      for number in 0..<30 { try sample.define(#"{"feed":"y\#(number)","kind":"composed","children":["x","p"]}"#) }
    }
    var limits = Limits()
    limits.maxRequestRows = 100
    sample.catalog.use(limits)
    let (provider, commit) = (try sample.provider("p"), sample.catalog.commit)
    func restructure(_ time: Int) throws {
      if time % 2 == 1 { return try provider.removeChild(at: 0, in: sample.catalog) }
      try provider.insertChild("e", at: .end, in: sample.catalog)
    }
    func redefine(_ time: Int) throws {
      let children = time % 2 == 1 ? "" : #""e""#
      try sample.define(#"{"feed":"p","kind":"composed","children":[\#(children)]}"#, replace: true)
    }
    func divide(_ time: Int) throws {
      try sample.update("e", #"{"id":1,"s":\#(time)}"#)
      try commit.useStepsOfViews()
    }
    // Sections come last: the others show no rows.
    for operation in [restructure, redefine, divide] {
      let error = #expect(throws: FeedError.self) { try sample.commit { for time in 0..<5 { try operation(time) } } }
      expectEqual(error.map { "\($0)" }?.contains("maxRequestRows"), true, "\(String(describing: error))")
      try sample.commit { for time in 0..<4 { try operation(time) } }
      commit.rules = 2
      try sample.commit { for time in 0..<6 { try operation(time) } }
      commit.rules = ExecutionRules.current
    }
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
    expectEqual(error.map { "\($0)" }?.contains("maxRequestRows"), true, "\(String(describing: error))")
    sample.catalog.commit.rules = 2
    try sample.commit { try show(2) }
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
      // Each row takes two units, and more than ten make a stop.
      expect(stops - before >= 100 * 2 / 12)
    }
    pace.end()
    expectEqual(stopsOfReads, 0)
  }

  // MARK: Changes of feeds above

  /// A list `a` with 20 feeds over it, half of them over others, and `two`, which shows `a` twice.
  private static func feedsAbove(_ list: String) throws -> CatalogSample {
    let sample = try CatalogSample()
    try sample.commit {
      try sample.define(list)
      try sample.define(#"{"feed":"b","kind":"array"}"#)
      for number in 0..<10 {
        try sample.define(#"{"feed":"y\#(number)","kind":"composed","children":["b","a"]}"#)
        try sample.define(#"{"feed":"z\#(number)","kind":"composed","children":["b","y\#(number)"]}"#)
      }
      try sample.define(#"{"feed":"two","kind":"composed","children":["a","y0","b"]}"#)
      try sample.define(#"{"feed":"v","kind":"view","of":"z1","sort":[{"by":"$.n","order":"descending"}]}"#)
    }
    for feed in sample.catalog.feeds.values { sample.watch(feed) }
    return sample
  }

  private static func elements(_ count: Int) -> String {
    "[" + (0..<count).map { #"{"id":\#($0),"n":\#($0 % 7)}"# }.joined(separator: ",") + "]"
  }

  /// The changes lead from the rows before to those after, for all feeds.
  private func check(_ sample: CatalogSample, _ operations: () throws -> Void) throws {
    var before: [String: [[String]]] = [:]
    for name in sample.catalog.feeds.keys { before[name] = try sample.rows(name) }
    let derived = sample.catalog.commit.publisher.derivedEntries
    sample.catalog.commit.pace.begin(units: 1) { 1 }
    try sample.commit(operations)
    sample.catalog.commit.pace.end()
    let changed = sample.changes
    for (name, rows) in before {
      let after = try sample.rows(name)
      guard let change = changed[name] else {
        expectEqual(rows, after, "\(name)")
        continue
      }
      var copy = rows
      let added = change.added.map { after[Int($0.section)][Int($0.row)] }
      try TestSupport.apply(change, to: &copy, elements: added)
      for path in change.updated { copy[Int(path.section)][Int(path.row)] = after[Int(path.section)][Int(path.row)] }
      expectEqual(copy, after, "\(name)")
    }
    // Those of `two` and the view.
    let entries = sample.catalog.commit.publisher.derivedEntries - derived
    let own = ["two", "v"].reduce(0) { $0 + (changed[$1]?.size ?? 0) }
    expect(entries <= own, "\(entries) entries")
  }

  @Test func composedFeedsShareLongChanges() throws {
    let sample = try Self.feedsAbove(#"{"feed":"a","kind":"array"}"#)
    func set(_ count: Int) throws {
      guard let list = try sample.feed("a").kind as? ListKind else { throw FeedError.unknownFeed("a") }
      try withView(Self.elements(count)) { try list.set($0, in: sample.catalog.commit) }
    }
    try check(sample) { try set(100) }
    expectEqual(sample.changes["z9"]?.added.first, IndexPath(2, 0))
    try check(sample) { try set(40) }
  }

  @Test func composedFeedsShareChangesOfSections() throws {
    let sample = try Self.feedsAbove(#"{"feed":"a","kind":"collection","section":"$.n"}"#)
    func update(_ count: Int) throws {
      let collection = try sample.catalog.collection(named: "a")
      try withView(Self.elements(count)) {
        try collection.update(elements: $0, in: sample.catalog.commit)
      }
    }
    try check(sample) { try update(3) }
    expectEqual(sample.changes["z9"]?.sectionsAdded.map(\.at), [2, 3, 4])
    try check(sample) { try update(100) }
    try check(sample) { for id in 0..<100 where id % 7 < 4 { try sample.delete("a", "\(id)") } }
    expectEqual(sample.changes["z9"]?.sectionsDeleted, [2, 3, 4, 5])
  }

  @Test func feedsThatShowAListTwiceCount() throws {
    let sample = try Self.feedsAbove(#"{"feed":"a","kind":"array"}"#)
    let list = try sample.feed("a")
    // `two` shows it through two children. So do `two` and the feeds `z0` to `z9` with `b`. The view is counted elsewhere.
    expectEqual(sample.catalog.graph.copyCount(of: list), 2)
    try expectEqual(sample.catalog.graph.copyCount(of: sample.feed("b")), 22)
    try sample.commit { try sample.provider("two").removeChild(at: 0, in: sample.catalog) }
    expectEqual(sample.catalog.graph.copyCount(of: list), 0)
  }

  @Test func binsWithoutRowsHaveNoSnapshots() throws {
    let bins = (0..<256).map { #"{"name":"b\#($0)","filter":"@.n == \#($0)"}"# }.joined(separator: ",")
    let sample = try CatalogSample(#"{"feed":"a","kind":"collection","bins":[\#(bins)]}"#)
    try sample.commit { for n in [3, 200] { try sample.update("a", #"{"id":\#(n),"n":\#(n)}"#) } }
    let feed = try sample.feed("a")
    // The last bin has one, which counts those before it.
    expectEqual(feed.kind.makeSnapshots().map(\.counts.count), [4, 197, 55])
    let snapshot = feed.makeSnapshot()
    var places: [IndexPath] = []
    repeat { places.append(snapshot.place) } while snapshot.next(max: 10, { _ in }) > 0
    expectEqual(places, [IndexPath(3, 0), IndexPath(200, 0), IndexPath(0, 0)])
  }

  @Test func changesKeepBoundedMemory() {
    var table = ChangeTable()
    let rows = (0..<10_000).map { IndexPath(0, $0) }
    for _ in 0..<2 {
      for feed in 0..<200 {
        let slot = table.open(feed)
        table[slot].pointee.change.added.append(contentsOf: rows)
      }
      table.close()
      table.checkInvariants()
      expect(table.kept >= rows.count && table.kept <= ChangeTable.mostKept)
    }
  }

  // MARK: Redefinitions

  private static let composed = #"{"feed":"x","kind":"composed","children":["c","d","e"]}"#

  @Test func childrenThatChangeTheirOrderCountForAllFeedsAbove() throws {
    let sample = try CatalogSample(
      #"{"feed":"c","kind":"collection"}"#, #"{"feed":"d","kind":"array"}"#, #"{"feed":"e","kind":"array"}"#,
      Self.composed)
    try sample.commit {
      for number in 0..<9 { try sample.define(#"{"feed":"y\#(number)","kind":"composed","children":["x"]}"#) }
      for id in 0..<50 { try sample.update("c", #"{"id":\#(id)}"#) }
    }
    var limits = Limits()
    limits.maxRequestRows = 10 * 51 - 1
    sample.catalog.use(limits)
    let other = Self.composed.replacingChildren(#""d","e","c""#)
    let error = #expect(throws: FeedError.self) { try sample.commit { try sample.define(other, replace: true) } }
    expectEqual(error.map { "\($0)" }?.contains("maxRequestRows"), true, "\(String(describing: error))")
    // A short child moves.
    try sample.commit { try sample.define(Self.composed.replacingChildren(#""c","e","d""#), replace: true) }
    sample.catalog.commit.rules = 2
    try sample.commit { try sample.define(other, replace: true) }
  }

  @Test func rowsOfARedefinitionCountForTheViewsAbove() throws {
    let sample = try CatalogSample(#"{"feed":"c","kind":"collection"}"#)
    try sample.commit {
      for id in 0..<50 { try sample.update("c", #"{"id":\#(id)}"#) }
    }
    var limits = Limits()
    limits.maxRequestRows = 99
    sample.catalog.use(limits)
    func redefine(_ bins: String) throws {
      try sample.commit { try sample.define(#"{"feed":"c","kind":"collection","bins":[\#(bins)]}"#, replace: true) }
    }
    try redefine(#"{"name":"a"}"#)
    try sample.commit { try sample.define(#"{"feed":"v","kind":"view","of":"c","limit":1}"#) }
    try redefine(#"{"name":"a"},{"name":"b"}"#)
    try sample.commit { try sample.define(#"{"feed":"w","kind":"view","of":"v","limit":1}"#) }
    let error = #expect(throws: FeedError.self) { try redefine(#"{"name":"a"}, {"name":"z"}"#) }
    expectEqual(error.map { "\($0)" }?.contains("maxRequestRows"), true, "\(String(describing: error))")
    sample.catalog.commit.rules = 2
    try redefine(#"{"name":"a"}, {"name":"z"}"#)
  }
}

extension String {
  /// A definition with other children.
  fileprivate func replacingChildren(_ names: String) -> String { String(prefix { $0 != "[" }) + "[\(names)]}" }
}
