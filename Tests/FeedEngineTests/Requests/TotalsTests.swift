import FeedModel
import Testing

@testable import FeedEngine
@testable import ReferenceModel

/// Limits on what one user stores, and on what all users store together.
@Suite("Totals") struct TotalsTests {
  private final class Daemon {
    let harness: EngineHarness
    /// Connections of two users.
    let (ann, bob): (ConnectionID, ConnectionID)

    init(isDurable: Bool = false, _ change: (inout Limits) -> Void = { _ in }) {
      var limits = Limits()
      change(&limits)
      harness = EngineHarness(limits: limits, isDurable: isDurable)
      ann = harness.connect(uid: 7)
      bob = harness.connect(uid: 8)
    }

    /// The limit that refuses a request; nil if it succeeds.
    func limit(_ client: ConnectionID, _ method: String, _ params: String) -> String? {
      let answer = harness.ask(client, method, params).first?.json
      if answer?["result"] != nil { return nil }
      #expect(answer?.errorCode == -32007)
      return answer?.errorData?["limit"]?.string ?? answer?.errorData?["reason"]?.string ?? "?"
    }

    func define(_ client: ConnectionID, _ feed: String, children: [String]? = nil) -> String? {
      let content = children.map {
        #""kind":"composed","children":["# + $0.map { "\"\($0)\"" }.joined(separator: ",") + "]"
      }
      return limit(client, "define", #"{"feed":"\#(feed)",\#(content ?? #""kind":"array""#)}"#)
    }

    func usage(of uid: UInt32) -> [Int] { usage(harness.engine.catalog.accounts.usage(of: uid)) }
    var total: [Int] { usage(harness.engine.catalog.accounts.total) }
    private func usage(_ account: Account?) -> [Int] {
      account.map { [$0.feeds, $0.elements, $0.bytes, $0.definitionBytes] } ?? [0, 0, 0, 0]
    }
  }

  @Test("feeds count for the user that defined them")
  func feeds() {
    let daemon = Daemon { $0.maxFeedsPerUser = 2 }
    #expect(daemon.define(daemon.ann, "a") == nil)
    #expect(daemon.define(daemon.ann, "b") == nil)
    #expect(daemon.define(daemon.ann, "b") == nil, "the same definition again is no other feed")
    #expect(daemon.define(daemon.ann, "c") == "maxFeedsPerUser")
    #expect(daemon.define(daemon.bob, "c") == nil)
    #expect(daemon.limit(daemon.bob, "undefine", #"{"feed":"a"}"#) == nil)
    #expect(daemon.define(daemon.ann, "d") == nil)
  }

  @Test("definitions count with the memory of bins and entries")
  func memoryOfDefinitions() {
    let daemon = Daemon()
    let bins = (0..<100).map { #"{"name":"b\#($0)"}"# }.joined(separator: ",")
    let sorted = (0..<100).map { #"{"name":"b\#($0)","sort":[{"by":"$.a"}]}"# }.joined(separator: ",")
    let types = Array(repeating: #""x""#, count: 1000).joined(separator: ",")
    let fixed = (0..<1000).map { #""\#($0)":"y""# }.joined(separator: ",")
    var before = 0
    for (definition, memory) in [
      (#""kind":"array""#, 0), (#""kind":"collection","bins":[\#(bins)]"#, 100 * 2048),
      (#""kind":"collection","bins":[\#(sorted)]"#, 100 * 4096),
      (#""kind":"slots","contents":{"x":"f0"},"pattern":[\#(types)]"#, 1000 * 56),
      (#""kind":"slots","contents":{"x":"f0","y":"f1"},"pattern":["x"],"fixed":{\#(fixed)}"#, 1000 * 208),
    ] {
      #expect(
        daemon.limit(daemon.ann, "define", #"{"feed":"f\#(daemon.usage(of: 7)[0])",\#(definition)}"#) == nil)
      let bytes = daemon.usage(of: 7)[3]
      // What is left out of the definition is stored.
      let longest = memory + 2 * definition.utf8.count + 200
      #expect((memory...longest).contains(bytes - before), "\(definition.prefix(40))")
      before = bytes
    }
  }

  @Test("elements count for the user that defined their feed, whoever pushes them")
  func elements() {
    let daemon = Daemon { $0.maxElementsPerUser = 3 }
    for feed in ["a", "b"] { #expect(daemon.define(daemon.ann, feed) == nil) }
    #expect(daemon.define(daemon.bob, "c") == nil)
    #expect(daemon.limit(daemon.ann, "insert", #"{"feed":"a","elements":[1,2]}"#) == nil)
    #expect(daemon.limit(daemon.bob, "insert", #"{"feed":"b","elements":[3,4]}"#) == "maxElementsPerUser")
    #expect(daemon.usage(of: 7)[1] == 2, "a refused request changed nothing")
    #expect(daemon.limit(daemon.bob, "insert", #"{"feed":"b","elements":[3]}"#) == nil)
    #expect(daemon.limit(daemon.bob, "insert", #"{"feed":"c","elements":[1,2,3]}"#) == nil)
    #expect(
      daemon.limit(daemon.ann, "replace", #"{"feed":"a","elements":[9],"at":0}"#) == nil,
      "a version is not another element")
    #expect(daemon.limit(daemon.ann, "remove", #"{"feed":"a","at":0}"#) == nil)
    #expect(daemon.limit(daemon.ann, "insert", #"{"feed":"a","elements":[5]}"#) == nil)
    #expect(daemon.total[1] == 6)
  }

  @Test("bytes of elements count for the user and for the daemon")
  func bytes() {
    let daemon = Daemon {
      $0.maxBytesPerUser = 4000
      $0.maxTotalBytes = 6000
    }
    func put(_ client: ConnectionID, _ feed: String, _ count: Int) -> String? {
      daemon.limit(client, "insert", #"{"feed":"\#(feed)","element":"\#(String(repeating: "x", count: count))"}"#)
    }
    #expect(daemon.define(daemon.ann, "a") == nil)
    #expect(daemon.define(daemon.bob, "b") == nil)
    #expect(put(daemon.ann, "a", 3000) == nil)
    #expect(put(daemon.ann, "a", 3000) == "maxBytesPerUser")
    #expect(put(daemon.bob, "b", 3000) == "maxTotalBytes")
    #expect(put(daemon.bob, "b", 2000) == nil)
  }

  @Test("all elements of the daemon are limited")
  func allElements() {
    let daemon = Daemon { $0.maxTotalElements = 3 }
    #expect(daemon.define(daemon.ann, "a") == nil)
    #expect(daemon.define(daemon.bob, "b") == nil)
    #expect(daemon.limit(daemon.ann, "insert", #"{"feed":"a","elements":[1,2]}"#) == nil)
    #expect(daemon.limit(daemon.bob, "insert", #"{"feed":"b","elements":[1,2]}"#) == "maxTotalElements")
  }

  @Test("definitions count by their bytes, and children that are inserted count as well")
  func definitions() {
    let daemon = Daemon {
      // Each child counts 116 bytes, and a list of children 128.
      $0.maxDefinitionBytesPerUser = 1100
      $0.maxTotalDefinitionBytes = 2000
    }
    let names = (0..<8).map { "\($0)" + String(repeating: "n", count: 99) }
    for name in names.prefix(4) { #expect(daemon.define(daemon.bob, name) == nil) }
    #expect(daemon.define(daemon.ann, "c", children: Array(names.prefix(3))) == nil)
    #expect(daemon.define(daemon.ann, "d", children: Array(names.prefix(4))) == nil)
    #expect(
      daemon.limit(daemon.ann, "insertChild", #"{"feed":"c","child":"\#(names[3])"}"#) == "maxDefinitionBytesPerUser")
    let before = daemon.usage(of: 7)
    #expect(daemon.limit(daemon.ann, "removeChild", #"{"feed":"c","at":0}"#) == nil)
    #expect(daemon.limit(daemon.ann, "insertChild", #"{"feed":"c","child":"\#(names[3])"}"#) == nil)
    #expect(daemon.usage(of: 7) == before)
    #expect((4..<8).map { daemon.define(daemon.bob, names[$0]) }.contains("maxTotalDefinitionBytes"))
  }

  @Test("a redefined collection needs no room for two copies of its elements")
  func redefined() {
    let daemon = Daemon { $0.maxElementsPerUser = 3 }
    #expect(daemon.limit(daemon.ann, "define", #"{"feed":"k","kind":"collection"}"#) == nil)
    #expect(daemon.limit(daemon.ann, "update", #"{"feed":"k","elements":[{"id":1},{"id":2},{"id":3}]}"#) == nil)
    let redefinition = #"{"feed":"k","kind":"collection","bins":[{"name":"x"}],"replace":true}"#
    #expect(daemon.limit(daemon.bob, "define", redefinition) == nil)
    #expect(daemon.usage(of: 7)[..<2] == [1, 3], "a feed keeps its user")
    #expect(daemon.usage(of: 8) == [0, 0, 0, 0])
    #expect(daemon.limit(daemon.ann, "update", #"{"feed":"k","element":{"id":4}}"#) == "maxElementsPerUser")
  }

  @Test("what a transaction rolls back is charged as before")
  func rolledBack() {
    let daemon = Daemon()
    for feed in ["a", "b"] { #expect(daemon.define(daemon.ann, feed) == nil) }
    #expect(daemon.limit(daemon.ann, "insert", #"{"feed":"a","elements":[1,2]}"#) == nil)
    #expect(daemon.limit(daemon.ann, "define", #"{"feed":"k","kind":"collection"}"#) == nil)
    #expect(daemon.limit(daemon.ann, "update", #"{"feed":"k","elements":[{"id":1}]}"#) == nil)
    let before = [daemon.usage(of: 7), daemon.total]
    let answer = daemon.harness.ask(
      daemon.bob, "transaction",
      #"""
      {"ops":[{"method":"undefine","params":{"feed":"a"}},
      {"method":"define","params":{"feed":"a","kind":"composed","children":["b"]}},
      {"method":"define","params":{"feed":"k","kind":"collection","bins":[{"name":"x"}],"replace":true}},
      {"method":"update","params":{"feed":"k","element":{"id":2}}},
      {"method":"insert","params":{"feed":"b","element":1}},{"method":"undefine","params":{"feed":"nothing"}}]}
      """#)
    #expect(answer.first?.json?.errorCode == -32000)
    #expect([daemon.usage(of: 7), daemon.total] == before)
    #expect(daemon.usage(of: 8) == [0, 0, 0, 0])
  }

  @Test("selected rows of feeds that show others count for the user and for the daemon")
  func selections() {
    let daemon = Daemon {
      $0.maxSelectedPerUser = 3
      $0.maxTotalSelected = 5
    }
    func select(_ feed: String, _ rows: [Int]) -> String? {
      daemon.limit(
        daemon.bob, "select", #"{"feed":"\#(feed)","at":[\#(rows.map { "[0,\($0)]" }.joined(separator: ","))]}"#)
    }
    func selected() -> [Int] {
      let accounts = daemon.harness.engine.catalog.accounts
      return [accounts.usage(of: 7)?.selected ?? 0, accounts.usage(of: 8)?.selected ?? 0, accounts.total.selected]
    }
    #expect(daemon.define(daemon.ann, "a") == nil)
    #expect(daemon.limit(daemon.ann, "insert", #"{"feed":"a","elements":[1,2,3,4]}"#) == nil)
    #expect(daemon.define(daemon.ann, "v", children: ["a"]) == nil)
    #expect(daemon.define(daemon.ann, "w", children: ["a"]) == nil)
    #expect(daemon.define(daemon.bob, "x", children: ["a"]) == nil)
    #expect(select("a", [0, 1, 2, 3]) == nil, "rows of the feed itself are bounded by what it stores")
    #expect(select("v", [0, 1]) == nil)
    #expect(select("w", [0, 1]) == "maxSelectedPerUser")
    #expect(select("w", [0]) == nil)
    #expect(select("v", [0, 1]) == nil, "these rows are selected already")
    #expect(select("x", [0, 1, 2]) == "maxTotalSelected")
    #expect(select("x", [0, 1]) == nil)
    #expect(selected() == [3, 2, 5])
    // Rows that are removed, and feeds that are undefined, leave room.
    #expect(daemon.limit(daemon.ann, "remove", #"{"feed":"a","at":0}"#) == nil)
    #expect(selected() == [1, 1, 2])
    #expect(daemon.limit(daemon.bob, "undefine", #"{"feed":"x"}"#) == nil)
    #expect(selected() == [1, 0, 1])
    let failing = #"{"ops":[{"method":"undefine","params":{"feed":"v"}},{"method":"undefine","params":{"feed":"y"}}]}"#
    #expect(daemon.harness.ask(daemon.bob, "transaction", failing).first?.json?.errorCode == -32000)
    #expect(selected() == [1, 0, 1])
    #expect(daemon.limit(daemon.bob, "deselect", #"{"feed":"v","all":true}"#) == nil)
    #expect(selected() == [0, 0, 0])
  }

  @Test("replay accepts the same selections, although rows of managed feeds are not there")
  func selectionsBesideManagedRows() throws {
    let daemon = Daemon(isDurable: true) { $0.maxTotalSelected = 3 }
    try daemon.harness.configure(
      #"{"feeds":[{"feed":"m","kind":"managed","database":"d","query":"SELECT id FROM p"}]}"#)
    var rows = ManagedRows()
    for id in 0..<2 { Array(#"{"id":\#(id)}"#.utf8).withUnsafeBytes { rows.append($0, section: "m") } }
    daemon.harness.engine.setManaged("m", rows, now: daemon.harness.now, time: "T")
    daemon.harness.turn()
    #expect(daemon.define(daemon.ann, "a") == nil)
    #expect(daemon.limit(daemon.ann, "insert", #"{"feed":"a","elements":[1,2]}"#) == nil)
    for (name, child) in [("v", "m"), ("w", "a"), ("x", "m"), ("y", "a")] {
      #expect(daemon.define(daemon.ann, name, children: [child]) == nil)
    }
    func select(_ feed: String, _ rows: String) -> String? {
      daemon.limit(daemon.ann, "select", #"{"feed":"\#(feed)","at":\#(rows)}"#)
    }
    #expect(select("v", "[[0,0],[0,1]]") == nil)
    #expect(select("w", "[0,0]") == nil)
    #expect(select("x", "[0,0]") == "maxTotalSelected")
    #expect(select("y", "[[0,0],[0,1]]") == nil, "rows of managed feeds do not count for others")
    #expect(select("w", "[0,1]") == "maxTotalSelected")
    let again = Daemon(isDurable: true) { $0.maxTotalSelected = 3 }
    for batch in daemon.harness.stored { try again.harness.engine.replay(batch) }
    func selected(_ daemon: Daemon, _ feed: String) -> String? {
      daemon.harness.ask(daemon.bob, "selected", #"{"feed":"\#(feed)"}"#).first?.json?["result"]?["selected"]?.text
    }
    #expect(["v", "w", "x", "y"].map { selected(daemon, $0) } == ["[[0,0],[0,1]]", "[[0,0]]", "[]", "[[0,0],[0,1]]"])
    #expect(["w", "y"].map { selected(again, $0) } == ["[[0,0]]", "[[0,0],[0,1]]"])
  }

  // MARK: Rows that views keep

  private func view(_ daemon: Daemon, _ client: ConnectionID, _ name: String, of source: String, _ more: String)
    -> String?
  {
    daemon.limit(client, "define", #"{"feed":"\#(name)","kind":"view","of":"\#(source)"\#(more)}"#)
  }

  private func viewRows(_ daemon: Daemon) -> [Int] {
    let accounts = daemon.harness.engine.catalog.accounts
    return [accounts.usage(of: 7)?.viewRows ?? 0, accounts.usage(of: 8)?.viewRows ?? 0, accounts.total.viewRows]
  }

  private let sort = #","sort":[{"by":"$"}]"#

  @Test("views with a filter or a sort count the rows of their sources for the user that defined them")
  func rowsOfViews() {
    let daemon = Daemon {
      $0.maxViewRowsPerUser = 6
      $0.maxTotalViewRows = 12
    }
    #expect(daemon.define(daemon.ann, "a") == nil)
    #expect(daemon.limit(daemon.ann, "insert", #"{"feed":"a","elements":[1,2,3]}"#) == nil)
    #expect(view(daemon, daemon.ann, "v", of: "a", sort) == nil)
    #expect(view(daemon, daemon.ann, "w", of: "a", #","filter":"@ > 9","limit":1"#) == nil)
    #expect(viewRows(daemon) == [6, 0, 6], "rows that are not shown count too")
    #expect(view(daemon, daemon.ann, "x", of: "a", sort) == "maxViewRowsPerUser")
    #expect(view(daemon, daemon.ann, "x", of: "a", #","limit":1"#) == nil, "a window alone keeps no rows")
    let other = #"{"feed":"v","kind":"view","of":"a","replace":true,"sort":[{"by":"$","order":"descending"}]}"#
    #expect(daemon.limit(daemon.ann, "define", other) == nil, "another sort takes no more room")
    // The source cannot grow, whoever pushes to it. Other changes are possible.
    #expect(daemon.limit(daemon.bob, "insert", #"{"feed":"a","element":4}"#) == "maxViewRowsPerUser")
    #expect(daemon.limit(daemon.bob, "replace", #"{"feed":"a","element":4,"at":0}"#) == nil)
    #expect(daemon.limit(daemon.bob, "move", #"{"feed":"a","from":0,"to":2}"#) == nil)
    #expect(daemon.limit(daemon.ann, "remove", #"{"feed":"a","at":0}"#) == nil)
    #expect(viewRows(daemon) == [4, 0, 4])
    // Views of others do not count for the user of the feed, until all views have too many rows.
    #expect(view(daemon, daemon.bob, "y", of: "a", sort) == nil)
    #expect(view(daemon, daemon.bob, "z", of: "a", sort) == nil)
    #expect(view(daemon, daemon.bob, "zz", of: "a", sort) == nil)
    #expect(viewRows(daemon) == [4, 6, 10])
    #expect(daemon.limit(daemon.ann, "insert", #"{"feed":"a","element":5}"#) == "maxTotalViewRows")
    #expect(daemon.limit(daemon.bob, "undefine", #"{"feed":"zz"}"#) == nil)
    #expect(daemon.limit(daemon.ann, "insert", #"{"feed":"a","element":5}"#) == nil)
    #expect(viewRows(daemon) == [6, 6, 12])
    let failing =
      #"{"ops":[{"method":"undefine","params":{"feed":"y"}},{"method":"undefine","params":{"feed":"none"}}]}"#
    #expect(daemon.harness.ask(daemon.bob, "transaction", failing).first?.json?.errorCode == -32000)
    #expect(viewRows(daemon) == [6, 6, 12])
    for feed in ["v", "w", "x", "y", "z"] {
      #expect(daemon.limit(daemon.bob, "undefine", #"{"feed":"\#(feed)"}"#) == nil)
    }
    #expect(viewRows(daemon) == [0, 0, 0])
  }

  @Test("rows that come to be shown below a view count, also without an insertion")
  func rowsThatComeToBeShown() {
    let daemon = Daemon { $0.maxViewRowsPerUser = 6 }
    func ask(_ method: String, _ params: String) -> String? { daemon.limit(daemon.ann, method, params) }
    for feed in ["a", "b"] { #expect(daemon.define(daemon.ann, feed) == nil) }
    #expect(ask("insert", #"{"feed":"a","elements":[1,2,3]}"#) == nil)
    #expect(ask("insert", #"{"feed":"b","elements":[4,5]}"#) == nil)
    // A view over a view: an update lets its source show the row.
    #expect(view(daemon, daemon.ann, "v", of: "a", #","filter":"@ > 8""#) == nil)
    #expect(view(daemon, daemon.ann, "w", of: "v", sort) == nil)
    #expect(viewRows(daemon) == [3, 0, 3])
    for row in 0..<3 { #expect(ask("replace", #"{"feed":"a","element":9,"at":\#(row)}"#) == nil) }
    #expect(viewRows(daemon) == [6, 0, 6])
    #expect(view(daemon, daemon.ann, "y", of: "w", sort) == "maxViewRowsPerUser")
    #expect(ask("undefine", #"{"feed":"w"}"#) == nil)
    // A composed feed gets another child.
    #expect(daemon.define(daemon.ann, "c", children: ["b"]) == nil)
    #expect(view(daemon, daemon.ann, "w", of: "c", sort) == nil)
    #expect(viewRows(daemon) == [5, 0, 5])
    #expect(ask("insertChild", #"{"feed":"c","child":"a"}"#) == "maxViewRowsPerUser")
    #expect(
      ask("define", #"{"feed":"c","kind":"composed","children":["b","a"],"replace":true}"#) == "maxViewRowsPerUser")
    #expect(ask("insert", #"{"feed":"b","element":6}"#) == nil)
    #expect(ask("insert", #"{"feed":"b","element":7}"#) == "maxViewRowsPerUser")
    #expect(viewRows(daemon) == [6, 0, 6])
  }

  @Test("definitions are refused for the views of the list of feeds")
  func rowsOfViewsOfTheList() {
    let daemon = Daemon { $0.maxTotalViewRows = 3 }
    for feed in ["a", "b"] { #expect(daemon.define(daemon.ann, feed) == nil) }
    #expect(view(daemon, daemon.ann, "v", of: "$feeds", sort) == nil)
    #expect(viewRows(daemon) == [3, 0, 3])
    #expect(daemon.define(daemon.bob, "c") == "maxTotalViewRows")
    #expect(daemon.limit(daemon.ann, "undefine", #"{"feed":"a"}"#) == nil)
    #expect(daemon.define(daemon.bob, "c") == nil)
  }

  @Test("replay accepts the same views, although rows of managed feeds are not there")
  func rowsOfViewsBesideManagedRows() throws {
    func make() -> Daemon { Daemon(isDurable: true) { $0.maxTotalViewRows = 4 } }
    let daemon = make()
    try daemon.harness.configure(
      #"{"feeds":[{"feed":"m","kind":"managed","database":"d","query":"SELECT id FROM p"}]}"#)
    var rows = ManagedRows()
    for id in 0..<5 { Array(#"{"id":\#(id)}"#.utf8).withUnsafeBytes { rows.append($0, section: "m") } }
    daemon.harness.engine.setManaged("m", rows, now: daemon.harness.now, time: "T")
    daemon.harness.turn()
    #expect(daemon.define(daemon.ann, "a") == nil)
    #expect(view(daemon, daemon.ann, "v", of: "m", sort) == nil)
    #expect(view(daemon, daemon.ann, "w", of: "a", sort) == nil)
    #expect(viewRows(daemon) == [5, 0, 5])
    #expect(daemon.limit(daemon.ann, "insert", #"{"feed":"a","elements":[1,2]}"#) == nil)
    #expect(view(daemon, daemon.ann, "x", of: "a", sort) == nil)
    #expect(view(daemon, daemon.ann, "y", of: "a", sort) == "maxTotalViewRows")
    #expect(daemon.limit(daemon.ann, "insert", #"{"feed":"a","element":3}"#) == "maxTotalViewRows")
    let again = make()
    for batch in daemon.harness.stored { try again.harness.engine.replay(batch) }
    #expect(viewRows(again) == [4, 0, 4])
    #expect(again.harness.engine.catalog.feeds.keys.sorted() == daemon.harness.engine.catalog.feeds.keys.sorted())
  }

  private func managedRows(_ count: Int, value: Int = 0) -> ManagedRows {
    var rows = ManagedRows()
    for id in 0..<count {
      Array(#"{"id":\#(id),"v":\#(value)}"#.utf8).withUnsafeBytes { rows.append($0, section: "m") }
    }
    return rows
  }

  @Test("rows of a managed feed are refused if views above it would keep too many", arguments: [false, true])
  func rowsOfViewsAboveManagedRows(isDurable: Bool) throws {
    let daemon = Daemon(isDurable: isDurable) {
      $0.maxViewRowsPerUser = 5
      $0.maxTotalViewRows = 12
    }
    let harness = daemon.harness
    try harness.configure(
      #"{"feeds":[{"feed":"m","kind":"managed","database":"d","query":"SELECT id, v FROM p"},{"feed":"n","kind":"managed","database":"d","query":"SELECT id, v FROM p"}]}"#
    )
    func set(_ feed: String, _ rows: ManagedRows) {
      harness.engine.setManaged(feed, rows, now: harness.now, time: "T")
      harness.turn()
    }
    func source(_ feed: String) -> String? {
      let status = harness.ask(daemon.ann, "describe", #"{"feed":"\#(feed)"}"#).first?.json?["result"]?["source"]
      return status?["status"]?.string.map { "\($0) \(status?["error"]?.string ?? "")" }
    }
    func rows(_ feed: String) -> Int? { try? harness.engine.catalog.feed(named: feed).count }
    set("m", managedRows(3))
    #expect(daemon.define(daemon.ann, "a") == nil)
    #expect(view(daemon, daemon.ann, "v", of: "m", sort) == nil)
    #expect(view(daemon, daemon.bob, "w", of: "m", #","filter":"@.v > 0""#) == nil)
    #expect(viewRows(daemon) == [3, 3, 6])
    // Feeds of the configuration belong to no user: only the sum counts.
    set("m", managedRows(6))
    #expect(viewRows(daemon) == [6, 6, 12])
    #expect(source("m") == "ok ")
    let refused =
      "error limit maxTotalViewRows (12) exceeded: all views keep 12 rows; undefine views, or remove rows that they show, or start feedd with a larger "
      + "--max-total-view-rows"
    let revision = harness.engine.catalog.feeds["m"]?.revision
    set("m", managedRows(7, value: 1))
    #expect(source("m") == refused)
    #expect(rows("m") == 6 && viewRows(daemon) == [6, 6, 12])
    #expect(harness.engine.catalog.feeds["m"]?.revision == revision)
    // Everything else goes on: other feeds, and rows that take no more room.
    set("n", managedRows(9))
    #expect(rows("n") == 9 && source("n") == "ok ")
    #expect(daemon.limit(daemon.bob, "insert", #"{"feed":"a","element":1}"#) == nil)
    set("m", managedRows(6, value: 2))
    #expect(source("m") == "ok ")
    #expect(daemon.limit(daemon.bob, "undefine", #"{"feed":"w"}"#) == nil)
    set("m", managedRows(8, value: 3))
    #expect(source("m") == "ok " && rows("m") == 8)
    #expect(viewRows(daemon) == [8, 0, 8])
  }

  @Test("replay charges the same users and refuses the same requests")
  func replay() throws {
    let daemon = Daemon(isDurable: true) { $0.maxElementsPerUser = 2 }
    #expect(daemon.define(daemon.ann, "a") == nil)
    #expect(daemon.define(daemon.bob, "b") == nil)
    let transaction = #"{"ops":[{"method":"define","params":{"feed":"c","kind":"array"}}]}"#
    #expect(daemon.limit(daemon.ann, "transaction", transaction) == nil)
    #expect(daemon.limit(daemon.ann, "insert", #"{"feed":"a","elements":[1,2]}"#) == nil)
    #expect(daemon.limit(daemon.ann, "insert", #"{"feed":"c","elements":[3]}"#) == "maxElementsPerUser")
    #expect(daemon.limit(daemon.bob, "insert", #"{"feed":"b","elements":[4]}"#) == nil)
    let again = Daemon(isDurable: true) { $0.maxElementsPerUser = 2 }
    for batch in daemon.harness.stored { try again.harness.engine.replay(batch) }
    #expect(
      [again.usage(of: 7), again.usage(of: 8), again.total] == [daemon.usage(of: 7), daemon.usage(of: 8), daemon.total])
    #expect(again.harness.engine.catalog.revision == daemon.harness.engine.catalog.revision)
    // What is stored stays under lower limits.
    var lower = Limits()
    lower.maxElementsPerUser = 1
    again.harness.engine.use(lower)
    #expect(again.usage(of: 7) == daemon.usage(of: 7))
    #expect(again.limit(again.ann, "insert", #"{"feed":"c","elements":[3]}"#) == "maxElementsPerUser")
  }
}

/// `quotas` and `kick`.
@Suite("Administration") struct AdministrationTests {
  @Test("quotas shows what each user stores and holds, to administrators")
  func quotas() throws {
    let harness = EngineHarness()
    let (root, ann) = (harness.connect(uid: 0), harness.connect(uid: 7))
    _ = harness.ask(ann, "define", #"{"feed":"a","kind":"array"}"#)
    _ = harness.ask(ann, "insert", #"{"feed":"a","elements":[1,2]}"#)
    let result = try #require(harness.ask(root, "quotas").first?.json?["result"])
    let users = result["users"]?.items ?? []
    #expect(users.map { $0["uid"]?.int } == [0, 7])
    #expect(users.map { $0["connections"]?.int } == [1, 1])
    #expect(users.map { $0["elements"]?.int } == [0, 2])
    #expect(result["total"]?["feeds"]?.int == 1)
    #expect(result["limits"]?["maxElementsPerUser"]?.int == Limits().maxElementsPerUser)
    #expect(harness.ask(ann, "quotas").first?.json?.errorCode == -32006)
    #expect(harness.ask(ann, "stats").first?.json?["result"]?["users"]?.items.first?["uid"]?.int == 7)
  }

  @Test("kick closes a connection by its number, for administrators")
  func kick() throws {
    let harness = EngineHarness()
    let (root, ann, bob) = (harness.connect(uid: 0), harness.connect(uid: 7), harness.connect(uid: 8))
    let clients = try #require(harness.ask(root, "clients").first?.json?["result"]?["clients"]?.items)
    let number = try #require(clients.first { $0["uid"]?.int == 7 }?["connection"]?.int)
    #expect(harness.ask(bob, "kick", #"{"connection":\#(number)}"#).first?.json?.errorCode == -32006)
    #expect(harness.isOpen(ann))
    let answer = harness.ask(root, "kick", #"{"connection":\#(number)}"#).first?.json
    #expect(answer?["result"]?["uid"]?.int == 7)
    #expect(harness.take(ann).last?.json?["params"]?["reason"]?.string == "kicked")
    #expect(!harness.isOpen(ann))
    #expect(harness.ask(root, "kick", #"{"connection":\#(number)}"#).first?.json?.errorCode == -32602)
    let next = harness.connect(uid: 7)
    let numbers = harness.ask(root, "clients").first?.json?["result"]?["clients"]?.items.map { $0["connection"]?.int }
    #expect(numbers?.contains(number) == false, "numbers are not used again")
    #expect(harness.isOpen(next) && harness.isOpen(bob))
  }

  @Test("a connection that reads nothing is kicked as well")
  func kickReader() {
    let harness = EngineHarness()
    let (root, ann) = (harness.connect(uid: 0), harness.connect(uid: 7))
    _ = harness.ask(ann, "define", #"{"feed":"a","kind":"array"}"#)
    _ = harness.ask(ann, "watch", #"{"feed":"a"}"#)
    harness.stopped = [ann]
    for _ in 0..<10 { _ = harness.ask(root, "insert", #"{"feed":"a","element":1}"#) }
    #expect(harness.ask(root, "kick", #"{"connection":2}"#).first?.json?["result"]?["connection"]?.int == 2)
    harness.stopped = []
    harness.turn()
    #expect(harness.take(ann).last?.json?["params"]?["reason"]?.string == "kicked")
    #expect(!harness.isOpen(ann))
  }

  @Test("an administrator may close its own connection")
  func kickSelf() {
    let harness = EngineHarness()
    let root = harness.connect(uid: 0)
    let frames = harness.ask(root, "kick", #"{"connection":1}"#).compactMap(\.json)
    #expect(frames.count == 2)
    #expect(frames.first?["result"]?["connection"]?.int == 1)
    #expect(frames.last?["params"]?["reason"]?.string == "kicked")
    #expect(!harness.isOpen(root))
  }
}
