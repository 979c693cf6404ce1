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
struct SlicedRequestTests {
  /// Whether the requests are stored first.
  enum Log: CaseIterable {
    case none
    case array
  }

  static func harness(_ log: Log, limits: Limits = Limits()) -> EngineHarness {
    EngineHarness(limits: limits, isDurable: log == .array, slices: SlicedWork("slices", slice: 0, isEager: true))
  }

  /// Elements of which each ninth is hidden by the filter of ``rebinned``.
  static func elements(_ ids: some Sequence<Int>, _ value: Int = 0) -> String {
    "[" + ids.map { #"{"id":\#($0),"k":\#(($0 * 7) % 9),"v":\#(value)}"# }.joined(separator: ",") + "]"
  }

  static let rebinned =
    #"{"feed":"c","kind":"collection","bins":[{"name":"some","filter":"@.k > 0","sort":[{"by":"$.k"}]}],"replace":true}"#

  /// Defines `c` with elements.
  static func fill(_ harness: EngineHarness, _ client: ConnectionID, count: Int = 60) {
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
    harness.supply(writer, "update", #"{"feed":"c","elements":\#(Self.elements(30..<90, 5))}"#)
    var (pings, waiting) = (0, 0)
    let turns = Self.turns(harness, until: writer) { _ in
      harness.supply(reader, "ping")
      pings += harness.take(reader).count
      if harness.isExclusive { waiting += 1 }
    }
    expect(turns > 20 && pings > 20)
    expect(waiting > 60, "the views judge sixty elements each")
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
    expect(isSame)
  }

  @Test("a delete yields while it finds the elements of an array that it names", arguments: Log.allCases)
  func identitiesToDelete(_ log: Log) {
    let harness = Self.harness(log)
    let (writer, reader) = (harness.connect(), harness.connect())
    _ = harness.ask(writer, "define", #"{"feed":"list","kind":"array","id":"$.id"}"#)
    _ = harness.ask(writer, "update", #"{"feed":"list","elements":\#(Self.elements(0..<5))}"#)
    let ids = ([3, 1, 3] + (100..<160)).map(String.init).joined(separator: ",")
    harness.supply(writer, "delete", #"{"feed":"list","ids":[\#(ids)]}"#)
    var pings = 0
    let turns = Self.turns(harness, until: writer) { _ in
      harness.supply(reader, "ping")
      pings += harness.take(reader).count
    }
    expect(turns > 60 && pings > 60)
    harness.turn()
    expectEqual(Self.value(harness.take(writer))?["result"]?["deleted"]?.text, "[[0,1],[0,3]]")
  }

  @Test("removed feeds are freed in several turns, and others are read meanwhile", arguments: Log.allCases)
  func removedFeeds(_ log: Log) {
    struct Removed {
      weak var feed: Feed?
    }
    let harness = Self.harness(log)
    let (writer, reader) = (harness.connect(), harness.connect())
    Self.fill(harness, writer)
    let names = (0..<20).map { "f\($0)" }
    func operations(_ method: String, _ more: String = "") -> String {
      let all = names.map { #"{"method":"\#(method)","params":{"feed":"\#($0)"\#(more)}}"# }
      return #"{"ops":[\#(all.joined(separator: ","))]}"#
    }
    _ = harness.ask(writer, "transaction", operations("define", #","kind":"array""#))
    let removed = names.map { Removed(feed: harness.engine.catalog.feeds[$0]) }
    func left() -> Int { removed.count { $0.feed != nil } }
    expectEqual(left(), names.count)
    harness.supply(writer, "transaction", operations("undefine"))
    var (partly, answers) = (0, [Value]())
    _ = Self.turns(harness, until: writer) { _ in
      answers += harness.take(reader).compactMap { Value($0) }
      guard (1..<names.count).contains(left()) else { return }
      partly += 1
      harness.supply(reader, "describe", #"{"feed":"c"}"#)
    }
    expect(partly > names.count / 2 && answers.count > names.count / 2)
    expect(answers.allSatisfy { $0["result"]?["count"]?.int == 60 })
    harness.turn()
    expectEqual(left(), 0)
    expectEqual(Self.value(harness.take(writer))?.errorCode, nil)
  }

  @Test("each turn executes a request, even if its time is over from the beginning", arguments: Log.allCases)
  func slowTurns(_ log: Log) {
    let harness = Self.harness(log)
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"list","kind":"array"}"#)
    let count = 20
    for id in 1...count {
      harness.supply(client, "insert", #"{"feed":"list","elements":[\#(id)]}"#, id: id)
    }
    for _ in 0..<1000 where harness.hasWork || harness.waitingInput(of: client) > 0 { harness.turnOnce() }
    expectEqual(harness.take(client).compactMap { Value($0)?["id"]?.int }, Array(1...count))
  }

  @Test(arguments: Log.allCases)
  func refusedRequestLeavesNothing(_ log: Log) {
    var limits = Limits()
    limits.maxRequestSteps = 90
    let harness = Self.harness(log, limits: limits)
    let (writer, reader) = (harness.connect(), harness.connect())
    Self.fill(harness, writer)
    let before = Self.value(harness.ask(reader, "snapshot", #"{"feed":"c"}"#))
    harness.supply(writer, "define", Self.rebinned)
    expect(Self.turns(harness, until: writer) { _ in } > 20)
    expectEqual(Self.value(harness.take(writer))?["error"]?["code"]?.int, -32007)
    harness.turn()
    expectEqual(Self.value(harness.ask(reader, "snapshot", #"{"feed":"c"}"#)), before)
  }

  @Test(arguments: Log.allCases)
  func stoppingDaemonFinishesTheRequest(_ log: Log) {
    let harness = Self.harness(log)
    let writer = harness.connect()
    Self.fill(harness, writer)
    harness.supply(writer, "define", Self.rebinned)
    for _ in 0..<5 { harness.turnOnce() }
    harness.drain()
    let frames = harness.take(writer).compactMap { Value($0) }
    expectEqual(frames.map { $0["method"]?.text ?? "answer" }, ["answer", #""bye""#])
    expectEqual(frames[0]["result"]?["revision"]?.int, 3)
    expect(harness.isDrained)
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
      harness.supply(other, "ping")
      pings += harness.take(other).count
    }
    expect(turns > 20 && pings > 20)
    let answers = Self.value(harness.take(writer))?.items ?? []
    expectEqual(answers.map { $0["id"]?.int }, [1, 2, 3, 4])
    expectEqual(answers.map { $0["result"]?["revision"]?.int }, [2, 3, 4, 4])
  }

  @Test func imageIsMadeBetweenBatchesOnly() {
    let engine = EngineHarness(isDurable: true, slices: SlicedWork("slices", slice: 0, isEager: true))
    let writer = engine.connect()
    Self.fill(engine, writer)
    engine.supply(writer, "define", Self.rebinned)
    let turns = Self.turns(engine, until: writer) { _ in expect(engine.isWithinBatch) }
    expect(turns > 20)
    expect(!engine.isWithinBatch)
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
      harness.supply(writer, "update", #"{"feed":"c","elements":\#(Self.elements(20..<50, 1))}"#)
      let turns = Self.turns(harness, until: writer) { _ in
        guard harness.isExclusive, harness.engine.catalog.revision > revision else { return }
        stops += 1
        harness.supply(other, "ping")
        harness.supply(reader, "get", #"{"feed":"c","at":[0,0]}"#)
        pings += harness.take(other).count
        reads += harness.take(reader).count
      }
      expect(turns > 0)
      harness.turn()
      deltas.append(harness.take(watcher))
    }
    expect(stops > 20 && pings >= stops - 1 && reads == 0)
    expect(deltas[0] == deltas[1] && deltas[0].count == 5)
  }
}
