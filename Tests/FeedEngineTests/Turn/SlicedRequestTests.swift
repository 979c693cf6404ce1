import FeedJSON
import FeedModel
import FeedServer
import FeedWire
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Requests that change feeds and take several turns.
@Suite struct SlicedRequestTests {
  /// Whether the requests are stored first.
  enum Log: CaseIterable {
    case none
    case array
  }

  private static func harness(_ log: Log, limits: Limits = Limits()) -> EngineHarness {
    EngineHarness(limits: limits, isDurable: log == .array, slices: SlicedWork("slices", slice: 0, isEager: true))
  }

  static func request(_ method: String, _ params: String = "{}", id: Int = 1) -> [UInt8] {
    EngineHarness.frame(#"{"jsonrpc":"2.0","id":\#(id),"method":"\#(method)","params":\#(params)}"#)
  }

  /// Elements of which each ninth is hidden by the filter of ``rebinned``.
  private static func elements(_ ids: some Sequence<Int>, _ value: Int = 0) -> String {
    "[" + ids.map { #"{"id":\#($0),"k":\#(($0 * 7) % 9),"v":\#(value)}"# }.joined(separator: ",") + "]"
  }

  private static let rebinned =
    #"{"feed":"c","kind":"collection","bins":[{"name":"some","filter":"@.k > 0","sort":[{"by":"$.k"}]}],"replace":true}"#

  /// Defines `c` with elements.
  private static func fill(_ harness: EngineHarness, _ client: ConnectionID, count: Int = 60) {
    _ = harness.ask(client, "define", #"{"feed":"c","kind":"collection"}"#)
    _ = harness.ask(client, "update", #"{"feed":"c","elements":\#(elements(0..<count))}"#)
  }

  static func value(_ frames: [String]) -> Value? { frames.first.flatMap { Value($0) } }

  /// Runs turns until a client gets an answer. Calls `body` between them. Returns the number of turns.
  static func turns(_ harness: EngineHarness, until client: ConnectionID, _ body: (Int) -> Void) -> Int {
    for turn in 1..<100_000 {
      harness.turnOnce()
      if harness.halfFrame(of: client) > 0 { return turn }
      body(turn)
    }
    return 0
  }

  /// The search for the feeds that selected rows come from stops too.
  @Test(arguments: Log.allCases) func readsRunBetweenSlicesOfASelection(_ log: Log) {
    let harness = Self.harness(log)
    let (writer, reader) = (harness.connect(), harness.connect())
    Self.fill(harness, writer, count: 300)
    for definition in [
      #"{"feed":"one","kind":"array","multiple":false}"#, #"{"feed":"p","kind":"composed","children":["c","one"]}"#,
      #"{"feed":"v","kind":"view","of":"p","sort":[{"by":"$.k"}]}"#,
    ] { _ = harness.ask(writer, "define", definition) }
    let rows = (0..<300).map { "[0,\($0)]" }.joined(separator: ",")
    harness.supply(writer, Self.request("select", #"{"feed":"v","at":[\#(rows)]}"#))
    var seen = 0
    let turns = Self.turns(harness, until: writer) { turn in
      if turn % 3 > 0 { return }
      harness.supply(reader, Self.request("selected", #"{"feed":"v"}"#))
      for answer in harness.take(reader).compactMap({ Value($0)?["result"]?["selected"] }) {
        // The last one may come after the selection.
        if answer.items.isEmpty { seen += 1 } else { expectEqual(answer.items.count, 300) }
      }
    }
    #expect(turns > 6 && seen > 0, "\(turns) turns, \(seen) reads")
    expectEqual(Self.value(harness.take(writer))?["result"]?["selected"]?.items.count, 300)
  }

  /// A feed with other children is not read until the commit ends.
  @Test(arguments: Log.allCases, ["insertChild", "removeChild", "define"])
  func noReadSeesOtherChildrenBeforeTheirRevision(_ log: Log, _ method: String) throws {
    let harness = Self.harness(log)
    let (writer, reader) = (harness.connect(), harness.connect())
    Self.fill(harness, writer, count: 300)
    _ = harness.ask(writer, "define", #"{"feed":"a","kind":"array"}"#)
    let children = method == "insertChild" ? #"["a"]"# : #"["c","a"]"#
    _ = harness.ask(writer, "define", #"{"feed":"p","kind":"composed","children":\#(children)}"#)
    let count = { (answer: Value?) in answer?["result"]?["count"]?.int }
    let before = count(Self.value(harness.ask(reader, "describe", #"{"feed":"p"}"#)))
    let revision = Int(harness.engine.catalog.revision)
    let params =
      method == "define"
      ? #"{"feed":"p","kind":"composed","children":["a"],"replace":true}"# : #"{"feed":"p","child":"c"}"#
    harness.supply(writer, Self.request(method, params))
    var others = 0
    _ = Self.turns(harness, until: writer) { _ in
      harness.supply(reader, Self.request("describe", #"{"feed":"p"}"#))
      let answers = harness.take(reader).map { Value($0) }
      others += answers.count { $0?["result"]?["revision"]?.int == revision && count($0) != before }
    }
    expectEqual(others, 0)
    expectEqual(Self.value(harness.take(writer))?["error"], nil)
  }

  @Test(arguments: Log.allCases, ["define", "set", "delete", "transaction", "view"])
  func readsBetweenSlicesSeeTheStateBefore(_ log: Log, _ method: String) throws {
    let harness = Self.harness(log)
    let (writer, reader) = (harness.connect(), harness.connect())
    Self.fill(harness, writer)
    let before = Self.value(harness.ask(reader, "snapshot", #"{"feed":"c"}"#))?["result"]
    let frame =
      switch method {
      case "define": Self.request("define", Self.rebinned)
      case "set": Self.request("set", #"{"feed":"c","elements":\#(Self.elements(40..<90, 1))}"#)
      case "delete": Self.request("delete", #"{"feed":"c","where":"@.k < 5"}"#)
      case "view":
        Self.request("define", #"{"feed":"v","kind":"view","of":"c","filter":"@.k < 5","sort":[{"by":"$.k"}]}"#)
      default:
        Self.request(
          "transaction",
          #"{"ops":[{"method":"update","params":{"feed":"c","elements":\#(Self.elements(0..<60, 2))}},"#
            + #"{"method":"delete","params":{"feed":"c","where":"@.k < 5"}}]}"#)
      }
    harness.supply(writer, frame)
    var seen = 0
    let turns = Self.turns(harness, until: writer) { turn in
      if turn % 3 > 0 { return }
      harness.supply(reader, Self.request("snapshot", #"{"feed":"c"}"#) + Self.request("ping"))
      let answers = harness.take(reader).compactMap { Value($0)?["result"] }
      // When the change has taken effect, the memory of the state before is freed, also in slices.
      for answer in answers where answer["sections"] != nil && answer["revision"]?.int == 2 {
        let isSame = answer == before
        #expect(isSame)
        seen += 1
      }
    }
    #expect(turns > 20)
    #expect(seen > 5, "reads are answered while the request is under way")
    expectEqual(Self.value(harness.take(writer))?["error"], nil)
    harness.turn()

    // The result is that of a request that is executed at once.
    let other = EngineHarness(isDurable: log == .array)
    let client = other.connect()
    Self.fill(other, client)
    other.deliver(client, frame)
    _ = other.take(client)
    for feed in method == "view" ? ["c", "v"] : ["c"] {
      let expected = Self.value(other.ask(client, "snapshot", #"{"feed":"\#(feed)"}"#))?["result"]
      _ = harness.take(reader)
      let found = Self.value(harness.ask(reader, "snapshot", #"{"feed":"\#(feed)"}"#))?["result"]
      expectEqual(found, expected)
    }
  }

  @Test func longElementsAreNotTakenForManyElements() {
    let engine = Self.harness(.none).engine
    func steps(_ params: String, bytes: Int) -> Int {
      var scanner = JSONScanner()
      return Array(params.utf8).withUnsafeBytes { text in
        guard let view = try? scanner.scan(text) else { return 0 }
        return engine.expectedSteps(of: .update, Parameters(object: view), bytes: bytes)
      }
    }
    let elements = Self.elements(0..<1000)
    expectEqual(steps(#"{"feed":"c","elements":\#(elements)}"#, bytes: 230_000), 1000 + 230_000 / 512)
    expectEqual(steps(#"{"feed":"c","where":"@.k > 0","patch":{}}"#, bytes: 640), 10)
  }

  @Test("a refused transaction restores a feed that it redefined and then changed", arguments: Log.allCases)
  func refusedRedefinition(_ log: Log) {
    let harness = Self.harness(log)
    let client = harness.connect()
    Self.fill(harness, client)
    func state() -> [String] {
      ["describe", "snapshot"].flatMap { harness.ask(client, $0, #"{"feed":"c"}"#) }
    }
    let before = state()
    let refused = harness.ask(
      client, "transaction",
      #"{"ops":[{"method":"define","params":\#(Self.rebinned)},"#
        + #"{"method":"update","params":{"feed":"c","elements":\#(Self.elements(0..<60, 2))}},"#
        + #"{"method":"delete","params":{"feed":"nothing","id":1}}]}"#)
    expectEqual(Self.value(refused)?["error"]?["code"]?.int, -32000)
    expectEqual(state(), before)
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
    harness.supply(client, Self.request("transaction", #"{"ops":[\#(operations.joined(separator: ","))]}"#))
    let turns = Self.turns(harness, until: client) { _ in }
    #expect(turns > 40)
  }

  @Test("a feed that a short transaction changes is read while the transaction judges another", arguments: Log.allCases)
  func shortTransaction(_ log: Log) throws {
    let harness = EngineHarness(isDurable: log == .array, slices: SlicedWork("slices", slice: 0))
    let (writer, reader) = (harness.connect(), harness.connect())
    Self.fill(harness, writer, count: 10_000)
    harness.turn()
    _ = harness.ask(writer, "define", #"{"feed":"d","kind":"collection"}"#)
    harness.supply(writer, Self.request("update", #"{"feed":"d","elements":\#(Self.elements(0..<10_000))}"#))
    harness.turn()
    _ = harness.take(writer)
    harness.supply(
      writer,
      Self.request(
        "transaction",
        #"{"ops":[{"method":"update","params":{"feed":"d","element":{"id":1,"v":9}}},"#
          + #"{"method":"delete","params":{"feed":"c","where":"@.k < 5"}}]}"#))
    var seen = 0
    let turns = Self.turns(harness, until: writer) { _ in
      harness.supply(reader, Self.request("get", #"{"feed":"d","id":1}"#))
      for answer in harness.take(reader) where answer.contains(#""v":0"#) { seen += 1 }
    }
    #expect(turns > 20)
    #expect(seen > turns / 2, "\(seen) answers in \(turns) turns")
    harness.turn()
    _ = harness.take(reader)
    expectEqual(harness.ask(reader, "get", #"{"feed":"d","id":1}"#).first?.contains(#""v":9"#), true)
  }

  @Test("reads between the slices of a request that changes an array see the rows before", arguments: Log.allCases)
  func arrays(_ log: Log) throws {
    let requests = [
      ("set", #"{"feed":"a","elements":\#(Self.elements(40..<90, 1))}"#),
      ("insert", #"{"feed":"a","at":[3,9],"elements":\#(Self.elements(100..<102))}"#),
      ("update", #"{"feed":"a","elements":\#(Self.elements(20..<50, 2))}"#),
      ("delete", #"{"feed":"a","where":"@.k < 5"}"#), ("remove", #"{"feed":"a","at":[0,5,7]}"#),
      ("move", #"{"feed":"a","id":7,"to":1}"#),
      ("define", #"{"feed":"a","kind":"array","id":"$.id","type":"$.k","retain":{"count":40},"replace":true}"#),
      (
        "transaction",
        #"{"ops":[{"method":"set","params":{"feed":"a","elements":\#(Self.elements(10..<70, 3))}},"#
          + #"{"method":"delete","params":{"feed":"a","where":"@.k < 5"}}]}"#
      ),
    ]
    for (method, params) in requests {
      let harnesses = [Self.harness(log), EngineHarness(isDurable: log == .array)]
      var results: [Value?] = []
      for harness in harnesses {
        let (writer, reader) = (harness.connect(), harness.connect())
        _ = harness.ask(writer, "define", #"{"feed":"a","kind":"array","id":"$.id"}"#)
        _ = harness.ask(writer, "update", #"{"feed":"a","elements":\#(Self.elements(0..<60))}"#)
        let before = Self.value(harness.ask(reader, "snapshot", #"{"feed":"a"}"#))?["result"]
        harness.supply(writer, Self.request(method, params))
        var seen = 0
        let turns = Self.turns(harness, until: writer) { turn in
          if turn % 3 > 0 { return }
          harness.supply(reader, Self.request("snapshot", #"{"feed":"a"}"#))
          for answer in harness.take(reader).compactMap({ Value($0)?["result"] }) where answer["revision"]?.int == 2 {
            let isSame = answer == before
            #expect(isSame, "\(method)")
            seen += 1
          }
        }
        if harness === harnesses[0] { #expect(turns > 5 && seen > 0, "\(method): \(turns) turns, \(seen) reads") }
        expectEqual(Self.value(harness.take(writer))?["error"], nil)
        harness.turn()
        _ = harness.take(reader)
        results.append(Self.value(harness.ask(reader, "snapshot", #"{"feed":"a"}"#))?["result"])
      }
      let isSame = results[0] == results[1]
      #expect(isSame, "\(method)")
    }
  }

  @Test("a request yields while its change is derived by views, and pings are answered", arguments: Log.allCases)
  func publication(_ log: Log) {
    let harness = Self.harness(log)
    let (writer, reader, watcher) = (harness.connect(), harness.connect(), harness.connect())
    Self.fill(harness, writer)
    for view in 0..<3 {
      let filter = #""filter":"@.k < \#(view + 3)","sort":[{"by":"$.v"}]"#
      _ = harness.ask(writer, "define", #"{"feed":"v\#(view)","kind":"view","of":"c",\#(filter)}"#)
    }
    _ = harness.ask(watcher, "watch", #"{"feed":"v2","initial":false}"#)
    harness.supply(writer, Self.request("update", #"{"feed":"c","elements":\#(Self.elements(30..<90, 5))}"#))
    var (pings, waiting) = (0, 0)
    let turns = Self.turns(harness, until: writer) { _ in
      harness.supply(reader, Self.request("ping"))
      pings += harness.take(reader).count
      if harness.isExclusive { waiting += 1 }
    }
    #expect(turns > 20 && pings > 20)
    #expect(waiting > 60, "the views judge sixty elements each")
    harness.turn()
    let deltas = harness.take(watcher).compactMap { Value($0) }
    expectEqual(deltas.count, 1)
    expectEqual(deltas.first?["params"]?["revision"]?.int, 6)
    let other = EngineHarness(isDurable: log == .array)
    let client = other.connect()
    Self.fill(other, client)
    _ = other.ask(client, "define", #"{"feed":"v2","kind":"view","of":"c","filter":"@.k < 5","sort":[{"by":"$.v"}]}"#)
    _ = other.ask(client, "update", #"{"feed":"c","elements":\#(Self.elements(30..<90, 5))}"#)
    _ = harness.take(reader)
    let found = Self.value(harness.ask(reader, "snapshot", #"{"feed":"v2"}"#))?["result"]?["sections"]
    let expected = Self.value(other.ask(client, "snapshot", #"{"feed":"v2"}"#))?["result"]?["sections"]
    let isSame = found == expected && found != nil
    #expect(isSame)
  }

  @Test(arguments: Log.allCases)
  func changesOfOthersWaitAndAreExecutedInOrder(_ log: Log) {
    let harness = Self.harness(log)
    let (writer, other) = (harness.connect(), harness.connect())
    Self.fill(harness, writer)
    let before = Self.value(harness.ask(other, "ping"))
    #expect(before != nil)
    harness.supply(writer, Self.request("define", Self.rebinned) + Self.request("get", #"{"feed":"c","id":9}"#, id: 2))
    harness.turnOnce()
    harness.turnOnce()
    harness.supply(other, Self.request("update", #"{"feed":"c","element":{"id":9,"k":1,"v":5}}"#, id: 1))
    harness.supply(other, Self.request("get", #"{"feed":"c","id":9}"#, id: 2))
    let turns = Self.turns(harness, until: writer) { _ in #expect(harness.take(other).isEmpty) }
    #expect(turns > 20)
    harness.turn()
    let first = harness.take(writer).compactMap { Value($0) }
    let second = harness.take(other).compactMap { Value($0) }
    expectEqual(first.map { $0["id"]?.int }, [1, 2])
    expectEqual(second.map { $0["id"]?.int }, [1, 2])
    expectEqual(first[0]["result"]?["revision"]?.int, 3)
    expectEqual(second[0]["result"]?["revision"]?.int, 4)
    expectEqual(second[1]["result"]?["element"]?["v"]?.int, 5)
  }

  @Test("each turn executes a request, even if its time is over from the beginning", arguments: Log.allCases)
  func slowTurns(_ log: Log) {
    let harness = Self.harness(log)
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"list","kind":"array"}"#)
    let count = 20
    for id in 1...count {
      harness.supply(client, Self.request("insert", #"{"feed":"list","elements":[\#(id)]}"#, id: id))
    }
    for _ in 0..<1000 where harness.hasWork || harness.waitingInput(of: client) > 0 { harness.turnOnce() }
    expectEqual(harness.take(client).compactMap { Value($0)?["id"]?.int }, Array(1...count))
  }

  @Test(arguments: Log.allCases)
  func requestOfAClientThatLeftIsExecuted(_ log: Log) {
    let harness = Self.harness(log)
    let (writer, reader) = (harness.connect(), harness.connect())
    Self.fill(harness, writer)
    harness.supply(writer, Self.request("define", Self.rebinned))
    for _ in 0..<5 { harness.turnOnce() }
    harness.disconnect(writer)
    #expect(!harness.isOpen(writer))
    let feed = Self.value(harness.ask(reader, "describe", #"{"feed":"c"}"#))?["result"]
    expectEqual(feed?["revision"]?.int, 3)
  }

  @Test(arguments: Log.allCases)
  func refusedRequestLeavesNothing(_ log: Log) {
    var limits = Limits()
    limits.maxRequestSteps = 90
    let harness = Self.harness(log, limits: limits)
    let (writer, reader) = (harness.connect(), harness.connect())
    Self.fill(harness, writer)
    let before = Self.value(harness.ask(reader, "snapshot", #"{"feed":"c"}"#))
    harness.supply(writer, Self.request("define", Self.rebinned))
    #expect(Self.turns(harness, until: writer) { _ in } > 20)
    expectEqual(Self.value(harness.take(writer))?["error"]?["code"]?.int, -32007)
    harness.turn()
    expectEqual(Self.value(harness.ask(reader, "snapshot", #"{"feed":"c"}"#)), before)
  }

  @Test(arguments: Log.allCases)
  func stoppingDaemonFinishesTheRequest(_ log: Log) {
    let harness = Self.harness(log)
    let writer = harness.connect()
    Self.fill(harness, writer)
    harness.supply(writer, Self.request("define", Self.rebinned))
    for _ in 0..<5 { harness.turnOnce() }
    harness.drain()
    let frames = harness.take(writer).compactMap { Value($0) }
    expectEqual(frames.map { $0["method"]?.text ?? "answer" }, ["answer", #""bye""#])
    expectEqual(frames[0]["result"]?["revision"]?.int, 3)
    #expect(harness.isDrained)
  }

  @Test(arguments: Log.allCases)
  func watchersGetOneDeltaAfterTheLastSlice(_ log: Log) {
    let harness = Self.harness(log)
    let (writer, watcher) = (harness.connect(), harness.connect())
    Self.fill(harness, writer, count: 60)
    _ = harness.ask(watcher, "watch", #"{"feed":"c","initial":false}"#)
    harness.supply(
      writer,
      Self.request(
        "transaction",
        #"{"ops":[{"method":"set","params":{"feed":"c","elements":\#(Self.elements(30..<90, 1))}},"#
          + #"{"method":"delete","params":{"feed":"c","where":"@.k == 5"}}]}"#))
    let turns = Self.turns(harness, until: writer) { _ in }
    #expect(turns > 20)
    harness.turn()
    let deltas = harness.take(watcher).compactMap { Value($0) }
    expectEqual(deltas.count, 1)
    expectEqual(deltas.first?["params"]?["from"]?.int, 2)
    expectEqual(deltas.first?["params"]?["revision"]?.int, 3)
  }

  /// Without slices all entries of an array are answered at once; with them each long one takes its turns.
  @Test(arguments: Log.allCases)
  func requestsOfAnArrayAreAnsweredTogether(_ log: Log) {
    let harness = Self.harness(log)
    let (writer, other) = (harness.connect(), harness.connect())
    Self.fill(harness, writer)
    func text(_ method: String, _ params: String, _ id: Int) -> String {
      #"{"jsonrpc":"2.0","id":\#(id),"method":"\#(method)","params":\#(params)}"#
    }
    let array = [
      text("get", #"{"feed":"c","id":9}"#, 1), text("define", Self.rebinned, 2),
      text("delete", #"{"feed":"c","where":"@.k < 5"}"#, 3), text("get", #"{"feed":"c","id":9}"#, 4),
    ]
    harness.supply(writer, EngineHarness.frame("[" + array.joined(separator: ",") + "]"))
    var pings = 0
    let turns = Self.turns(harness, until: writer) { _ in
      harness.supply(other, Self.request("ping"))
      pings += harness.take(other).count
    }
    #expect(turns > 20 && pings > 20)
    let answers = Self.value(harness.take(writer))?.items ?? []
    expectEqual(answers.map { $0["id"]?.int }, [1, 2, 3, 4])
    expectEqual(answers.map { $0["result"]?["revision"]?.int }, [2, 3, 4, 4])
  }

  @Test func imageIsMadeBetweenBatchesOnly() {
    let engine = EngineHarness(isDurable: true, slices: SlicedWork("slices", slice: 0, isEager: true))
    let writer = engine.connect()
    Self.fill(engine, writer)
    engine.supply(writer, Self.request("define", Self.rebinned))
    let turns = Self.turns(engine, until: writer) { _ in #expect(engine.isWithinBatch) }
    #expect(turns > 20)
    #expect(!engine.isWithinBatch)
  }

  /// Defines views of `c` whose filters take many steps, and watches them.
  private static func addViews(_ harness: EngineHarness, _ count: Int, watchedBy watcher: ConnectionID) {
    for number in 0..<count {
      _ = harness.ask(
        watcher, "define",
        #"{"feed":"v\#(number)","kind":"view","of":"c","filter":"@..[?@..[?@ != \#(number)]] || @.k > 2"}"#)
      _ = harness.ask(watcher, "watch", #"{"feed":"v\#(number)","initial":false}"#)
    }
    _ = harness.take(watcher)
  }

  @Test(arguments: Log.allCases)
  func pingsAreAnsweredDuringPublication(_ log: Log) {
    let (harness, plain) = (Self.harness(log), EngineHarness(isDurable: log == .array))
    var (pings, reads, stops) = (0, 0, 0)
    var deltas: [[String]] = []
    for harness in [harness, plain] {
      let (writer, watcher) = (harness.connect(), harness.connect())
      let (other, reader) = (harness.connect(), harness.connect())
      Self.fill(harness, writer, count: 30)
      Self.addViews(harness, 5, watchedBy: watcher)
      let revision = harness.engine.catalog.revision
      harness.supply(writer, Self.request("update", #"{"feed":"c","elements":\#(Self.elements(20..<50, 1))}"#))
      let turns = Self.turns(harness, until: writer) { _ in
        guard harness.isExclusive, harness.engine.catalog.revision > revision else { return }
        stops += 1
        harness.supply(other, Self.request("ping"))
        harness.supply(reader, Self.request("get", #"{"feed":"c","at":[0,0]}"#))
        pings += harness.take(other).count
        reads += harness.take(reader).count
      }
      #expect(turns > 0)
      harness.turn()
      deltas.append(harness.take(watcher))
    }
    #expect(stops > 20 && pings >= stops - 1 && reads == 0)
    #expect(deltas[0] == deltas[1] && deltas[0].count == 5)
  }

  @Test(arguments: Log.allCases)
  func shortUpdateBelowSlowViewsTakesSeveralTurns(_ log: Log) {
    let harness = EngineHarness(isDurable: log == .array, slices: SlicedWork("slices", slice: 0))
    let (writer, watcher, other) = (harness.connect(), harness.connect(), harness.connect())
    Self.fill(harness, writer, count: 2)
    Self.addViews(harness, 60, watchedBy: watcher)
    let list = (0..<30).map(String.init).joined(separator: ",")
    harness.supply(
      writer, Self.request("update", #"{"feed":"c","element":{"id":1,"k":1,"v":[[\#(list)],[\#(list)]]}}"#))
    var pings = 0
    let turns = Self.turns(harness, until: writer) { _ in
      harness.supply(other, Self.request("ping"))
      pings += harness.take(other).count
    }
    #expect(turns > 5 && pings > 3)
    harness.turn()
    expectEqual(harness.take(watcher).count, 60)
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
    harness.supply(writer, Self.request("update", #"{"feed":"c","element":{"id":5,"v":[\#(list)]}}"#))
    var reads = 0
    let turns = Self.turns(harness, until: writer) { _ in
      harness.supply(other, Self.request("get", #"{"feed":"c","id":7}"#))
      reads += harness.take(other).count
    }
    #expect(turns > 6 && reads > 2)
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
      harness.supply(writer, Self.request(method, params))
      var pings = 0
      let turns = Self.turns(harness, until: writer) { _ in
        harness.supply(other, Self.request("ping"))
        pings += harness.take(other).count
      }
      #expect(turns > 6 && pings > 4, "\(method)")
      harness.turn()
      _ = (harness.take(writer), harness.take(other))
    }
    let found = Self.value(harness.ask(other, "get", #"{"feed":"c","id":5}"#))?["result"]?["element"]
    #expect(found?["n"]?.int == 1 && found?["v"]?.items.count == 80_000)
    let rows = Self.value(harness.ask(other, "range", #"{"feed":"a","from":0,"count":80000}"#))?["result"]?["elements"]
    expectEqual(rows?.items.map(\.int), (0..<80_000).reversed().map { $0 })
  }
}
