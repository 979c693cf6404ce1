import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Rows of managed feeds are not there in replay, which must accept and refuse the same requests (Protocol/limits.md, "Rows of managed
/// feeds").
@Suite("Replay of requests beside managed rows") struct ManagedReplayTests {
  private func make() -> TotalsDaemon {
    TotalsDaemon(isDurable: true) {
      ($0.maxFrame, $0.maxSections) = (4096, 8)
      ($0.maxRequestRows, $0.maxRequestSteps) = (100, 1000)
    }
  }

  /// Gives the feed `m` 150 rows in six sections.
  private func setRows(_ daemon: TotalsDaemon) throws {
    try daemon.harness.configure(
      #"{"feeds":[{"feed":"m","kind":"managed","database":"d","query":"SELECT id, s FROM p","section":"s"}]}"#)
    var rows = ManagedRows()
    for id in 0..<150 {
      Array(#"{"id":\#(id),"s":\#(id % 6)}"#.utf8).withUnsafeBytes { rows.append($0, section: "\(id % 6)") }
    }
    daemon.harness.engine.setManaged("m", rows, SourceStatus(.ok, since: "T"), now: daemon.harness.now)
    daemon.harness.turn()
    expectEqual(daemon.harness.engine.catalog.feeds["m"]?.count, 150)
  }

  private func define(_ daemon: TotalsDaemon, _ feed: String, _ content: String) -> String? {
    daemon.limit(daemon.ann, "define", #"{"feed":"\#(feed)",\#(content)}"#)
  }

  private func expectSameAfterReplay(_ daemon: TotalsDaemon, in other: TotalsDaemon? = nil) throws {
    let again = other ?? make()
    for batch in daemon.harness.stored { try again.harness.engine.replay(batch) }
    let (catalog, replayed) = (daemon.harness.engine.catalog, again.harness.engine.catalog)
    expectEqual(replayed.revision, catalog.revision)
    expectEqual(replayed.feeds.mapValues(\.definition), catalog.feeds.mapValues(\.definition))
    for (name, feed) in catalog.feeds where !catalog.containsManagedRows(feed) {
      expectEqual(replayed.feeds[name]?.count, feed.count, "\(name)")
      expectEqual(replayed.feeds[name]?.revision, feed.revision, "\(name)")
    }
  }

  @Test("sections of managed feeds do not count")
  func sections() throws {
    let daemon = make()
    try setRows(daemon)
    let bins = (0..<5).map { #"{"name":"b\#($0)"}"# }.joined(separator: ",")
    expectEqual(define(daemon, "k", #""kind":"collection","bins":[\#(bins)]"#), nil)
    expectEqual(daemon.define(daemon.ann, "p", children: ["m", "k"]), nil)
    expectEqual(daemon.define(daemon.ann, "x", children: ["k"]), nil)
    expectEqual(daemon.limit(daemon.ann, "insertChild", #"{"feed":"x","child":"m"}"#), nil)
    expectEqual(define(daemon, "s", #""kind":"segmented","children":["x","k"],"current":-1"#), nil)
    expectEqual(daemon.define(daemon.ann, "y", children: ["s"]), nil)
    expectEqual(daemon.limit(daemon.ann, "activate", #"{"feed":"s","child":"x"}"#), nil)
    expectEqual(daemon.limit(daemon.ann, "activate", #"{"feed":"s","child":"k"}"#), nil)
    // Sections by value that come while a feed above shows the managed ones; those that are stored count.
    expectEqual(define(daemon, "d", #""kind":"collection","section":"$.d""#), nil)
    expectEqual(daemon.define(daemon.ann, "e", children: ["m", "d"]), nil)
    func update(_ ids: Range<Int>) -> String? {
      let elements = ids.map { #"{"id":\#($0),"d":\#($0)}"# }.joined(separator: ",")
      return daemon.limit(daemon.ann, "update", #"{"feed":"d","elements":[\#(elements)]}"#)
    }
    expectEqual(update(0..<3), nil)
    expectEqual(daemon.limit(daemon.ann, "insertChild", #"{"feed":"e","child":"k"}"#), nil)
    expectEqual(update(3..<4), "maxSections")
    try expectSameAfterReplay(daemon)
  }

  @Test("a feed that no longer shows managed rows tells once that nothing is selected")
  func selection() throws {
    let daemon = make()
    try setRows(daemon)
    expectEqual(daemon.define(daemon.ann, "a"), nil)
    expectEqual(daemon.limit(daemon.ann, "insert", #"{"feed":"a","element":1}"#), nil)
    expectEqual(daemon.define(daemon.ann, "p", children: ["m", "a"]), nil)
    expectEqual(daemon.limit(daemon.ann, "select", #"{"feed":"p","at":[6,0]}"#), nil)
    _ = daemon.harness.ask(daemon.bob, "watch", #"{"feed":"p","initial":false}"#)
    expectEqual(daemon.limit(daemon.ann, "removeChild", #"{"feed":"p","child":"m"}"#), nil)
    let told = daemon.harness.take(daemon.bob).compactMap(\.json)
    expectEqual(told.map { $0["method"]?.string }, ["delta", "selection"])
    expectEqual(told.last?["params"]?["selected"]?.text, "[]")
  }

  @Test("rows of managed feeds count neither as rows nor with the steps of filters, others beside them do")
  func rowsAndSteps() throws {
    let daemon = make()
    try setRows(daemon)
    let filter = #""filter":"count(@..*) > 0""#
    expectEqual(define(daemon, "v", #""kind":"view","of":"m",\#(filter)"#), nil)
    expectEqual(define(daemon, "t", #""kind":"slots","contents":{"M":"m"},"pattern":["M"]"#), nil)
    let other = #""kind":"slots","contents":{"M":"m"},"pattern":["M","M"],"replace":true"#
    expectEqual(define(daemon, "t", other), nil)
    expectEqual(daemon.define(daemon.ann, "p", children: []), nil)
    expectEqual(daemon.limit(daemon.ann, "insertChild", #"{"feed":"p","child":"m"}"#), nil)

    expectEqual(daemon.define(daemon.ann, "a"), nil)
    for _ in 0..<2 {
      let elements = (0..<60).map { #"{"x":\#($0)}"# }.joined(separator: ",")
      expectEqual(daemon.limit(daemon.ann, "insert", #"{"feed":"a","elements":[\#(elements)]}"#), nil)
    }
    expectEqual(daemon.define(daemon.ann, "both", children: ["a", "m"]), nil)
    expectEqual(define(daemon, "w", #""kind":"view","of":"both","limit":3"#), "maxRequestRows")
    expectEqual(define(daemon, "few", #""kind":"view","of":"m","limit":3"#), nil)
    expectEqual(define(daemon, "w", #""kind":"view","of":"few","limit":3"#), nil)
    expectEqual(daemon.limit(daemon.ann, "insertChild", #"{"feed":"p","child":"a"}"#), "maxRequestRows")
    try expectSameAfterReplay(daemon)
  }

  @Test("an operation that only managed rows make a change lets later ones read no views again")
  func viewsAfterChanges() throws {
    let daemon = make()
    try setRows(daemon)
    expectEqual(daemon.define(daemon.ann, "a"), nil)
    let elements = (0..<60).map { #"{"x":\#($0)}"# }.joined(separator: ",")
    expectEqual(daemon.limit(daemon.ann, "insert", #"{"feed":"a","elements":[\#(elements)]}"#), nil)
    expectEqual(define(daemon, "v", #""kind":"view","of":"a","filter":"@.x""#), nil)
    expectEqual(define(daemon, "s", #""kind":"segmented","children":["m"]"#), nil)
    for feed in ["p", "q"] { expectEqual(daemon.define(daemon.ann, feed, children: []), nil) }
    func transaction(_ first: String, _ feed: String) -> String? {
      let insertion = #"{"method":"insertChild","params":{"feed":"\#(feed)","child":"v"}}"#
      return daemon.limit(daemon.ann, "transaction", #"{"ops":[\#(first),\#(insertion)]}"#)
    }
    expectEqual(transaction(#"{"method":"activate","params":{"feed":"s","child":-1}}"#, "p"), nil)
    expectEqual(transaction(#"{"method":"insert","params":{"feed":"a","element":1}}"#, "q"), "maxRequestRows")
    try expectSameAfterReplay(daemon)
  }

  @Test("a transaction whose lists of managed rows fit in no frame has their counts")
  func longAnswers() throws {
    let daemon = make()
    try setRows(daemon)
    expectEqual(daemon.define(daemon.ann, "a"), nil)
    expectEqual(define(daemon, "s", #""kind":"segmented","children":["m","a"]"#), nil)
    func results(_ count: Int) -> [Value]? {
      let ops = (0..<count).map { place in
        #"{"method":"activate","params":{"feed":"s","child":"\#(place % 2 == 0 ? "a" : "m")"}}"#
      }
      let insertion = #"{"method":"insert","params":{"feed":"a","element":1}}"#
      let answer = daemon.harness.ask(
        daemon.ann, "transaction", #"{"ops":[\#((ops + [insertion]).joined(separator: ","))]}"#)
      return answer.first?.json?["result"]?["results"]?.items
    }
    let short = results(2)
    expectEqual(short?[1]["added"]?.items.count, 150)
    expectEqual(short?[1]["counts"], nil)
    let long = results(9)
    expectEqual(long?.count, 10)
    expectEqual(long?[7]["added"], nil)
    expectEqual(long?[7]["counts"]?["added"]?.int, 150)
    expectEqual(long?[7]["counts"]?["sections"]?["added"]?.int, 6)
    expectEqual(long?[9]["added"]?.items.count, 1)
    try expectSameAfterReplay(daemon)
  }

  // MARK: Feeds that lose managed rows

  private let sort = #""sort":[{"by":"$"}]"#

  /// A managed feed of six rows, an array `a` of five, and a view of an array `b`, where views may keep ten rows.
  private func beginViews(_ make: () -> TotalsDaemon, rows: Int) throws -> TotalsDaemon {
    let daemon = make()
    try daemon.harness.configure(
      #"{"feeds":[{"feed":"m","kind":"managed","database":"d","query":"SELECT id FROM p"}]}"#)
    daemon.setManaged("m", 6)
    for (feed, count) in [("a", 5), ("b", rows)] {
      expectEqual(daemon.define(daemon.ann, feed), nil)
      let elements = (0..<count).map(String.init).joined(separator: ",")
      expectEqual(daemon.limit(daemon.ann, "insert", #"{"feed":"\#(feed)","elements":[\#(elements)]}"#), nil)
    }
    expectEqual(define(daemon, "w", #""kind":"view","of":"b",\#(sort)"#), nil)
    return daemon
  }

  @Test(
    "what views keep of managed rows makes no room for other rows, and takes none",
    arguments: [(8, "maxTotalViewRows"), (4, nil)] as [(Int, String?)])
  func viewsThatLoseManagedRows(rows: Int, refusal: String?) throws {
    func make() -> TotalsDaemon { TotalsDaemon(isDurable: true) { $0.maxTotalViewRows = 10 } }
    // The view itself gets another source.
    var daemon = try beginViews(make, rows: rows)
    expectEqual(define(daemon, "v", #""kind":"view","of":"m",\#(sort)"#), nil)
    expectEqual(define(daemon, "v", #""kind":"view","of":"a",\#(sort),"replace":true"#), refusal)
    try expectSameAfterReplay(daemon, in: make())
    // A composed feed, a window or a slots feed below it does.
    for (kind, before, after) in [
      ("composed", #""children":["m"]"#, #""children":["a"]"#),
      ("view", #""of":"m","limit":9"#, #""of":"a","limit":9"#),
      ("slots", #""contents":{"M":"m"},"pattern":["M"]"#, #""contents":{"M":"a"},"pattern":["M"]"#),
    ] {
      daemon = try beginViews(make, rows: rows)
      expectEqual(define(daemon, "c", #""kind":"\#(kind)",\#(before)"#), nil)
      expectEqual(define(daemon, "v", #""kind":"view","of":"c",\#(sort)"#), nil)
      let answer = define(daemon, "c", #""kind":"\#(kind)",\#(after),"replace":true"#)
      if kind != "slots" { expectEqual(answer, refusal, "\(kind)") }
      try expectSameAfterReplay(daemon, in: make())
    }
  }

  @Test("managed rows that come to be shown let no views be read again")
  func viewsThatAreNoLongerShown() throws {
    func make() -> TotalsDaemon { TotalsDaemon(isDurable: true) { $0.maxRequestRows = 20 } }
    let daemon = try beginViews(make, rows: 15)
    expectEqual(define(daemon, "s", #""kind":"segmented","children":["w","m"]"#), nil)
    let elements = (0..<15).map(String.init).joined(separator: ",")
    expectEqual(daemon.limit(daemon.ann, "insert", #"{"feed":"b","elements":[\#(elements)]}"#), nil)
    let ops =
      #"{"method":"insert","params":{"feed":"b","element":1}},{"method":"activate","params":{"feed":"s","child":"m"}}"#
    expectEqual(daemon.limit(daemon.ann, "transaction", #"{"ops":[\#(ops)]}"#), nil)
    try expectSameAfterReplay(daemon, in: make())
  }

  @Test("filters above a feed that loses or gets managed rows count over the other rows that it comes to show")
  func stepsAboveFeedsWithManagedRows() throws {
    func make() -> TotalsDaemon {
      TotalsDaemon(isDurable: true) { ($0.maxRequestRows, $0.maxRequestSteps) = (1000, 200) }
    }
    let daemon = try beginViews(make, rows: 0)
    let elements = (0..<300).map { #"{"x":\#($0)}"# }.joined(separator: ",")
    expectEqual(daemon.limit(daemon.ann, "insert", #"{"feed":"b","elements":[\#(elements)]}"#), nil)
    let filter = #""filter":"count(@..*) > 0""#
    expectEqual(define(daemon, "f", #""kind":"view","of":"m","limit":1000"#), nil)
    expectEqual(define(daemon, "above", #""kind":"view","of":"f",\#(filter)"#), nil)
    expectEqual(define(daemon, "f", #""kind":"view","of":"b","limit":1000,"replace":true"#), "maxRequestSteps")
    expectEqual(define(daemon, "s", #""kind":"segmented","children":["a"]"#), nil)
    expectEqual(define(daemon, "t", #""kind":"view","of":"s",\#(filter)"#), nil)
    let other = #""kind":"segmented","children":["a","b","m"],"current":1,"replace":true"#
    expectEqual(define(daemon, "s", other), "maxRequestSteps")
    try expectSameAfterReplay(daemon, in: make())
  }

  @Test("a request lists managed rows a bounded number of times")
  func repeatedLists() throws {
    func make() -> TotalsDaemon { TotalsDaemon(isDurable: true) }
    let daemon = try beginViews(make, rows: 0)
    expectEqual(define(daemon, "s", #""kind":"segmented","children":["a","m"]"#), nil)
    func activate(_ count: Int) -> String? {
      let ops = (0..<count).map { #"{"method":"activate","params":{"feed":"s","child":\#(($0 + 1) % 2)}}"# }
      return daemon.limit(daemon.ann, "transaction", #"{"ops":[\#(ops.joined(separator: ","))]}"#)
    }
    expectEqual(activate(1900), nil)
    expectEqual(activate(2100), "maxRequestRows")
    try expectSameAfterReplay(daemon, in: make())
  }
}
