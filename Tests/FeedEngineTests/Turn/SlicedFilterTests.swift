import FeedJSON
import FeedServer
import FeedWire
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import FeedModel
@testable import ReferenceModel

/// Short requests that take long, and many of them.
extension SlicedRequestTests {
  /// Each costs many steps, whatever its length.
  @Test(
    "requests over whose elements filters take long are sliced", arguments: Log.allCases,
    [
      ("update", #"{"feed":"slow","element":ELEMENT}"#), ("set", #"{"feed":"slow","elements":[ELEMENT]}"#),
      ("patch", #"{"feed":"slow","id":0,"patch":{"v":1}}"#), ("delete", #"{"feed":"plain","where":"FILTER"}"#),
      ("insert", #"{"feed":"array","element":ELEMENT}"#),
      ("transaction", #"{"ops":[{"method":"update","params":{"feed":"slow","element":ELEMENT}}]}"#),
    ])
  func slowFilters(_ log: Log, _ request: (method: String, params: String)) {
    let harness = EngineHarness(isDurable: log == .array, slices: SlicedWork("slices", slice: 0))
    let client = harness.connect()
    let filter = "@.a[?count($.a[?@ > 1]) == 7]"
    let bins = (0..<8).map { #"{"name":"b\#($0)","filter":"\#(filter)"},"# }.joined() + #"{"name":"all"}"#
    let values = (0..<100).map { "\($0 % 10)" }.joined(separator: ",")
    let element = { (id: Int) in #"{"id":\#(id),"a":[\#(values)]}"# }
    _ = harness.ask(client, "define", #"{"feed":"slow","kind":"collection","bins":[\#(bins)]}"#)
    _ = harness.ask(client, "define", #"{"feed":"plain","kind":"collection"}"#)
    _ = harness.ask(client, "define", #"{"feed":"array","kind":"array"}"#)
    for view in 0..<8 {
      _ = harness.ask(client, "define", #"{"feed":"v\#(view)","kind":"view","of":"array","filter":"\#(filter)"}"#)
    }
    _ = harness.ask(client, "update", #"{"feed":"slow","element":\#(element(0))}"#)
    for id in 0..<8 { _ = harness.ask(client, "update", #"{"feed":"plain","element":\#(element(id))}"#) }
    let params = request.params.replacing("ELEMENT", with: element(1)).replacing("FILTER", with: filter)
    harness.supply(client, request.method, params)
    let turns = Self.turns(harness, until: client) { _ in }
    expect(turns > 5)
    expect(Self.value(harness.take(client))?["result"] != nil)
    // Short elements are judged at once.
    harness.supply(client, "update", #"{"feed":"slow","element":{"id":2,"a":[1]}}"#)
    expect(Self.turns(harness, until: client) { _ in } <= 2)
  }

  /// One element has a row in each bin, and each feed above the collection lists all of them.
  @Test(
    "changes of one element that many feeds list are sliced", arguments: Log.allCases,
    [
      ("update", #"{"feed":"c","element":{"id":1,"v":2}}"#), ("patch", #"{"feed":"c","id":1,"patch":{"v":1}}"#),
      ("delete", #"{"feed":"c","id":1}"#),
      ("transaction", #"{"ops":[{"method":"update","params":{"feed":"c","element":{"id":1,"v":3}}}]}"#),
    ])
  func manyFeedsAbove(_ log: Log, _ request: (method: String, params: String)) {
    let harness = EngineHarness(isDurable: log == .array, slices: SlicedWork("slices", slice: 0))
    let (client, watcher) = (harness.connect(), harness.connect())
    let bins = (0..<200).map { #"{"name":"b\#($0)"}"# }.joined(separator: ",")
    _ = harness.ask(client, "define", #"{"feed":"c","kind":"collection","bins":[\#(bins)]}"#)
    _ = harness.ask(client, "define", #"{"feed":"plain","kind":"collection"}"#)
    for parent in 0..<60 {
      _ = harness.ask(client, "define", #"{"feed":"p\#(parent)","kind":"composed","children":["c","plain"]}"#)
      _ = harness.ask(watcher, "watch", #"{"feed":"p\#(parent)","initial":false}"#)
    }
    for feed in ["c", "plain"] { _ = harness.ask(client, "update", #"{"feed":"\#(feed)","element":{"id":1}}"#) }
    harness.supply(client, request.method, request.params)
    expect(Self.turns(harness, until: client) { _ in } > 5)
    expect(Self.value(harness.take(client))?["result"] != nil)
    harness.supply(client, "update", #"{"feed":"plain","element":{"id":1,"v":2}}"#)
    expect(Self.turns(harness, until: client) { _ in } <= 2)
  }

  /// The feeds above follow each of the elements that a request names.
  @Test("changes of some elements that some feeds list are long")
  func someFeedsAbove() {
    let harness = EngineHarness(slices: SlicedWork("slices", slice: 0))
    let (client, engine) = (harness.connect(), harness.engine)
    func mayBeLong(_ method: Method, _ params: String) -> Bool {
      var scanner = JSONScanner()
      return Array(params.utf8).withUnsafeBytes { text in
        engine.mayBeLong(method, Parameters(object: try? scanner.scan(text)), bytes: text.count)
      }
    }
    func list(_ count: Int) -> String { (0..<count).map { "\($0)" }.joined(separator: ",") }
    let bins = (0..<200).map { #"{"name":"b\#($0)"}"# }.joined(separator: ",")
    _ = harness.ask(client, "define", #"{"feed":"c","kind":"collection","bins":[\#(bins)]}"#)
    expect(mayBeLong(.delete, #"{"feed":"c","ids":[\#(list(1000))]}"#))
    expect(!mayBeLong(.delete, #"{"feed":"other","ids":[\#(list(1000))]}"#))
    for parent in 0..<5 {
      _ = harness.ask(client, "define", #"{"feed":"p\#(parent)","kind":"composed","children":["c"]}"#)
    }
    expect(engine.catalog.hasFeedsShownOften)
    expect(!mayBeLong(.delete, #"{"feed":"c","ids":[\#(list(4))]}"#))
    expect(mayBeLong(.delete, #"{"feed":"c","ids":[\#(list(20))]}"#))
    let update = #"{"method":"update","params":{"feed":"c","element":{"id":1}}}"#
    for (count, isLong) in [(4, false), (20, true)] {
      let operations = Array(repeating: update, count: count).joined(separator: ",")
      expectEqual(mayBeLong(.transaction, #"{"ops":[\#(operations)]}"#), isLong)
    }
  }

  /// Other feeds are looked up for each request while there is a feed that is shown often.
  @Test("feeds are counted while they are shown often")
  func feedsShownOften() {
    let harness = EngineHarness()
    let (client, catalog) = (harness.connect(), harness.engine.catalog)
    func define(_ params: String) { _ = harness.ask(client, "define", params) }
    let bins = { (count: Int) in (0..<count).map { #"{"name":"b\#($0)"}"# }.joined(separator: ",") }
    define(#"{"feed":"c","kind":"collection","bins":[\#(bins(100))]}"#)
    define(#"{"feed":"a","kind":"array"}"#)
    for view in 0..<10 { define(#"{"feed":"v\#(view)","kind":"view","of":"a"}"#) }
    expect(!catalog.hasFeedsShownOften)
    for parent in 0..<10 { define(#"{"feed":"p\#(parent)","kind":"composed","children":["c"]}"#) }
    expect(catalog.hasFeedsShownOften)
    define(#"{"feed":"c","kind":"collection","bins":[\#(bins(90))],"replace":true}"#)
    expect(!catalog.hasFeedsShownOften)
    for view in 0..<60 { define(#"{"feed":"w\#(view)","kind":"view","of":"c/b0"}"#) }
    expect(catalog.hasFeedsShownOften)
    _ = harness.ask(client, "undefine", #"{"feed":"w3"}"#)
    _ = harness.ask(client, "undefine", #"{"feed":"p0"}"#)
    expect(catalog.hasFeedsShownOften)
    for view in 4..<24 { _ = harness.ask(client, "undefine", #"{"feed":"w\#(view)"}"#) }
    expect(catalog.hasFeedsShownOften)
    for parent in 1..<10 { _ = harness.ask(client, "undefine", #"{"feed":"p\#(parent)"}"#) }
    expect(!catalog.hasFeedsShownOften)
    catalog.checkInvariants()
  }

  /// Changes in the same turn need not wait for it.
  @Test("an eviction that few feeds follow is executed at once")
  func fewFeedsFollowAnEviction() {
    let harness = EngineHarness(slices: SlicedWork("slices", slice: 0))
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"c","kind":"collection","retain":{"until":"$.t"}}"#)
    _ = harness.ask(client, "update", #"{"feed":"c","element":{"id":1,"t":5}}"#)
    harness.turnOnce(after: 10)
    expectEqual(harness.engine.catalog.feeds["c"]?.count, 0)
    expect(!harness.hasWork)
  }

  /// The views above follow each element that expires.
  @Test("an eviction that many feeds follow takes several turns", arguments: Log.allCases)
  func evictions(_ log: Log) {
    let harness = EngineHarness(isDurable: log == .array, slices: SlicedWork("slices", slice: 0))
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"c","kind":"collection","retain":{"until":"$.t"}}"#)
    for view in 0..<40 {
      _ = harness.ask(client, "define", #"{"feed":"v\#(view)","kind":"view","of":"c","sort":[{"by":"$.id"}]}"#)
    }
    let elements = (0..<150).map { #"{"id":\#($0),"t":5}"# }.joined(separator: ",")
    harness.supply(client, "update", #"{"feed":"c","elements":[\#(elements)],"result":"counts"}"#)
    _ = Self.turns(harness, until: client) { _ in }
    harness.turnOnce(after: 10)
    var turns = 0
    while harness.hasWork || harness.engine.catalog.feeds["c"]?.count != 0, turns < 10_000 {
      harness.turnOnce()
      turns += 1
    }
    expect((3..<10_000).contains(turns))
    expectEqual(harness.engine.catalog.feeds["c"]?.count, 0)
    expectEqual(harness.engine.catalog.feeds["v0"]?.count, 0)
  }

  /// A view that nobody watches runs its filter when a feed above counts its rows, and stops for others, who may ask for the same.
  @Test("a count of rows that stops for others is right")
  func countThatStops() {
    func answers(_ slices: (any SliceRunner)?) -> [String] {
      let harness = EngineHarness(slices: slices)
      let (client, reader) = (harness.connect(), harness.connect())
      let values = (0..<100).map { "\($0 % 10)" }.joined(separator: ",")
      let element = { (id: Int) in #"{"id":\#(id),"a":[\#(values)]}"# }
      _ = harness.ask(client, "define", #"{"feed":"a","kind":"array"}"#)
      let elements = (0..<8).map(element).joined(separator: ",")
      _ = harness.ask(client, "insert", #"{"feed":"a","at":0,"elements":[\#(elements)]}"#)
      func view(_ name: String, of source: String, _ count: Int) -> String {
        #"{"feed":"\#(name)","kind":"view","of":"\#(source)","filter":"@.a[?count($.a[?@ > 1]) > \#(count)]","replace":true}"#
      }
      _ = harness.ask(client, "define", view("v", of: "a", 1))
      _ = harness.ask(client, "define", #"{"feed":"p","kind":"composed","children":["v"]}"#)
      _ = harness.ask(client, "define", view("w", of: "p", 2))
      for round in 0..<3 {
        let operations = [
          #"{"method":"insert","params":{"feed":"a","at":0,"element":\#(element(10 + round))}}"#,
          #"{"method":"define","params":\#(view("v", of: "a", 3 + round))}"#,
          #"{"method":"define","params":\#(view("w", of: "p", 4 + round))}"#,
        ]
        harness.supply(client, "transaction", #"{"ops":[\#(operations.joined(separator: ","))]}"#)
        _ = Self.turns(harness, until: client) { _ in
          harness.supply(reader, "describe", #"{"feed":"p"}"#)
        }
        harness.turn()
        expect(Self.value(harness.take(client))?["result"] != nil)
      }
      return ["v", "p", "w"].flatMap { harness.ask(client, "snapshot", #"{"feed":"\#($0)"}"#) }
    }
    expectEqual(answers(SlicedWork("slices", slice: 0, isEager: true)), answers(nil))
  }

  @Test("requests after the time of a turn wait for the next one", arguments: Log.allCases)
  func manyShortRequests(_ log: Log) {
    let harness = EngineHarness(isDurable: log == .array, slices: SlicedWork("slices", slice: 0))
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"a","kind":"array"}"#)
    harness.supply(
      client,
      (0..<100).flatMap { EngineHarness.request("insert", #"{"feed":"a","at":\#($0),"element":\#($0)}"#, id: $0) })
    var answers: [String] = []
    var turns = 0
    while answers.count < 100 && turns < 1000 {
      harness.turnOnce()
      turns += 1
      let more = harness.take(client)
      expect(more.count <= 16)
      answers += more
    }
    expectEqual(answers.map { Value($0)?["id"]?.int ?? -1 }, Array(0..<100))
  }

  /// Defines views of `c` whose filters take many steps, and watches them.
  static func addViews(_ harness: EngineHarness, _ count: Int, watchedBy watcher: ConnectionID) {
    for number in 0..<count {
      _ = harness.ask(
        watcher, "define",
        #"{"feed":"v\#(number)","kind":"view","of":"c","filter":"@..[?@..[?@ != \#(number)]] || @.k > 2"}"#)
      _ = harness.ask(watcher, "watch", #"{"feed":"v\#(number)","initial":false}"#)
    }
    _ = harness.take(watcher)
  }

  @Test(arguments: Log.allCases)
  func shortUpdateBelowSlowViewsTakesSeveralTurns(_ log: Log) {
    let harness = EngineHarness(isDurable: log == .array, slices: SlicedWork("slices", slice: 0))
    let (writer, watcher, other) = (harness.connect(), harness.connect(), harness.connect())
    Self.fill(harness, writer, count: 2)
    Self.addViews(harness, 60, watchedBy: watcher)
    let list = (0..<30).map(String.init).joined(separator: ",")
    harness.supply(writer, "update", #"{"feed":"c","element":{"id":1,"k":1,"v":[[\#(list)],[\#(list)]]}}"#)
    var pings = 0
    let turns = Self.turns(harness, until: writer) { _ in
      harness.supply(other, "ping")
      pings += harness.take(other).count
    }
    expect(turns > 5 && pings > 3)
    harness.turn()
    expectEqual(harness.take(watcher).count, 60)
  }

  /// None of the filters takes long, so none stops.
  @Test func updatesJudgedByManyShortFiltersTakeSeveralTurns() {
    let harness = EngineHarness(slices: SlicedWork("slices", slice: 0))
    let client = harness.connect()
    let filter = (0..<10).map { "@.k != \($0)" }.joined(separator: " && ")
    let bins = (0..<200).map { #"{"name":"b\#($0)","filter":"\#(filter) && @.k == 10"},"# }.joined()
    _ = harness.ask(client, "define", #"{"feed":"c","kind":"collection","bins":[\#(bins){"name":"all"}]}"#)
    let text = String(repeating: "x", count: 200)
    let operations = (0..<100).map {
      #"{"method":"update","params":{"feed":"c","element":{"id":\#($0),"k":11,"t":"\#(text)"}}}"#
    }
    harness.supply(client, "transaction", #"{"ops":[\#(operations.joined(separator: ","))]}"#)
    // A turn continues the work twice, and a slice judges about four elements.
    expect(Self.turns(harness, until: client) { _ in } > 8)
    harness.turn()
    expectEqual(Self.value(harness.take(client))?["result"]?["results"]?.items.count, 100)
  }

  /// The filters judge the element in slices; meanwhile reads use the collection.
  @Test(arguments: Log.allCases)
  func longElementTakesSeveralTurns(_ log: Log) {
    let harness = EngineHarness(isDurable: log == .array, slices: SlicedWork("slices", slice: 0))
    let (writer, other) = (harness.connect(), harness.connect())
    _ = harness.ask(
      writer, "define", #"{"feed":"c","kind":"collection","bins":[{"name":"x","filter":"!@..[?@ == 2]"},{"name":"y"}]}"#
    )
    _ = harness.ask(writer, "update", #"{"feed":"c","elements":\#(Self.elements(0..<10))}"#)
    let list = Array(repeating: "1", count: 40_000).joined(separator: ", ")
    harness.supply(writer, "update", #"{"feed":"c","element":{"id":5,"v":[\#(list)]}}"#)
    var reads = 0
    let turns = Self.turns(harness, until: writer) { _ in
      harness.supply(other, "get", #"{"feed":"c","id":7}"#)
      reads += harness.take(other).count
    }
    expect(turns > 6 && reads > 2)
    harness.turn()
    _ = (harness.take(writer), harness.take(other))
    let found = Self.value(harness.ask(other, "get", #"{"feed":"c","id":5}"#))?["result"]?["element"]
    expectEqual(found?["v"]?.items.count, 40_000)
    expectEqual(Self.value(harness.ask(other, "describe", #"{"feed":"c"}"#))?["result"]?["count"]?.int, 18)
  }

  @Test("short patches of a long element, and a new content of an array, take several turns", arguments: Log.allCases)
  func shortRequests(_ log: Log) {
    let harness = EngineHarness(isDurable: log == .array, slices: SlicedWork("slices", slice: 0))
    let (writer, other) = (harness.connect(), harness.connect())
    let numbers = (0..<80_000).map { "\($0)" }
    _ = harness.ask(writer, "define", #"{"feed":"c","kind":"collection"}"#)
    _ = harness.ask(writer, "update", #"{"feed":"c","element":{"id":5,"v":[\#(numbers.joined(separator: ","))]}}"#)
    _ = harness.ask(writer, "define", #"{"feed":"a","kind":"array"}"#)
    _ = harness.ask(writer, "set", #"{"feed":"a","elements":[\#(numbers.joined(separator: ","))]}"#)
    let reversed = numbers.reversed().joined(separator: ",")
    for (method, params) in [
      ("patch", #"{"feed":"c","id":5,"patch":{"n":1}}"#), ("set", #"{"feed":"a","elements":[\#(reversed)]}"#),
    ] {
      harness.supply(writer, method, params)
      var pings = 0
      let turns = Self.turns(harness, until: writer) { _ in
        harness.supply(other, "ping")
        pings += harness.take(other).count
      }
      expect(turns > 6 && pings > 4, "\(method)")
      harness.turn()
      _ = (harness.take(writer), harness.take(other))
    }
    let found = Self.value(harness.ask(other, "get", #"{"feed":"c","id":5}"#))?["result"]?["element"]
    expect(found?["n"]?.int == 1 && found?["v"]?.items.count == 80_000)
    let rows = Self.value(harness.ask(other, "range", #"{"feed":"a","from":0,"count":80000}"#))?["result"]?["elements"]
    expectEqual(rows?.items.map(\.int), (0..<80_000).reversed().map { $0 })
  }

  /// A long definition takes milliseconds, so others have a turn after each.
  @Test("a transaction of long definitions takes a turn for each", arguments: Log.allCases)
  func longDefinitions(_ log: Log) {
    let harness = EngineHarness(isDurable: log == .array, slices: SlicedWork("slices", slice: 0))
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"a","kind":"array"}"#)
    let types = Array(repeating: #""x""#, count: 2000).joined(separator: ",")
    let operations = (0..<40).map {
      #"{"method":"define","params":{"feed":"s\#($0)","kind":"slots","contents":{"x":"a"},"pattern":[\#(types)]}}"#
    }
    harness.supply(client, "transaction", #"{"ops":[\#(operations.joined(separator: ","))]}"#)
    let turns = Self.turns(harness, until: client) { _ in }
    expect(turns > 40)
  }
}
