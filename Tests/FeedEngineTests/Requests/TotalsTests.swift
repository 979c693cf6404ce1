import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Limits on what one user stores, and on what all users store together.
@Suite("Totals") struct TotalsTests {
  @Test("feeds count for the user that defined them")
  func feeds() {
    let daemon = TotalsDaemon { $0.maxFeedsPerUser = 2 }
    expectEqual(daemon.define(daemon.ann, "a"), nil)
    expectEqual(daemon.define(daemon.ann, "b"), nil)
    expectEqual(daemon.define(daemon.ann, "b"), nil, "the same definition again is no other feed")
    expectEqual(daemon.define(daemon.ann, "c"), "maxFeedsPerUser")
    expectEqual(daemon.define(daemon.bob, "c"), nil)
    expectEqual(daemon.limit(daemon.bob, "undefine", #"{"feed":"a"}"#), nil)
    expectEqual(daemon.define(daemon.ann, "d"), nil)
  }

  @Test("definitions count with the memory of bins and entries")
  func memoryOfDefinitions() {
    let daemon = TotalsDaemon()
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
      expectEqual(daemon.limit(daemon.ann, "define", #"{"feed":"f\#(daemon.usage(of: 7)[0])",\#(definition)}"#), nil)
      let bytes = daemon.usage(of: 7)[3]
      // What is left out of the definition is stored.
      let longest = memory + 2 * definition.utf8.count + 200
      expect((memory...longest).contains(bytes - before), "\(definition.prefix(40))")
      before = bytes
    }
  }

  @Test("elements count for the user that defined their feed, whoever pushes them")
  func elements() {
    let daemon = TotalsDaemon { $0.maxElementsPerUser = 3 }
    for feed in ["a", "b"] { expectEqual(daemon.define(daemon.ann, feed), nil) }
    expectEqual(daemon.define(daemon.bob, "c"), nil)
    expectEqual(daemon.limit(daemon.ann, "insert", #"{"feed":"a","elements":[1,2]}"#), nil)
    expectEqual(daemon.limit(daemon.bob, "insert", #"{"feed":"b","elements":[3,4]}"#), "maxElementsPerUser")
    expectEqual(daemon.usage(of: 7)[1], 2, "a refused request changed nothing")
    expectEqual(daemon.limit(daemon.bob, "insert", #"{"feed":"b","elements":[3]}"#), nil)
    expectEqual(daemon.limit(daemon.bob, "insert", #"{"feed":"c","elements":[1,2,3]}"#), nil)
    expectEqual(
      daemon.limit(daemon.ann, "replace", #"{"feed":"a","elements":[9],"at":0}"#), nil,
      "a version is not another element")
    expectEqual(daemon.limit(daemon.ann, "remove", #"{"feed":"a","at":0}"#), nil)
    expectEqual(daemon.limit(daemon.ann, "insert", #"{"feed":"a","elements":[5]}"#), nil)
    expectEqual(daemon.total[1], 6)
  }

  @Test("bytes of elements count for the user and for the daemon")
  func bytes() {
    let daemon = TotalsDaemon {
      $0.maxBytesPerUser = 4000
      $0.maxTotalBytes = 6000
    }
    func put(_ client: ConnectionID, _ feed: String, _ count: Int) -> String? {
      daemon.limit(client, "insert", #"{"feed":"\#(feed)","element":"\#(String(repeating: "x", count: count))"}"#)
    }
    expectEqual(daemon.define(daemon.ann, "a"), nil)
    expectEqual(daemon.define(daemon.bob, "b"), nil)
    expectEqual(put(daemon.ann, "a", 3000), nil)
    expectEqual(put(daemon.ann, "a", 3000), "maxBytesPerUser")
    expectEqual(put(daemon.bob, "b", 3000), "maxTotalBytes")
    expectEqual(put(daemon.bob, "b", 2000), nil)
  }

  @Test("an element takes the room of what it replaces", arguments: ["maxBytes", "maxBytesPerUser", "maxTotalBytes"])
  func replaced(_ limit: String) {
    let daemon = TotalsDaemon { limits in
      for place in Limits.all where place.name == limit { limits[keyPath: place.keyPath] = 4000 }
    }
    func element(_ id: Int, _ count: Int) -> String { #"{"id":\#(id),"a":"\#(String(repeating: "x", count: count))"}"# }
    for (kind, method, place) in [("collection", "update", ""), ("array", "replace", #","at":0"#)] {
      let feed = #""feed":"\#(kind)""#
      func put(_ count: Int) -> String? {
        daemon.limit(daemon.ann, method, "{\(feed),\"element\":\(element(1, count))\(place)}")
      }
      expectEqual(daemon.limit(daemon.ann, "define", #"{\#(feed),"kind":"\#(kind)"}"#), nil)
      let first = kind == "array" ? "insert" : method
      expectEqual(daemon.limit(daemon.ann, first, "{\(feed),\"element\":\(element(1, 3000))}"), nil)
      expectEqual(put(2900), nil, "\(kind), shorter")
      expectEqual(put(3900), nil, "\(kind), longer")
      expectEqual(put(4000), limit, "\(kind), too long")
      expectEqual(daemon.limit(daemon.ann, first, "{\(feed),\"element\":\(element(2, 90))}"), limit, "\(kind), another")
      daemon.harness.engine.catalog.commit.rules = 3
      expectEqual(put(2000), limit, "\(kind), by older rules")
      daemon.harness.engine.catalog.commit.rules = ExecutionRules.current
      expectEqual(put(2000), nil, "\(kind), shorter again")
      expectEqual(daemon.limit(daemon.ann, "undefine", "{\(feed)}"), nil)
    }
  }

  /// The definition of a collection with one bin, which sorts by `$.s` so many times.
  private static func sorted(_ terms: Int, _ more: String = "") -> String {
    let sort = Array(repeating: #"{"by":"$.s"}"#, count: terms).joined(separator: ",")
    return #"{"feed":"k","kind":"collection","bins":[{"name":"x","sort":[\#(sort)]}]\#(more)}"#
  }

  private static func element(_ id: Int, _ count: Int) -> String {
    #"{"feed":"k","element":{"id":\#(id),"s":"\#(String(repeating: "x", count: count))"}}"#
  }

  @Test("sort keys count as bytes of their element")
  func sortKeys() {
    let daemon = TotalsDaemon { $0.maxBytes = 20_000 }
    func put(_ id: Int, _ count: Int) -> String? { daemon.limit(daemon.ann, "update", Self.element(id, count)) }
    expectEqual(daemon.limit(daemon.ann, "define", Self.sorted(10)), nil)
    expectEqual(put(1, 1000), nil)
    expectEqual(put(2, 1000), "maxBytes")
    expectEqual(put(1, 1900), "maxBytes")
    expectEqual(put(1, 900), nil, "shorter")
    daemon.harness.engine.catalog.commit.rules = 3
    expectEqual(put(2, 1000), nil, "by older rules")
    expectEqual(daemon.usage(of: 7)[1], 2)
  }

  @Test("sort keys of one element have a limit")
  func longSortKeys() {
    let daemon = TotalsDaemon { $0.maxElementBytes = 20_000 }
    let element = Self.element(1, 19_000)
    expectEqual(daemon.limit(daemon.ann, "define", Self.sorted(64)), nil)
    expectEqual(daemon.limit(daemon.ann, "update", element), "maxElementBytes")
    expectEqual(daemon.usage(of: 7)[1], 0)
    expectEqual(daemon.limit(daemon.ann, "define", Self.sorted(50, #","replace":true"#)), nil)
    expectEqual(daemon.limit(daemon.ann, "update", element), nil)
    let before = daemon.usage(of: 7)
    expectEqual(daemon.limit(daemon.ann, "define", Self.sorted(64, #","replace":true"#)), "maxElementBytes")
    expectEqual(daemon.usage(of: 7), before)
    daemon.harness.engine.catalog.commit.rules = 3
    expectEqual(daemon.limit(daemon.ann, "define", Self.sorted(64, #","replace":true"#)), nil, "by older rules")
  }

  @Test("sort terms may look at so many members of one element")
  func longSearches() {
    let daemon = TotalsDaemon { $0.maxQuerySteps = 1000 }
    let members = (0..<200).map { #""m\#($0)":1"# }.joined(separator: ",")
    let element = #"{"feed":"k","element":{"id":1,\#(members)}}"#
    // A term takes 50 steps.
    expectEqual(daemon.limit(daemon.ann, "define", Self.sorted(21)), nil)
    expectEqual(daemon.limit(daemon.ann, "update", element), "maxQuerySteps")
    expectEqual(daemon.limit(daemon.ann, "define", Self.sorted(20, #","replace":true"#)), nil)
    expectEqual(daemon.limit(daemon.ann, "update", element), nil)
    expectEqual(daemon.usage(of: 7)[1], 1)
  }

  @Test("all elements of the daemon are limited")
  func allElements() {
    let daemon = TotalsDaemon { $0.maxTotalElements = 3 }
    expectEqual(daemon.define(daemon.ann, "a"), nil)
    expectEqual(daemon.define(daemon.bob, "b"), nil)
    expectEqual(daemon.limit(daemon.ann, "insert", #"{"feed":"a","elements":[1,2]}"#), nil)
    expectEqual(daemon.limit(daemon.bob, "insert", #"{"feed":"b","elements":[1,2]}"#), "maxTotalElements")
  }

  @Test("definitions count by their bytes, and children that are inserted count as well")
  func definitions() {
    let daemon = TotalsDaemon {
      // Each child counts 116 bytes, and a list of children 128.
      $0.maxDefinitionBytesPerUser = 1100
      $0.maxTotalDefinitionBytes = 2000
    }
    let names = (0..<8).map { "\($0)" + String(repeating: "n", count: 99) }
    for name in names.prefix(4) { expectEqual(daemon.define(daemon.bob, name), nil) }
    expectEqual(daemon.define(daemon.ann, "c", children: Array(names.prefix(3))), nil)
    expectEqual(daemon.define(daemon.ann, "d", children: Array(names.prefix(4))), nil)
    expectEqual(
      daemon.limit(daemon.ann, "insertChild", #"{"feed":"c","child":"\#(names[3])"}"#), "maxDefinitionBytesPerUser")
    let before = daemon.usage(of: 7)
    expectEqual(daemon.limit(daemon.ann, "removeChild", #"{"feed":"c","at":0}"#), nil)
    expectEqual(daemon.limit(daemon.ann, "insertChild", #"{"feed":"c","child":"\#(names[3])"}"#), nil)
    expectEqual(daemon.usage(of: 7), before)
    expect((4..<8).map { daemon.define(daemon.bob, names[$0]) }.contains("maxTotalDefinitionBytes"))
  }

  @Test("a redefined collection needs no room for two copies of its elements")
  func redefined() {
    let daemon = TotalsDaemon { $0.maxElementsPerUser = 3 }
    expectEqual(daemon.limit(daemon.ann, "define", #"{"feed":"k","kind":"collection"}"#), nil)
    expectEqual(daemon.limit(daemon.ann, "update", #"{"feed":"k","elements":[{"id":1},{"id":2},{"id":3}]}"#), nil)
    let redefinition = #"{"feed":"k","kind":"collection","bins":[{"name":"x"}],"replace":true}"#
    expectEqual(daemon.limit(daemon.bob, "define", redefinition), nil)
    expectEqual(daemon.usage(of: 7)[..<2], [1, 3], "a feed keeps its user")
    expectEqual(daemon.usage(of: 8), [0, 0, 0, 0])
    expectEqual(daemon.limit(daemon.ann, "update", #"{"feed":"k","element":{"id":4}}"#), "maxElementsPerUser")
  }

  @Test("what a transaction rolls back is charged as before")
  func rolledBack() {
    let daemon = TotalsDaemon()
    for feed in ["a", "b"] { expectEqual(daemon.define(daemon.ann, feed), nil) }
    expectEqual(daemon.limit(daemon.ann, "insert", #"{"feed":"a","elements":[1,2]}"#), nil)
    expectEqual(daemon.limit(daemon.ann, "define", #"{"feed":"k","kind":"collection"}"#), nil)
    expectEqual(daemon.limit(daemon.ann, "update", #"{"feed":"k","elements":[{"id":1}]}"#), nil)
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
    expectEqual(answer.first?.json?.errorCode, -32000)
    expectEqual([daemon.usage(of: 7), daemon.total], before)
    expectEqual(daemon.usage(of: 8), [0, 0, 0, 0])
  }

  @Test("selected rows of feeds that show others count for the user and for the daemon")
  func selections() {
    let daemon = TotalsDaemon {
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
    expectEqual(daemon.define(daemon.ann, "a"), nil)
    expectEqual(daemon.limit(daemon.ann, "insert", #"{"feed":"a","elements":[1,2,3,4]}"#), nil)
    expectEqual(daemon.define(daemon.ann, "v", children: ["a"]), nil)
    expectEqual(daemon.define(daemon.ann, "w", children: ["a"]), nil)
    expectEqual(daemon.define(daemon.bob, "x", children: ["a"]), nil)
    expectEqual(select("a", [0, 1, 2, 3]), nil, "rows of the feed itself are bounded by what it stores")
    expectEqual(select("v", [0, 1]), nil)
    expectEqual(select("w", [0, 1]), "maxSelectedPerUser")
    expectEqual(select("w", [0]), nil)
    expectEqual(select("v", [0, 1]), nil, "these rows are selected already")
    expectEqual(select("x", [0, 1, 2]), "maxTotalSelected")
    expectEqual(select("x", [0, 1]), nil)
    expectEqual(selected(), [3, 2, 5])
    // Rows that are removed, and feeds that are undefined, leave room.
    expectEqual(daemon.limit(daemon.ann, "remove", #"{"feed":"a","at":0}"#), nil)
    expectEqual(selected(), [1, 1, 2])
    expectEqual(daemon.limit(daemon.bob, "undefine", #"{"feed":"x"}"#), nil)
    expectEqual(selected(), [1, 0, 1])
    let failing = #"{"ops":[{"method":"undefine","params":{"feed":"v"}},{"method":"undefine","params":{"feed":"y"}}]}"#
    expectEqual(daemon.harness.ask(daemon.bob, "transaction", failing).first?.json?.errorCode, -32000)
    expectEqual(selected(), [1, 0, 1])
    expectEqual(daemon.limit(daemon.bob, "deselect", #"{"feed":"v","all":true}"#), nil)
    expectEqual(selected(), [0, 0, 0])
  }

  @Test("replay accepts the same selections, although rows of managed feeds are not there")
  func selectionsBesideManagedRows() throws {
    let daemon = TotalsDaemon(isDurable: true) { $0.maxTotalSelected = 3 }
    try daemon.harness.configure(
      #"{"feeds":[{"feed":"m","kind":"managed","database":"d","query":"SELECT id FROM p"}]}"#)
    daemon.setManaged("m", 2)
    expectEqual(daemon.define(daemon.ann, "a"), nil)
    expectEqual(daemon.limit(daemon.ann, "insert", #"{"feed":"a","elements":[1,2]}"#), nil)
    for (name, child) in [("v", "m"), ("w", "a"), ("x", "m"), ("y", "a")] {
      expectEqual(daemon.define(daemon.ann, name, children: [child]), nil)
    }
    func select(_ feed: String, _ rows: String) -> String? {
      daemon.limit(daemon.ann, "select", #"{"feed":"\#(feed)","at":\#(rows)}"#)
    }
    expectEqual(select("v", "[[0,0],[0,1]]"), nil)
    expectEqual(select("w", "[0,0]"), nil)
    expectEqual(select("x", "[0,0]"), "maxTotalSelected")
    expectEqual(select("y", "[[0,0],[0,1]]"), nil, "rows of managed feeds do not count for others")
    expectEqual(select("w", "[0,1]"), "maxTotalSelected")
    let again = TotalsDaemon(isDurable: true) { $0.maxTotalSelected = 3 }
    for batch in daemon.harness.stored { try again.harness.engine.replay(batch) }
    func selected(_ daemon: TotalsDaemon, _ feed: String) -> String? {
      daemon.harness.ask(daemon.bob, "selected", #"{"feed":"\#(feed)"}"#).first?.json?["result"]?["selected"]?.text
    }
    expectEqual(
      ["v", "w", "x", "y"].map { selected(daemon, $0) }, ["[[0,0],[0,1]]", "[[0,0]]", "[]", "[[0,0],[0,1]]"])
    expectEqual(["w", "y"].map { selected(again, $0) }, ["[[0,0]]", "[[0,0],[0,1]]"])
  }

  @Test("replay charges the same users and refuses the same requests")
  func replay() throws {
    let daemon = TotalsDaemon(isDurable: true) { $0.maxElementsPerUser = 2 }
    expectEqual(daemon.define(daemon.ann, "a"), nil)
    expectEqual(daemon.define(daemon.bob, "b"), nil)
    let transaction = #"{"ops":[{"method":"define","params":{"feed":"c","kind":"array"}}]}"#
    expectEqual(daemon.limit(daemon.ann, "transaction", transaction), nil)
    expectEqual(daemon.limit(daemon.ann, "insert", #"{"feed":"a","elements":[1,2]}"#), nil)
    expectEqual(daemon.limit(daemon.ann, "insert", #"{"feed":"c","elements":[3]}"#), "maxElementsPerUser")
    expectEqual(daemon.limit(daemon.bob, "insert", #"{"feed":"b","elements":[4]}"#), nil)
    let again = TotalsDaemon(isDurable: true) { $0.maxElementsPerUser = 2 }
    for batch in daemon.harness.stored { try again.harness.engine.replay(batch) }
    expectEqual(
      [again.usage(of: 7), again.usage(of: 8), again.total], [daemon.usage(of: 7), daemon.usage(of: 8), daemon.total])
    expectEqual(again.harness.engine.catalog.revision, daemon.harness.engine.catalog.revision)
    // What is stored stays under lower limits.
    var lower = Limits()
    lower.maxElementsPerUser = 1
    again.harness.engine.use(lower)
    expectEqual(again.usage(of: 7), daemon.usage(of: 7))
    expectEqual(again.limit(again.ann, "insert", #"{"feed":"c","elements":[3]}"#), "maxElementsPerUser")
  }
}
