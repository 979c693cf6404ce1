import FeedModel
import FeedWire
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// How much work joins one batch, and whose.
struct BatchWorkTests {
  private let harness = EngineHarness(isDurable: true)

  /// Defines `c` with 20,000 elements, and an array `mine`.
  private func fill() {
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"c","kind":"collection"}"#)
    _ = harness.ask(client, "define", #"{"feed":"mine","kind":"array"}"#)
    let elements = (0..<20_000).map { #"{"id":\#($0)}"# }.joined(separator: ",")
    _ = harness.ask(client, "update", #"{"feed":"c","elements":[\#(elements)]}"#)
  }

  /// One user sends 200 requests that judge all elements; then another one sends a short request.
  @Test(
    "a change of another user joins the next batch",
    arguments: [
      ("delete", #"{"feed":"c","where":"@.v == 1"}"#), ("set", #"{"feed":"c","elements":[]}"#),
      ("define", #"{"feed":"c","kind":"collection","bins":[{"name":"x","filter":"@.v == 1"}],"replace":true}"#),
      ("define", #"{"feed":"v","kind":"view","of":"c","sort":[{"by":"$.v"}],"replace":true}"#),
      ("transaction", #"{"ops":[{"method":"delete","params":{"feed":"c","where":"@.v == 1"}}]}"#),
    ])
  func changesOfOthers(_ method: String, _ params: String) {
    fill()
    let (many, one) = (harness.connect(uid: 1), harness.connect(uid: 2))
    harness.log?.isHeld = true
    harness.supply(many, (0..<200).flatMap { EngineHarness.request(method, params, id: $0) })
    harness.turn()
    harness.supply(one, "insert", #"{"feed":"mine","element":1}"#, id: 0)
    harness.turn()
    // The batch in flight, and the next one.
    var answered = 0
    for _ in 0..<2 {
      harness.log?.store()
      harness.turn()
      answered += harness.take(many).count
    }
    expectEqual(harness.take(one).count, 1)
    expect((1...4).contains(answered), "\(answered) requests were answered")
    while harness.log?.inFlight.isEmpty == false {
      harness.log?.store()
      harness.turn()
    }
    expectEqual(answered + harness.take(many).count, 200)
  }

  @Test func shortRequestsJoinOneBatch() {
    fill()
    let client = harness.connect()
    harness.log?.isHeld = true
    harness.supply(
      client, (0..<400).flatMap { EngineHarness.request("update", #"{"feed":"c","element":{"id":\#($0)}}"#, id: $0) })
    harness.turn()
    harness.log?.store()
    harness.turn()
    harness.log?.store()
    harness.turn()
    expectEqual(harness.take(client).count, 400)
    expectEqual(harness.log?.inFlight.isEmpty, true)
  }

  /// Counting the rows of a view may evaluate it.
  @Test("the rows of feeds that show others are not counted")
  func estimates() throws {
    fill()
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"v","kind":"view","of":"c","sort":[{"by":"$.id"}]}"#)
    func work(_ method: FeedWire.Method, _ params: String) throws -> Int {
      try withJSON(params) { harness.engine.work(of: method, Parameters(object: $0), bytes: params.utf8.count) }
    }
    let filter = #""where":"@.v == 1""#
    try expect(work(.delete, #"{"feed":"c",\#(filter)}"#) >= 20_000)
    try expect((1000..<10_000).contains(work(.delete, #"{"feed":"v",\#(filter)}"#)))
    try expect((1000..<10_000).contains(work(.define, #"{"feed":"w","kind":"view","of":"v"}"#)))
    try expect(work(.update, #"{"feed":"c","element":{"id":1}}"#) < 10)
    try expect(work(.define, #"{"feed":"new","kind":"array"}"#) < 100)
  }

  @Test func slowFiltersAreKnownWhileAFeedHasThem() {
    let client = harness.connect()
    func ask(_ method: String, _ params: String) { _ = harness.ask(client, method, params) }
    func define(_ feed: String, _ filter: String) {
      let bins = #"[{"name":"x","filter":"\#(filter)"}]"#
      ask("define", #"{"feed":"\#(feed)","kind":"collection","bins":\#(bins),"replace":true}"#)
    }
    var isKnown: Bool { harness.engine.catalog.mayHaveSlowFilters(for: 4000) }
    define("short", "@.v == 1")
    expect(!isKnown)
    for feed in ["a", "b"] { define(feed, "@.a[?count($.a[?@ > 1]) == 7]") }
    expect(isKnown && !harness.engine.catalog.mayHaveSlowFilters(for: 60))
    ask("undefine", #"{"feed":"a"}"#)
    expect(isKnown)
    ask(
      "transaction",
      #"{"ops":[{"method":"undefine","params":{"feed":"b"}},{"method":"delete","params":{"feed":"none","id":1}}]}"#)
    expect(isKnown, "a refused transaction defines the feed again")
    define("b", "@.v == 1")
    expect(!isKnown)
    define("b", "@.a[?count($.a[?@ > 1]) == 7]")
    expect(isKnown)
    ask("undefine", #"{"feed":"b"}"#)
    expect(!isKnown)
  }

  // MARK: The room of a batch

  @Test func roomShrinksAfterLongBatchesAndGrowsAfterQuickOnes() {
    var room = BatchRoom()
    let most = room.work
    room.adapt(work: 1000, time: 30_000_000)
    expectEqual(room.work, most)
    // Ten times too long.
    room.adapt(work: 1000, time: 400_000_000)
    expectEqual(room.work, 100)
    // A batch that was not full proves nothing.
    room.adapt(work: 10, time: 0)
    expectEqual(room.work, 100)
    room.adapt(work: 90, time: 10_000_000)
    expectEqual(room.work, 200)
    for _ in 0..<20 { room.adapt(work: room.work, time: 0) }
    expectEqual(room.work, most)
    for _ in 0..<20 { room.adapt(work: room.work, time: 1_000_000_000_000) }
    expectEqual(room.work, 1)
    // A single request that takes longer than the estimate of all that fits does not widen the room.
    room.adapt(work: 1_000_000, time: 50_000_000)
    expectEqual(room.work, 1)
  }
}

/// When a turn looks at the clock.
struct ClockLooksTests {
  /// A runner whose slice the test uses up.
  private final class Runner: SliceRunner {
    var timeLeft: UInt64 = 2_000_000
    let isEager = false
    func beginSlice() { timeLeft = 2_000_000 }
    func run(_ work: @escaping () -> Void) -> Bool { work(); return true }
    func resume() -> Bool { true }
    func suspend() {}
    func end() {}
  }

  /// Executes requests that take `time` nanoseconds until the turn is over. Returns their number.
  private func requests(taking time: UInt64, _ looks: inout ClockLooks, _ runner: Runner) -> Int {
    let work = LongWork(Catalog(limits: Limits(), seed: 1).commit, runner)
    work.beginTurn()
    looks.begin(work)
    for count in 1..<100_000 {
      runner.timeLeft = runner.timeLeft > time ? runner.timeLeft - time : 0
      if looks.isTurnOver(work) { return count }
    }
    return 0
  }

  @Test func slowRequestsAreFollowedByALookEach() {
    var looks = ClockLooks()
    let runner = Runner()
    // The first turn does not know how long requests take.
    expect(requests(taking: 1_000_000, &looks, runner) <= 8)
    for _ in 0..<4 { _ = requests(taking: 600_000, &looks, runner) }
    expectEqual(requests(taking: 600_000, &looks, runner), 4)
    // Quick ones are looked at seldom again, and the turn ends soon after its time.
    for _ in 0..<4 { expect((200...208).contains(requests(taking: 10_000, &looks, runner))) }
  }
}
