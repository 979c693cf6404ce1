import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Limits on the rows that the views of one user keep, and those of all users together.
@Suite("Totals of views") struct ViewTotalsTests {
  private func view(_ daemon: TotalsDaemon, _ client: ConnectionID, _ name: String, of source: String, _ more: String)
    -> String?
  {
    daemon.limit(client, "define", #"{"feed":"\#(name)","kind":"view","of":"\#(source)"\#(more)}"#)
  }

  private func viewRows(_ daemon: TotalsDaemon) -> [Int] {
    let accounts = daemon.harness.engine.catalog.accounts
    return [accounts.usage(of: 7)?.viewRows ?? 0, accounts.usage(of: 8)?.viewRows ?? 0, accounts.total.viewRows]
  }

  private let sort = #","sort":[{"by":"$"}]"#

  @Test("views with a filter or a sort count the rows of their sources for the user that defined them")
  func rowsOfViews() {
    let daemon = TotalsDaemon {
      $0.maxViewRowsPerUser = 6
      $0.maxTotalViewRows = 12
    }
    expectEqual(daemon.define(daemon.ann, "a"), nil)
    expectEqual(daemon.limit(daemon.ann, "insert", #"{"feed":"a","elements":[1,2,3]}"#), nil)
    expectEqual(view(daemon, daemon.ann, "v", of: "a", sort), nil)
    expectEqual(view(daemon, daemon.ann, "w", of: "a", #","filter":"@ > 9","limit":1"#), nil)
    expectEqual(viewRows(daemon), [6, 0, 6], "rows that are not shown count too")
    expectEqual(view(daemon, daemon.ann, "x", of: "a", sort), "maxViewRowsPerUser")
    expectEqual(view(daemon, daemon.ann, "x", of: "a", #","limit":1"#), nil, "a window alone keeps no rows")
    let other = #"{"feed":"v","kind":"view","of":"a","replace":true,"sort":[{"by":"$","order":"descending"}]}"#
    expectEqual(daemon.limit(daemon.ann, "define", other), nil, "another sort takes no more room")
    // The source cannot grow, whoever pushes to it. Other changes are possible.
    expectEqual(daemon.limit(daemon.bob, "insert", #"{"feed":"a","element":4}"#), "maxViewRowsPerUser")
    expectEqual(daemon.limit(daemon.bob, "replace", #"{"feed":"a","element":4,"at":0}"#), nil)
    expectEqual(daemon.limit(daemon.bob, "move", #"{"feed":"a","from":0,"to":2}"#), nil)
    expectEqual(daemon.limit(daemon.ann, "remove", #"{"feed":"a","at":0}"#), nil)
    expectEqual(viewRows(daemon), [4, 0, 4])
    // Views of others do not count for the user of the feed, until all views have too many rows.
    expectEqual(view(daemon, daemon.bob, "y", of: "a", sort), nil)
    expectEqual(view(daemon, daemon.bob, "z", of: "a", sort), nil)
    expectEqual(view(daemon, daemon.bob, "zz", of: "a", sort), nil)
    expectEqual(viewRows(daemon), [4, 6, 10])
    expectEqual(daemon.limit(daemon.ann, "insert", #"{"feed":"a","element":5}"#), "maxTotalViewRows")
    expectEqual(daemon.limit(daemon.bob, "undefine", #"{"feed":"zz"}"#), nil)
    expectEqual(daemon.limit(daemon.ann, "insert", #"{"feed":"a","element":5}"#), nil)
    expectEqual(viewRows(daemon), [6, 6, 12])
    let failing =
      #"{"ops":[{"method":"undefine","params":{"feed":"y"}},{"method":"undefine","params":{"feed":"none"}}]}"#
    expectEqual(daemon.harness.ask(daemon.bob, "transaction", failing).first?.json?.errorCode, -32000)
    expectEqual(viewRows(daemon), [6, 6, 12])
    for feed in ["v", "w", "x", "y", "z"] {
      expectEqual(daemon.limit(daemon.bob, "undefine", #"{"feed":"\#(feed)"}"#), nil)
    }
    expectEqual(viewRows(daemon), [0, 0, 0])
  }

  @Test("rows that come to be shown below a view count, also without an insertion")
  func rowsThatComeToBeShown() {
    let daemon = TotalsDaemon { $0.maxViewRowsPerUser = 6 }
    func ask(_ method: String, _ params: String) -> String? { daemon.limit(daemon.ann, method, params) }
    for feed in ["a", "b"] { expectEqual(daemon.define(daemon.ann, feed), nil) }
    expectEqual(ask("insert", #"{"feed":"a","elements":[1,2,3]}"#), nil)
    expectEqual(ask("insert", #"{"feed":"b","elements":[4,5]}"#), nil)
    // A view over a view: an update lets its source show the row.
    expectEqual(view(daemon, daemon.ann, "v", of: "a", #","filter":"@ > 8""#), nil)
    expectEqual(view(daemon, daemon.ann, "w", of: "v", sort), nil)
    expectEqual(viewRows(daemon), [3, 0, 3])
    for row in 0..<3 { expectEqual(ask("replace", #"{"feed":"a","element":9,"at":\#(row)}"#), nil) }
    expectEqual(viewRows(daemon), [6, 0, 6])
    expectEqual(view(daemon, daemon.ann, "y", of: "w", sort), "maxViewRowsPerUser")
    expectEqual(ask("undefine", #"{"feed":"w"}"#), nil)
    // A composed feed gets another child.
    expectEqual(daemon.define(daemon.ann, "c", children: ["b"]), nil)
    expectEqual(view(daemon, daemon.ann, "w", of: "c", sort), nil)
    expectEqual(viewRows(daemon), [5, 0, 5])
    expectEqual(ask("insertChild", #"{"feed":"c","child":"a"}"#), "maxViewRowsPerUser")
    expectEqual(
      ask("define", #"{"feed":"c","kind":"composed","children":["b","a"],"replace":true}"#), "maxViewRowsPerUser")
    expectEqual(ask("insert", #"{"feed":"b","element":6}"#), nil)
    expectEqual(ask("insert", #"{"feed":"b","element":7}"#), "maxViewRowsPerUser")
    expectEqual(viewRows(daemon), [6, 0, 6])
  }

  @Test("definitions are refused for the views of the list of feeds")
  func rowsOfViewsOfTheList() {
    let daemon = TotalsDaemon { $0.maxTotalViewRows = 3 }
    for feed in ["a", "b"] { expectEqual(daemon.define(daemon.ann, feed), nil) }
    expectEqual(view(daemon, daemon.ann, "v", of: "$feeds", sort), nil)
    expectEqual(viewRows(daemon), [3, 0, 3])
    expectEqual(daemon.define(daemon.bob, "c"), "maxTotalViewRows")
    expectEqual(daemon.limit(daemon.ann, "undefine", #"{"feed":"a"}"#), nil)
    expectEqual(daemon.define(daemon.bob, "c"), nil)
  }

  @Test("replay accepts the same views, although rows of managed feeds are not there")
  func rowsOfViewsBesideManagedRows() throws {
    func make() -> TotalsDaemon { TotalsDaemon(isDurable: true) { $0.maxTotalViewRows = 4 } }
    let daemon = make()
    try daemon.harness.configure(
      #"{"feeds":[{"feed":"m","kind":"managed","database":"d","query":"SELECT id FROM p"}]}"#)
    daemon.setManaged("m", 5)
    expectEqual(daemon.define(daemon.ann, "a"), nil)
    expectEqual(view(daemon, daemon.ann, "v", of: "m", sort), nil)
    expectEqual(view(daemon, daemon.ann, "w", of: "a", sort), nil)
    expectEqual(viewRows(daemon), [5, 0, 5])
    expectEqual(daemon.limit(daemon.ann, "insert", #"{"feed":"a","elements":[1,2]}"#), nil)
    expectEqual(view(daemon, daemon.ann, "x", of: "a", sort), nil)
    expectEqual(view(daemon, daemon.ann, "y", of: "a", sort), "maxTotalViewRows")
    expectEqual(daemon.limit(daemon.ann, "insert", #"{"feed":"a","element":3}"#), "maxTotalViewRows")
    let again = make()
    for batch in daemon.harness.stored { try again.harness.engine.replay(batch) }
    expectEqual(viewRows(again), [4, 0, 4])
    expectEqual(again.harness.engine.catalog.feeds.keys.sorted(), daemon.harness.engine.catalog.feeds.keys.sorted())
  }

  private func transaction(_ daemon: TotalsDaemon, _ client: ConnectionID, _ ops: [(String, String)]) -> String? {
    let list = ops.map { #"{"method":"\#($0)","params":\#($1)}"# }.joined(separator: ",")
    return daemon.limit(client, "transaction", #"{"ops":[\#(list)]}"#)
  }

  @Test("the operations of a transaction count together")
  func rowsOfTransactions() {
    let daemon = TotalsDaemon {
      $0.maxViewRowsPerUser = 6
      $0.maxTotalViewRows = 9
    }
    func ask(_ ops: [(String, String)]) -> String? { transaction(daemon, daemon.ann, ops) }
    let insert = ("insert", #"{"feed":"a","elements":[1,2]}"#)
    let remove = ("remove", #"{"feed":"a","at":[0,1]}"#)
    for feed in ["a", "b"] { expectEqual(daemon.define(daemon.ann, feed), nil) }
    expectEqual(view(daemon, daemon.ann, "v", of: "a", sort), nil)
    expectEqual(ask([insert, insert, insert, insert]), "maxViewRowsPerUser")
    expectEqual(viewRows(daemon), [0, 0, 0])
    expectEqual(ask([insert, remove, insert, remove, insert, insert]), nil, "removed rows make room in their feed")
    expectEqual(viewRows(daemon), [4, 0, 4])
    // Neither by views that are defined together, nor by room that is made twice.
    let define = { (name: String) in
      ("define", #"{"feed":"\#(name)","kind":"view","of":"a","sort":[{"by":"$"}]}"#)
    }
    expectEqual(ask([define("w")]), "maxViewRowsPerUser")
    expectEqual(ask([remove, define("w"), define("x")]), "maxViewRowsPerUser")
    expectEqual(
      ask([remove, remove, ("undefine", #"{"feed":"v"}"#), define("w"), insert, insert, insert, insert]),
      "maxViewRowsPerUser")
    // Views of others count in all.
    expectEqual(view(daemon, daemon.bob, "y", of: "a", sort), nil)
    expectEqual(viewRows(daemon), [4, 4, 8])
    expectEqual(
      ask([("insert", #"{"feed":"b","element":1}"#), ("insert", #"{"feed":"a","element":1}"#)]), "maxTotalViewRows")
  }

  private let none = #""filter":"@.none""#

  private func bins(_ feed: String, _ bins: [String]) -> String {
    #"{"feed":"\#(feed)","kind":"collection","replace":true,"bins":[\#(bins.joined(separator: ","))]}"#
  }

  @Test("rows of new bins count, although bins without rows are deleted")
  func rowsOfRedefinedBins() {
    let daemon = TotalsDaemon { $0.maxTotalViewRows = 6 }
    func ask(_ method: String, _ params: String) -> String? { daemon.limit(daemon.ann, method, params) }
    let empty = (0..<9).map { #"{"name":"e\#($0)",\#(none)}"# }
    expectEqual(ask("define", bins("c", [#"{"name":"x"}"#] + empty)), nil)
    expectEqual(ask("update", #"{"feed":"c","elements":[{"id":1},{"id":2}]}"#), nil)
    expectEqual(view(daemon, daemon.ann, "v", of: "c", sort), nil)
    expectEqual(view(daemon, daemon.ann, "w", of: "c/x", sort), nil)
    expectEqual(viewRows(daemon), [4, 0, 4])
    let revision = daemon.harness.engine.catalog.revision
    expectEqual(ask("define", bins("c", [#"{"name":"x"}"#, #"{"name":"y"}"#, #"{"name":"z"}"#])), "maxTotalViewRows")
    expectEqual(viewRows(daemon), [4, 0, 4])
    expectEqual(daemon.harness.engine.catalog.revision, revision)
    expectEqual(ask("define", bins("c", [#"{"name":"y"}"#, #"{"name":"x"}"#])), nil)
    expectEqual(viewRows(daemon), [6, 0, 6])
  }

  @Test("rows that only change their place are never refused")
  func rowsThatMove() {
    let daemon = TotalsDaemon { $0.maxTotalViewRows = 6 }
    func ask(_ method: String, _ params: String) -> String? { daemon.limit(daemon.ann, method, params) }
    // Bins that change their order are deleted and added with all their rows.
    let x = #"{"name":"x","filter":"@.id < 9"}"#
    let y = #"{"name":"y",\#(none)}"#
    expectEqual(ask("define", bins("c", [x, y])), nil)
    expectEqual(ask("update", #"{"feed":"c","elements":[{"id":1},{"id":2},{"id":3}]}"#), nil)
    expectEqual(view(daemon, daemon.ann, "v", of: "c", sort), nil)
    expectEqual(view(daemon, daemon.ann, "w", of: "c/x", sort), nil)
    expectEqual(viewRows(daemon), [6, 0, 6])
    expectEqual(ask("define", bins("c", [y, x])), nil)
    expectEqual(ask("define", bins("c", [#"{"name":"z",\#(none)}"#, x, y])), nil)
    expectEqual(ask("update", #"{"feed":"c","element":{"id":4}}"#), "maxTotalViewRows")
    for feed in ["w", "v", "c"] { expectEqual(ask("undefine", #"{"feed":"\#(feed)"}"#), nil) }
    // A view over a view, which any change of a row may give a row.
    expectEqual(daemon.define(daemon.ann, "a"), nil)
    expectEqual(ask("insert", #"{"feed":"a","elements":[1,2,3]}"#), nil)
    expectEqual(view(daemon, daemon.ann, "v", of: "a", #","filter":"@ > 0""#), nil)
    expectEqual(view(daemon, daemon.ann, "w", of: "v", sort), nil)
    expectEqual(viewRows(daemon), [6, 0, 6])
    expectEqual(ask("move", #"{"feed":"a","from":0,"to":2}"#), nil)
    expectEqual(ask("replace", #"{"feed":"a","element":4,"at":0}"#), "maxTotalViewRows")
  }

  @Test("another active child counts with the rows that it has more")
  func rowsOfActiveChildren() {
    let daemon = TotalsDaemon { $0.maxTotalViewRows = 3 }
    func ask(_ method: String, _ params: String) -> String? { daemon.limit(daemon.ann, method, params) }
    for (feed, elements) in [("a", "[1,2]"), ("b", "[3,4,5]"), ("d", "[1,2,3,4]")] {
      expectEqual(daemon.define(daemon.ann, feed), nil)
      expectEqual(ask("insert", #"{"feed":"\#(feed)","elements":\#(elements)}"#), nil)
    }
    expectEqual(ask("define", bins("c", (0..<5).map { #"{"name":"e\#($0)",\#(none)}"# })), nil)
    expectEqual(ask("define", #"{"feed":"g","kind":"segmented","children":["a","b","c","d"]}"#), nil)
    expectEqual(view(daemon, daemon.ann, "v", of: "g", sort), nil)
    let steps: [(child: String, limit: String?, rows: Int)] = [
      ("b", nil, 3), ("a", nil, 2), ("d", "maxTotalViewRows", 2), ("c", nil, 0), ("d", "maxTotalViewRows", 0),
      ("b", nil, 3),
    ]
    for (child, limit, rows) in steps {
      expectEqual(ask("activate", #"{"feed":"g","child":"\#(child)"}"#), limit, "\(child)")
      expectEqual(viewRows(daemon), [rows, 0, rows], "\(child)")
    }
  }

  @Test("sections by value that come and go count with their rows")
  func rowsOfSectionsByValue() {
    let daemon = TotalsDaemon { $0.maxTotalViewRows = 4 }
    func ask(_ method: String, _ params: String) -> String? { daemon.limit(daemon.ann, method, params) }
    expectEqual(ask("define", #"{"feed":"c","kind":"collection","section":"$.s"}"#), nil)
    let elements = { (section: Int) in
      (0..<4).map { #"{"id":\#($0),"s":\#(section)}"# }.joined(separator: ",")
    }
    expectEqual(ask("update", #"{"feed":"c","elements":[\#(elements(1))]}"#), nil)
    expectEqual(view(daemon, daemon.ann, "v", of: "c", sort), nil)
    expectEqual(ask("update", #"{"feed":"c","elements":[\#(elements(2))]}"#), nil)
    expectEqual(ask("update", #"{"feed":"c","element":{"id":4,"s":2}}"#), "maxTotalViewRows")
    expectEqual(viewRows(daemon), [4, 0, 4])
  }

  @Test("requests of older rules are replayed without the sum")
  func transactionsOfOlderRules() throws {
    let ops = Array(repeating: #"{"method":"insert","params":{"feed":"a","elements":[1,2]}}"#, count: 4)
    func run(_ maxRows: Int) -> TotalsDaemon {
      let daemon = TotalsDaemon(isDurable: true) { $0.maxTotalViewRows = maxRows }
      expectEqual(daemon.define(daemon.ann, "a"), nil)
      expectEqual(view(daemon, daemon.ann, "v", of: "a", sort), nil)
      return daemon
    }
    let daemon = run(100)
    expectEqual(daemon.limit(daemon.ann, "transaction", #"{"ops":[\#(ops.joined(separator: ","))]}"#), nil)
    for (rules, rows) in [(2, 8), (ExecutionRules.current, 0)] {
      let again = TotalsDaemon(isDurable: true) { $0.maxTotalViewRows = 6 }
      for batch in daemon.harness.stored { try? again.harness.engine.replay(batch, rules: rules) }
      expectEqual(again.harness.engine.catalog.accounts.total.viewRows, rows, "rules \(rules)")
    }
  }

  @Test("rows of a managed feed are refused if views above it would keep too many", arguments: [false, true])
  func rowsOfViewsAboveManagedRows(isDurable: Bool) throws {
    let daemon = TotalsDaemon(isDurable: isDurable) {
      $0.maxViewRowsPerUser = 5
      $0.maxTotalViewRows = 12
    }
    let harness = daemon.harness
    try harness.configure(
      #"{"feeds":[{"feed":"m","kind":"managed","database":"d","query":"SELECT id, v FROM p"},{"feed":"n","kind":"managed","database":"d","query":"SELECT id, v FROM p"}]}"#
    )
    func source(_ feed: String) -> String? {
      let status = harness.ask(daemon.ann, "describe", #"{"feed":"\#(feed)"}"#).first?.json?["result"]?["source"]
      return status?["status"]?.string.map { "\($0) \(status?["error"]?.string ?? "")" }
    }
    func rows(_ feed: String) -> Int? { try? harness.engine.catalog.feed(named: feed).count }
    daemon.setManaged("m", 3)
    expectEqual(daemon.define(daemon.ann, "a"), nil)
    expectEqual(view(daemon, daemon.ann, "v", of: "m", sort), nil)
    expectEqual(view(daemon, daemon.bob, "w", of: "m", #","filter":"@.v > 0""#), nil)
    expectEqual(viewRows(daemon), [3, 3, 6])
    // Feeds of the configuration belong to no user: only the sum counts.
    daemon.setManaged("m", 6)
    expectEqual(viewRows(daemon), [6, 6, 12])
    expectEqual(source("m"), "ok ")
    let refused =
      "error limit maxTotalViewRows (12) exceeded: all views keep 12 rows; undefine views, or remove rows that they show, or start feedd with a larger "
      + "--max-total-view-rows"
    let revision = harness.engine.catalog.feeds["m"]?.revision
    daemon.setManaged("m", 7, value: 1)
    expectEqual(source("m"), refused)
    expect(rows("m") == 6 && viewRows(daemon) == [6, 6, 12])
    expectEqual(harness.engine.catalog.feeds["m"]?.revision, revision)
    // Everything else goes on: other feeds, and rows that take no more room.
    daemon.setManaged("n", 9)
    expect(rows("n") == 9 && source("n") == "ok ")
    expectEqual(daemon.limit(daemon.bob, "insert", #"{"feed":"a","element":1}"#), nil)
    daemon.setManaged("m", 6, value: 2)
    expectEqual(source("m"), "ok ")
    expectEqual(daemon.limit(daemon.bob, "undefine", #"{"feed":"w"}"#), nil)
    daemon.setManaged("m", 8, value: 3)
    expect(source("m") == "ok " && rows("m") == 8)
    expectEqual(viewRows(daemon), [8, 0, 8])
  }
}
