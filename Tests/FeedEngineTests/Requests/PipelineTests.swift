import FeedModel
import FeedServer
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Pipelined requests: each is answered once and in order, long answers included, and no other connection waits for them.
struct PipelineTests {
  /// Returns a harness with a collection `c` of `count` elements, and a connection.
  private func filled(_ count: Int, _ change: (inout Limits) -> Void = { _ in }) -> (EngineHarness, ConnectionID) {
    var limits = Limits()
    change(&limits)
    let harness = EngineHarness(limits: limits)
    let id = harness.connect()
    _ = harness.ask(
      id, "define", #"{"feed":"c","kind":"collection","bins":[{"name":"a"},{"name":"b","filter":"@.id<9"}]}"#)
    for start in stride(from: 0, to: count, by: 500) {
      let elements = (start..<min(start + 500, count)).map { #"{"id":\#($0)}"# }.joined(separator: ",")
      _ = harness.ask(id, "update", #"{"feed":"c","elements":[\#(elements)]}"#)
    }
    return (harness, id)
  }

  private func request(_ id: Int, _ method: String, _ params: String = #"{"feed":"c"}"#) -> [UInt8] {
    EngineHarness.request(method, params, id: id)
  }

  private func ids(_ frames: [String]) -> [Int] { frames.compactMap { Value($0)?["id"]?.int } }

  @Test func longAnswersKeepTheOrder() {
    let (harness, _) = filled(9000)
    let id = harness.connect()
    let methods = [
      "verify", "ping", "query", "sync", "watch", "sync", "verify", "describe", "query", "nothing", "verify",
    ]
    let requests = methods.enumerated().flatMap { request($0, $1, #"{"feed":"c","path":"$[8999].id"}"#) }
    harness.deliver(id, requests)
    let frames = harness.take(id).compactMap { Value($0) }
    expectEqual(frames.compactMap { $0["id"]?.int }, Array(methods.indices))
    // The snapshot is complete before the `sync` after the watch is answered.
    let last = frames.firstIndex { $0["params"]?["last"]?.bool == true }
    let sync = frames.firstIndex { $0["id"]?.int == 5 }
    expect(last != nil && sync != nil && last! < sync!)
  }

  /// Requests behind a change join its batch, which is executed when it is stored. A long answer there ends the batch.
  @Test(arguments: ["snapshot", "range", "feeds", "verify", "query"], [false, true])
  func longAnswersBehindAChangeKeepTheOrder(_ method: String, isArray: Bool) {
    let harness = EngineHarness(isDurable: true)
    let id = harness.connect()
    _ = harness.ask(id, "define", #"{"feed":"c","kind":"array"}"#)
    let elements = Array(repeating: "7", count: 9000).joined(separator: ",")
    _ = harness.ask(id, "insert", #"{"feed":"c","elements":[\#(elements)]}"#)
    let feeds = (0..<3000).map { #"{"method":"define","params":{"feed":"f\#($0)","kind":"single"}}"# }
    _ = harness.ask(id, "transaction", #"{"ops":[\#(feeds.joined(separator: ","))]}"#)
    let methods = ["insert", method, method, "ping", "insert", "insert", method, "get", method]
    let params = #"{"feed":"c","element":7,"at":0,"path":"$[8999]"}"#
    let texts = methods.enumerated().map { number, method in
      let at = method == "get" ? params.replacing(#""at":0"#, with: #""at":[0,0]"#) : params
      return #"{"jsonrpc":"2.0","id":\#(number),"method":"\#(method)","params":\#(at)}"#
    }
    if isArray {
      harness.send(id, "[" + texts.joined(separator: ",") + "]")
      let answers = harness.take(id).compactMap { Value($0)?.items }
      expectEqual(answers.map { $0.compactMap { $0["id"]?.int } }, [Array(methods.indices)])
    } else {
      harness.deliver(id, texts.flatMap { EngineHarness.frame($0) })
      expectEqual(ids(harness.take(id)), Array(methods.indices))
    }
  }

  /// Otherwise each change would take a batch of its own, which the log stores one after another.
  /// - Parameter isEager: whether the answers of reads for which others wait are written in parts.
  @Test(arguments: [false, true])
  func requestsBehindAChangeDoNotWaitForFewRows(isEager: Bool) {
    let queries = SlicedWork("queries", slice: 0, isEager: isEager)
    let harness = EngineHarness(isDurable: true, queries: queries)
    let id = harness.connect()
    _ = harness.ask(id, "define", #"{"feed":"c","kind":"array"}"#)
    for (rows, batches) in [(#","count":10"#, 1), (#","count":65"#, 3), ("", 3)] {
      let stored = harness.stored.count
      let requests = (0..<3).flatMap {
        request(2 * $0, "insert", #"{"feed":"c","elements":[\#($0)],"at":0}"#)
          + request(2 * $0 + 1, "range", #"{"feed":"c"\#(rows)}"#)
      }
      harness.deliver(id, requests)
      let answers = harness.take(id)
      expectEqual(ids(answers), Array(0..<6))
      for number in 0..<3 {
        expect(answers.count == 6 && answers[2 * number + 1].contains(#""elements":[\#(number)"#))
      }
      expectEqual(harness.stored.count - stored, batches, "range\(rows)")
    }
  }

  @Test func otherConnectionsAreServedDuringALongAnswer() {
    let (harness, slow) = filled(20_000)
    let quick = harness.connect()
    harness.supply(slow, request(1, "verify"))
    harness.turnOnce()
    expect(!harness.wantsInput(slow), "requests after a long answer must wait")
    var turns = 0
    while harness.take(slow).isEmpty {
      harness.supply(quick, request(turns, "ping"))
      harness.turnOnce()
      expectEqual(ids(harness.take(quick)), [turns])
      turns += 1
    }
    expect(turns > 2)
    expect(harness.wantsInput(slow))
  }

  /// Digests and queries describe one revision, although the feed changes while they are computed.
  @Test func longAnswersDescribeOneRevision() {
    let (harness, reader) = filled(15_000)
    let pusher = harness.connect()
    let before = harness.ask(reader, "verify", #"{"feed":"c"}"#)
    let query = #"{"feed":"c","path":"$[?@.id>=14990].id"}"#
    let found = harness.ask(reader, "query", query)
    for (method, params, wanted) in [("verify", #"{"feed":"c"}"#, before), ("query", query, found)] {
      harness.supply(reader, request(1, method, params))
      harness.turnOnce()
      // The elements are deleted and restored, so that both long answers see the same rows.
      let ids = (14_000..<15_000).map { "\($0)" }.joined(separator: ",")
      harness.supply(pusher, request(9, "delete", #"{"feed":"c","ids":[\#(ids)]}"#))
      harness.turnOnce()
      harness.supply(pusher, request(9, "update", #"{"feed":"c","elements":[{"id":3,"y":2},{"id":-1}]}"#))
      harness.turn()
      expectEqual(Self.withoutRevision(harness.take(reader)), Self.withoutRevision(wanted), "\(method)")
      let elements = (14_000..<15_000).map { #"{"id":\#($0)}"# }.joined(separator: ",")
      _ = harness.ask(pusher, "update", #"{"feed":"c","elements":[{"id":3},\#(elements)]}"#)
      _ = harness.ask(pusher, "delete", #"{"feed":"c","id":-1}"#)
    }
  }

  private static func withoutRevision(_ frames: [String]) -> [String] {
    frames.map { $0.replacing(/"revision":\d+/, with: "") }
  }

  /// The daemon stops reading a client that does not read, and the client receives every answer when it reads again.
  @Test func inputStopsWhileTheClientDoesNotRead() {
    let (harness, _) = filled(100) { $0.maxQueue = 4096 }
    let id = harness.connect()
    harness.stopped = [id]
    for number in 0..<60 { harness.deliver(id, request(number, "snapshot")) }
    expect(!harness.wantsInput(id))
    expect(harness.waitingInput(of: id) > 0)
    expect(!harness.hasWork)
    var received: [Int] = []
    while received.count < 60 {
      harness.resume(id, bytes: 3000)
      received += ids(harness.take(id))
    }
    expectEqual(received, Array(0..<60))
    expectEqual(harness.waitingInput(of: id), 0)
  }

  /// A `sync` that waits for a connection that does not read causes no work.
  @Test func waitingSyncCausesNoWork() {
    let (harness, _) = filled(3000)
    let id = harness.connect()
    harness.stopped = [id]
    harness.deliver(id, request(1, "watch") + request(2, "sync") + request(3, "ping"))
    expect(!harness.hasWork)
    harness.stopped = []
    harness.turn()
    expectEqual(ids(harness.take(id)), [1, 2, 3])
  }

  @Test func notificationsAreNeverAnswered() {
    let (harness, _) = filled(10)
    let id = harness.connect()
    for (method, params) in [
      ("ping", "{}"), ("nothing", "{}"), ("update", #"{"feed":"c","element":{}}"#), ("get", #"{"feed":"x"}"#),
      ("verify", #"{"feed":"c"}"#), ("verify", "{}"), ("query", #"{"feed":"c","path":"$["}"#), ("sync", "{}"),
      ("define", #"{"feed":"?"}"#), ("transaction", #"{"ops":[{"method":"ping"}]}"#), ("snapshot", #"{"feed":"c"}"#),
      ("delete", #"{"feed":"c","id":null}"#), ("undefine", #"{"feed":"x"}"#), ("unwatch", #"{"feed":"c"}"#),
      ("update", #"{"feed":"c","element":{"id":1,"x":2}}"#), ("hello", #"{"protocol":9}"#), ("stats", "{}"),
    ] {
      harness.send(id, #"{"jsonrpc":"2.0","method":"\#(method)","params":\#(params)}"#)
      expectEqual(harness.take(id), [], "\(method) \(params)")
    }
    let element = harness.ask(id, "get", #"{"feed":"c","id":1}"#).first?.json?["result"]?["element"]
    expectEqual(element?["x"]?.int, 2, "notifications must be executed")
  }
}
