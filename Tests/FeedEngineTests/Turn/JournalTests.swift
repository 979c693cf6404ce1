import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// A durable daemon with one client.
private final class DurableLoop {
  private let harness = EngineHarness(seed: 3, isDurable: true)
  private let client: ConnectionID
  var engine: Engine { harness.engine }
  var stored: [LogBatch] { harness.stored }
  var failure: String? {
    get { harness.log?.failure }
    set { harness.log?.failure = newValue }
  }

  init() {
    client = harness.connect(uid: 1)
  }

  /// Sends requests, runs the turns and returns the answers.
  func turn(_ requests: [String], later seconds: Double = 1) -> [String] {
    harness.supply(client, requests.flatMap { EngineHarness.frame($0) })
    harness.advance(seconds: seconds)
    return harness.take(client)
  }

  func ask(_ method: String, _ params: String, later seconds: Double = 1) -> String {
    turn([#"{"jsonrpc":"2.0","id":1,"method":"\#(method)","params":\#(params)}"#], later: seconds).first ?? ""
  }
}

struct JournalTests {
  private func play(_ loop: DurableLoop) {
    _ = loop.ask("define", #"{"feed":"c","kind":"collection","retain":{"count":5,"seconds":3},"multiple":true}"#)
    _ = loop.ask("define", #"{"feed":"tabs","kind":"segmented","children":["c"]}"#)
    for number in 0..<12 {
      _ = loop.ask("update", #"{"feed":"c","element":{"id":\#(number % 7),"n":\#(number)}}"#)
      if number % 5 == 0 { _ = loop.ask("select", #"{"feed":"c","at":[0,0]}"#) }
    }
    _ = loop.ask("update", #"{"feed":"c","element":{"no":"identity"}}"#)
    _ = loop.ask("activate", #"{"feed":"tabs","child":-1}"#)
    _ = loop.ask("snapshot", #"{"feed":"c"}"#)
  }

  @Test func replayGivesTheSameState() throws {
    let loop = DurableLoop()
    play(loop)
    let again = DurableLoop()
    for batch in loop.stored {
      try again.engine.replay(batch)
    }
    expectEqual(again.engine.catalog.revision, loop.engine.catalog.revision)
    for (method, params) in [
      ("snapshot", #"{"feed":"c"}"#), ("describe", #"{"feed":"tabs"}"#), ("selected", #"{"feed":"c"}"#),
      ("feeds", "{}"),
    ] {
      expectEqual(again.ask(method, params, later: 0), loop.ask(method, params, later: 0))
    }
  }

  /// The last of two members of the same name decides, for storing as for executing.
  @Test func requestWithTwoMethodMembersIsReplayedAsExecuted() throws {
    let loop = DurableLoop()
    _ = loop.ask("define", #"{"feed":"list","kind":"array"}"#)
    let answers = loop.turn([
      #"{"jsonrpc":"2.0","id":1,"method":"insert","params":{"feed":"list","elements":[1]},"method":"verify"}"#,
      #"{"jsonrpc":"2.0","id":2,"method":"insert","params":{"feed":"list","elements":[2]}}"#,
      #"{"jsonrpc":"2.0","id":3,"method":"verify","params":{"feed":"list","elements":[3]},"method":"insert"}"#,
    ]).compactMap { Value($0) }
    expectEqual(answers.map { $0["id"]?.int }, [1, 2, 3])
    expectEqual(answers.map(\.errorCode), [nil, nil, nil])
    expect(answers[0]["result"]?["digest"] != nil && answers[2]["result"]?["added"] != nil)
    let again = DurableLoop()
    for batch in loop.stored { try again.engine.replay(batch) }
    let snapshot = Value(loop.ask("snapshot", #"{"feed":"list"}"#))?["result"]
    expectEqual(snapshot?["sections"]?.items.first?["elements"]?.text, "[2,3]")
    expectEqual(Value(again.ask("snapshot", #"{"feed":"list"}"#))?["result"], snapshot)
  }

  /// Rules before 6 bounded the ranges of character classes in filters neither of definitions nor of `where`.
  @Test func filtersOfOlderRulesAreReplayed() throws {
    let long = (0..<200).map { #"[\\\\p{L}]\#($0)"# }.joined(separator: "|")
    let loop = DurableLoop()
    loop.engine.commit.rules = 5
    let bin = #"{"name":"all","filter":"search(@.a,'\#(long)')"}"#
    _ = loop.ask("define", #"{"feed":"c","kind":"collection","bins":[\#(bin)]}"#)
    _ = loop.ask("update", #"{"feed":"c","elements":[{"id":1,"a":"x7"},{"id":2,"a":"y8"}]}"#)
    let deleted = Value(loop.ask("delete", #"{"feed":"c","where":"search(@.a,'\#(long)') && @.id==1"}"#))
    expectEqual(deleted?["result"]?["deleted"]?.items.count, 1)
    let again = DurableLoop()
    for batch in loop.stored { try again.engine.replay(batch, rules: 5) }
    expectEqual(try again.engine.catalog.feed(named: "c").count, 1)
    expectEqual(again.engine.catalog.revision, loop.engine.catalog.revision)
    let refused = again.ask("delete", #"{"feed":"c","where":"search(@.a,'\#(long)')"}"#)
    expectEqual(Value(refused)?.errorCode, -32004)
  }

  /// Rules from 3 on refused types with lone surrogates when a request was executed, not when it arrived.
  @Test(arguments: [(2, true), (3, false), (6, false)])
  func typeWithALoneSurrogateIsReplayedAsExecuted(_ rules: Int, isDefined: Bool) throws {
    let definition = #"{"feed":"s","kind":"slots","contents":{},"pattern":[],"default":"\ud800"}"#
    let frames = EngineHarness.frame(#"{"jsonrpc":"2.0","id":1,"method":"define","params":\#(definition)}"#)
    let loop = DurableLoop()
    try frames.withUnsafeBytes { bytes in
      try loop.engine.replay(LogBatch(number: 1, at: Instant(nanoseconds: 1), revision: 0, frames: bytes), rules: rules)
    }
    expectEqual(loop.engine.catalog.feeds["s"] != nil, isDefined)
  }

  @Test func requestThatCannotBeStoredIsNotExecuted() {
    let loop = DurableLoop()
    _ = loop.ask("define", #"{"feed":"c","kind":"collection"}"#)
    _ = loop.ask("update", #"{"feed":"c","element":{"id":1}}"#)
    let before = loop.ask("snapshot", #"{"feed":"c"}"#)
    let stored = loop.stored.count
    loop.failure = "the disk is full"
    expectEqual(loop.ask("update", #"{"feed":"c","element":{"id":99}}"#).json?.errorCode, -32008)
    let refused = loop.ask("set", #"{"feed":"c","elements":[]}"#).json?["error"]?["message"]?.string
    expectEqual(refused?.contains("the disk is full"), true)
    expect(loop.ask("ping", "{}").json?["result"] != nil)
    loop.failure = nil
    expectEqual(loop.stored.count, stored)
    expectEqual(loop.ask("snapshot", #"{"feed":"c"}"#), before)
    expect(loop.ask("update", #"{"feed":"c","element":{"id":99}}"#).json?["result"] != nil)
  }

  @Test func requestsAfterALongAnswerAreStoredAfterIt() {
    let loop = DurableLoop()
    _ = loop.ask("define", #"{"feed":"c","kind":"collection"}"#)
    let answers = loop.turn([
      #"{"jsonrpc":"2.0","id":1,"method":"verify","params":{"feed":"c"}}"#,
      #"{"jsonrpc":"2.0","id":2,"method":"update","params":{"feed":"c","element":{"id":1}}}"#,
      #"{"jsonrpc":"2.0","id":3,"method":"verify","params":{"feed":"c"}}"#,
    ])
    expectEqual(answers.count, 3)
    expectEqual(answers.last?.json?["result"]?["counts"]?.path, [1])
    expectEqual(loop.stored.count, 2)
  }

  @Test func requestsOfABatchAreStoredOneByOne() throws {
    let loop = DurableLoop()
    _ = loop.ask("define", #"{"feed":"c","kind":"collection"}"#)
    let request = { (id: Int, method: String, params: String) in
      #"{"jsonrpc":"2.0","id":\#(id),"method":"\#(method)","params":\#(params)}"#
    }
    let batch = [
      request(1, "update", #"{"feed":"c","element":{"id":1}}"#), request(2, "verify", #"{"feed":"c"}"#),
      request(3, "update", #"{"feed":"c","element":{"id":2}}"#), request(4, "sync", "{}"),
      request(5, "ping", "{}"), request(6, "delete", #"{"feed":"c","id":1}"#),
    ]
    let answers = loop.turn(["[\(batch.joined(separator: ","))]", request(7, "snapshot", #"{"feed":"c"}"#)])
    expectEqual(answers.count, 2)
    expectEqual(answers.first?.json?.items.map { $0["id"]?.int }, [1, 2, 3, 4, 5, 6], "\(answers)")
    expectEqual(answers.last?.json?["result"]?["sections"]?.items.first?["elements"]?.text, #"[{"id":2}]"#)
    let again = DurableLoop()
    for stored in loop.stored {
      try again.engine.replay(stored)
    }
    expectEqual(again.ask("snapshot", #"{"feed":"c"}"#), loop.ask("snapshot", #"{"feed":"c"}"#))
  }
}

@Suite("Unknown members of requests")
struct AdmissionTests {
  @Test("a stored definition with an unknown member is replayed, although a new one is refused")
  func replayAcceptsUnknownMembers() throws {
    let loop = DurableLoop()
    let request =
      #"{"jsonrpc":"2.0","id":1,"method":"define","params":{"feed":"c","kind":"collection","bins":[{"name":"b","filtre":"@.a"}]}}"#
    let refused = Value(loop.turn([request]).first ?? "")
    expectEqual(refused?.errorCode, -32602)
    expectEqual(refused?.errorData?["member"]?.string, "bins[0].filtre")
    expect(loop.stored.isEmpty)
    let frames = EngineHarness.frame(request)
    try frames.withUnsafeBytes { bytes in
      try loop.engine.replay(LogBatch(number: 1, at: Instant(nanoseconds: 1), revision: 0, frames: bytes, owner: nil))
    }
    expectEqual(Value(loop.ask("describe", #"{"feed":"c"}"#))?["result"]?["count"]?.int, 0)
  }

  @Test("a definition may have the members of a status only together, as describe returns them")
  func status() {
    let loop = DurableLoop()
    for (member, advice) in [
      (#""sections":"$.date""#, "section"), (#""count":100"#, "use one of"),
      (#""counts":[1],"revision":1"#, "use one of"), (#""shows":"a""#, "use one of"),
    ] {
      let refused = Value(loop.ask("define", #"{"feed":"c","kind":"collection",\#(member)}"#))
      expectEqual(refused?.errorCode, -32602, "\(member)")
      expectEqual(refused?["error"]?["message"]?.string?.contains(advice), true, "\(member)")
    }
    expectEqual(Value(loop.ask("define", #"{"feed":"c","kind":"collection"}"#))?.errorCode, nil)
    expectEqual(Value(loop.ask("define", #"{"feed":"all","kind":"composed","children":["c"]}"#))?.errorCode, nil)
    for feed in ["c", "all"] {
      let status = Value(loop.ask("describe", #"{"feed":"\#(feed)"}"#))?["result"]?.text ?? ""
      expectEqual(Value(loop.ask("define", status))?.errorCode, nil, "\(status)")
    }
  }

  @Test("unknown members of other objects are ignored")
  func othersAreIgnored() {
    let loop = DurableLoop()
    expectEqual(Value(loop.ask("define", #"{"feed":"a","kind":"array","replace":true}"#))?.errorCode, nil)
    expectEqual(Value(loop.ask("insert", #"{"feed":"a","elements":[1],"comment":1}"#))?.errorCode, nil)
    let transaction = #"{"ops":[{"method":"insert","params":{"feed":"a","elements":[1]},"note":1}],"note":2}"#
    expectEqual(Value(loop.ask("transaction", transaction))?.errorCode, nil)
  }
}
