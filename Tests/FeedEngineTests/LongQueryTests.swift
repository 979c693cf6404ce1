import FeedServer
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Queries that are evaluated in slices of several turns.
struct LongQueryTests {
  private static func harness(isEager: Bool = false) -> EngineHarness {
    EngineHarness(queries: SlicedWork("queries", slice: 0, isEager: isEager))
  }

  private static func query(_ path: String, places: Bool = false, id: Int = 1) -> [UInt8] {
    let params = #"{"feed":"list","path":"\#(path)","places":\#(places)}"#
    return EngineHarness.request("query", params, id: id)
  }

  /// Fills a list with `count` elements of about 100 bytes.
  private static func fill(_ harness: EngineHarness, _ client: ConnectionID, count: Int) {
    _ = harness.ask(client, "define", #"{"feed":"list","kind":"array"}"#)
    let numbers = (0..<40).map(String.init).joined(separator: ",")
    let elements = (0..<count).map { #"{"a":\#($0),"n":[\#(numbers)]}"# }.joined(separator: ",")
    _ = harness.ask(client, "insert", #"{"feed":"list","elements":[\#(elements)]}"#)
  }

  /// Runs turns until a client gets an answer. Returns the number of turns.
  private static func turns(
    _ harness: EngineHarness, until client: ConnectionID, _ body: (Int) -> Void = { _ in }
  ) -> Int {
    for turn in 1..<100_000 {
      harness.turnOnce()
      if harness.halfFrame(of: client) > 0 { return turn }
      body(turn)
    }
    return 0
  }

  private static let paths = [
    "$[*].a", "$[-1].a", "$[::-1].a", "$[?@.a>2].a", "$[?@.a==$[0].a].a", "$..a", "$[0,2]", "$.a", "$", "$..n[?@==3]",
    "$[*].n[?count(@..*) < 5]", "$[4:1:-1]..*",
  ]

  @Test(arguments: paths, [false, true])
  func slicedQueryHasTheSameAnswer(path: String, places: Bool) {
    let (plain, sliced) = (EngineHarness(), Self.harness(isEager: true))
    var answers: [[String]] = []
    for harness in [plain, sliced] {
      let client = harness.connect()
      Self.fill(harness, client, count: 8)
      harness.deliver(client, Self.query(path, places: places))
      answers.append(harness.take(client))
    }
    expect(answers[0] == answers[1] && answers[0].count == 1)
  }

  @Test("expressions that are read from elements are compiled in several turns")
  func patternsOfElements() {
    let harness = Self.harness()
    let client = harness.connect()
    _ = harness.ask(client, "define", #"{"feed":"list","kind":"array"}"#)
    let elements = (0..<1000).map { #"{"t":"a","r":"[a-z]{1,50}\#($0)"}"# }.joined(separator: ",")
    _ = harness.ask(client, "insert", #"{"feed":"list","elements":[\#(elements)],"result":"counts"}"#)
    func turns(_ path: String) -> Int {
      harness.supply(client, Self.query(path))
      defer { _ = harness.take(client) }
      return Self.turns(harness, until: client)
    }
    expect(turns("$[?match(@.t, @.r)]") > 2 * turns("$[?match(@.t, '[a-z]{1,50}1')]"))
  }

  @Test("the nodes of many elements are reversed in parts")
  func manyNodesBackwards() {
    let harness = Self.harness()
    let client = harness.connect()
    let count = 20_000
    _ = harness.ask(client, "define", #"{"feed":"list","kind":"array"}"#)
    let elements = (0..<count).map { #"{"a":\#($0)}"# }.joined(separator: ",")
    _ = harness.ask(client, "insert", #"{"feed":"list","elements":[\#(elements)],"result":"counts"}"#)
    func ask(_ path: String) -> (turns: Int, answer: String) {
      harness.supply(client, Self.query(path, places: true))
      return (Self.turns(harness, until: client), harness.take(client).joined())
    }
    func answer(_ rows: some Sequence<Int>) -> String {
      let (nodes, places) = (rows.map { "\($0)" }, rows.map { "[0,\($0)]" })
      return #""nodes":[\#(nodes.joined(separator: ","))],"places":[\#(places.joined(separator: ","))]"#
    }
    let (forwards, backwards) = (ask("$[*].a"), ask("$[::-1].a"))
    expect(forwards.answer.contains(answer(0..<count)))
    expect(backwards.answer.contains(answer((0..<count).reversed())))
    expect(backwards.turns > forwards.turns)
  }

  @Test(arguments: ["$..[?@==3]", "$[0,1]"])
  func othersAreAnsweredDuringALongQuery(path: String) {
    let harness = Self.harness()
    let (client, other) = (harness.connect(), harness.connect(uid: 1001))
    Self.fill(harness, client, count: 1000)
    harness.supply(client, Self.query(path))
    var pings = 0
    let turns = Self.turns(harness, until: client) { turn in
      harness.supply(other, "ping", id: turn)
      pings += harness.take(other).count
    }
    expect(turns > 5 && pings >= turns - 3)
  }

  @Test func usersTakeTurns() {
    let harness = Self.harness()
    let many = harness.connect(Array(repeating: Peer(uid: 1000, gid: 1000, pid: 1, groups: []), count: 10))
    let other = harness.connect(uid: 1001)
    Self.fill(harness, many[0], count: 1000)
    for client in many { harness.supply(client, Self.query("$[0,1]")) }
    harness.turnOnce()
    harness.supply(other, Self.query("$[0,1]"))
    _ = Self.turns(harness, until: other)
    expect(many.filter { harness.halfFrame(of: $0) > 0 }.count <= 2)
    harness.turn()
    expect(many.allSatisfy { harness.take($0).count == 1 })
  }

  @Test func queryEndsWithItsConnection() throws {
    let harness = Self.harness()
    let (client, other) = (harness.connect(), harness.connect())
    Self.fill(harness, client, count: 1000)
    harness.supply(client, Self.query("$..[?@==3]"))
    for _ in 0..<10 { harness.turnOnce() }
    let session = try require(harness.engine.sessions[client])
    expect(harness.hasWork && session.line.memory > 100_000)
    harness.disconnect(client)
    expect(!harness.hasWork)
    expect(!harness.engine.longAnswers.queries.hasWork)
    harness.deliver(other, Self.query("$[0].a"))
    expectEqual(harness.take(other).count, 1)
  }

  @Test func engineEndsDuringAQuery() {
    weak var engine: Engine?
    do {
      let harness = Self.harness()
      let client = harness.connect()
      Self.fill(harness, client, count: 1000)
      harness.supply(client, Self.query("$..[?@==3]"))
      for _ in 0..<10 { harness.turnOnce() }
      expect(harness.engine.longAnswers.queries.hasWork)
      engine = harness.engine
    }
    expect(engine == nil)
  }

  @Test func longQueryIsRefusedAfterItsSteps() {
    let harness = Self.harness()
    let client = harness.connect()
    Self.fill(harness, client, count: 300)
    harness.deliver(client, Self.query("$..[?$..[?$..[?@==1]]]"))
    let error = Value(harness.take(client).first ?? "")?["error"]
    expectEqual(error?["data"]?["limit"]?.string, "maxQuerySteps")
    expect(!harness.engine.longAnswers.queries.hasWork)
  }
}
