import FeedModel
import Testing

@testable import FeedEngine

/// Plays the loop of a durable daemon whose store is an array.
private final class DurableLoop {
  struct Stored {
    let revision: UInt64
    let at: Instant
    let requests: [UInt8]
  }

  let engine: Engine
  let client: ConnectionID
  var stored: [Stored] = []
  var failure: String?
  private(set) var now = Instant(nanoseconds: 1_000_000_000)

  init() {
    let identity = ServerIdentity(version: "0", epoch: "test", pid: 1, uid: 0, durability: "process")
    engine = Engine(limits: Limits(), identity: identity, seed: 3, isDurable: true, now: now)
    client = engine.connect(Peer(uid: 1, gid: 1, pid: 1), now: now)
  }

  /// One turn with these requests in it; returns the answers.
  func turn(_ requests: [String], later seconds: Double = 1) -> [String] {
    now = now.adding(seconds: seconds)
    var input = requests.flatMap { EngineHarness.frame($0) }
    var output: [UInt8] = []
    repeat {
      engine.beginTurn(now: now)
      input.withUnsafeBytes { engine.prepare(client, $0) }
      if let batch = engine.journalBatch {
        if let failure {
          engine.storageDidFail(failure)
        } else {
          stored.append(Stored(revision: batch.revision, at: batch.at, requests: Array(batch.requests)))
          engine.didStore()
        }
      }
      let consumed = input.withUnsafeBytes { engine.receive(client, $0, now: now) }
      input.removeFirst(consumed)
      engine.endTurn(now: now)
      drain(into: &output)
      engine.takeResumedInput { _ in }
    } while !input.isEmpty || engine.hasWork
    return Self.texts(output)
  }

  private func drain(into output: inout [UInt8]) {
    withUnsafeTemporaryAllocation(of: UnsafeRawBufferPointer.self, capacity: 64) { slices in
      while case let count = engine.output(of: client, into: slices), count > 0 {
        for slice in slices[..<count] { output.append(contentsOf: slice) }
        engine.didWrite(client, slices[..<count].reduce(0) { $0 + $1.count })
      }
    }
    engine.finishWrites()
  }

  private static func texts(_ bytes: [UInt8]) -> [String] {
    var rest = bytes[...]
    var texts: [String] = []
    while rest.count >= 4 {
      let length = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
      texts.append(String(decoding: rest.dropFirst(4).prefix(length), as: UTF8.self))
      rest = rest.dropFirst(4 + length)
    }
    return texts
  }

  func ask(_ method: String, _ params: String, later seconds: Double = 1) -> String {
    turn([#"{"jsonrpc":"2.0","id":1,"method":"\#(method)","params":\#(params)}"#], later: seconds).first ?? ""
  }
}

@Suite struct JournalTests {
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
      try batch.requests.withUnsafeBytes { bytes in
        try again.engine.replay(JournalBatch(revision: batch.revision, at: batch.at, requests: bytes))
      }
    }
    #expect(again.engine.catalog.revision == loop.engine.catalog.revision)
    for (method, params) in [
      ("snapshot", #"{"feed":"c"}"#), ("describe", #"{"feed":"tabs"}"#), ("selected", #"{"feed":"c"}"#),
      ("feeds", "{}"),
    ] {
      #expect(again.ask(method, params, later: 0) == loop.ask(method, params, later: 0))
    }
  }

  /// What is stored is told by a request's beginning. One that turns out to ask for something else must not hold up what was
  /// stored behind it: that would be stored, and so happen, twice.
  @Test func aRequestWithTwoMethodsHoldsUpNothing() throws {
    let loop = DurableLoop()
    _ = loop.ask("define", #"{"feed":"list","kind":"array"}"#)
    let answers = loop.turn([
      #"{"jsonrpc":"2.0","id":1,"method":"insert","params":{"feed":"list","elements":[1]},"method":"verify"}"#,
      #"{"jsonrpc":"2.0","id":2,"method":"insert","params":{"feed":"list","elements":[2]}}"#,
      #"{"jsonrpc":"2.0","id":3,"method":"insert","params":{"feed":"list","elements":[3]},"method":"verify"}"#,
    ])
    #expect(answers.count == 3 && answers[0].contains("-32600") && answers[0].contains("twice"))
    #expect(answers[1].contains(#""added":[[0,0]]"#) && answers[2].contains("digest"))
    let again = DurableLoop()
    for batch in loop.stored {
      try batch.requests.withUnsafeBytes { bytes in
        try again.engine.replay(JournalBatch(revision: batch.revision, at: batch.at, requests: bytes))
      }
    }
    let snapshot = loop.ask("snapshot", #"{"feed":"list"}"#)
    #expect(snapshot.contains(#""elements":[2]"#) && again.ask("snapshot", #"{"feed":"list"}"#) == snapshot)
  }

  @Test func whatCannotBeStoredIsNotExecuted() {
    let loop = DurableLoop()
    _ = loop.ask("define", #"{"feed":"c","kind":"collection"}"#)
    _ = loop.ask("update", #"{"feed":"c","element":{"id":1}}"#)
    let before = loop.ask("snapshot", #"{"feed":"c"}"#)
    let stored = loop.stored.count
    loop.failure = "the disk is full"
    #expect(loop.ask("update", #"{"feed":"c","element":{"id":99}}"#).contains("-32008"))
    #expect(loop.ask("set", #"{"feed":"c","elements":[]}"#).contains("the disk is full"))
    #expect(loop.ask("ping", "{}").contains("result"))
    loop.failure = nil
    #expect(loop.stored.count == stored)
    #expect(loop.ask("snapshot", #"{"feed":"c"}"#) == before)
    #expect(loop.ask("update", #"{"feed":"c","element":{"id":99}}"#).contains("result"))
  }

  @Test func requestsBehindALongAnswerAreStoredAfterIt() {
    let loop = DurableLoop()
    _ = loop.ask("define", #"{"feed":"c","kind":"collection"}"#)
    let answers = loop.turn([
      #"{"jsonrpc":"2.0","id":1,"method":"verify","params":{"feed":"c"}}"#,
      #"{"jsonrpc":"2.0","id":2,"method":"update","params":{"feed":"c","element":{"id":1}}}"#,
      #"{"jsonrpc":"2.0","id":3,"method":"verify","params":{"feed":"c"}}"#,
    ])
    #expect(answers.count == 3)
    #expect(answers.last?.contains(#""counts":[1]"#) == true)
    #expect(loop.stored.count == 2)
  }

  @Test func aBatchIsStoredRequestByRequest() throws {
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
    #expect(answers.count == 2)
    #expect(answers.first?.split(separator: "jsonrpc").count == 7, "\(answers)")
    #expect(answers.last?.contains(#""elements":[{"id":2}]"#) == true)
    let again = DurableLoop()
    for stored in loop.stored {
      try stored.requests.withUnsafeBytes { bytes in
        try again.engine.replay(JournalBatch(revision: stored.revision, at: stored.at, requests: bytes))
      }
    }
    #expect(again.ask("snapshot", #"{"feed":"c"}"#) == loop.ask("snapshot", #"{"feed":"c"}"#))
  }
}
