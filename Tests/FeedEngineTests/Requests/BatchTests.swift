import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// JSON-RPC batches: requests are executed one by one and answered in order in one array.
struct BatchTests {
  let harness = EngineHarness()

  /// Connects and defines a collection `c` of `count` elements.
  private func prepared(elements count: Int, in harness: EngineHarness) -> ConnectionID {
    let id = harness.connect()
    _ = harness.ask(id, "define", #"{"feed":"c","kind":"collection"}"#)
    for start in stride(from: 0, to: count, by: 500) {
      let elements = (start..<min(start + 500, count)).map { #"{"id":\#($0)}"# }.joined(separator: ",")
      _ = harness.ask(id, "update", #"{"feed":"c","elements":[\#(elements)]}"#)
    }
    return id
  }

  /// Returns the answers to a batch of `requests`: for each frame the elements of its array.
  private func answers(_ harness: EngineHarness, _ id: ConnectionID, _ requests: [String]) -> [[Value]] {
    harness.send(id, "[" + requests.joined(separator: ",") + "]")
    return harness.take(id).compactMap { Value($0) }.map(\.items)
  }

  private func request(_ id: Int, _ method: String, _ params: String = "{}") -> String {
    #"{"jsonrpc":"2.0","id":\#(id),"method":"\#(method)","params":\#(params)}"#
  }

  @Test func answersOfABatchAreOneArrayInOrder() {
    let id = harness.connect()
    let replies = answers(
      harness, id,
      [
        request(1, "ping"), request(2, "define", #"{"feed":"c","kind":"collection"}"#), request(3, "nothing"), "7",
        #"{"jsonrpc":"2.0","method":"ping"}"#, #"{"jsonrpc":"2.0","method":"nothing"}"#, "[]",
        request(4, "verify", #"{"feed":"c"}"#), request(5, "get", #"{"feed":"x"}"#),
      ])
    expectEqual(replies.count, 1)
    expectEqual(replies.first?.map { $0["id"]?.text }, ["1", "2", "3", "null", "null", "4", "5"])
    expectEqual(replies.first?.map(\.errorCode), [nil, nil, -32601, -32600, -32600, nil, -32000])
  }

  @Test func batchOfNotificationsIsNotAnswered() {
    let id = harness.connect()
    harness.send(
      id,
      #"[{"jsonrpc":"2.0","method":"define","params":{"feed":"c","kind":"collection"}},{"jsonrpc":"2.0","method":"x"}]"#
    )
    expectEqual(harness.take(id), [])
    expectEqual(harness.ask(id, "verify", #"{"feed":"c"}"#).first?.json?["result"]?["counts"]?.path, [0])
  }

  @Test func emptyBatchIsAnsweredWithOneError() {
    let id = harness.connect()
    harness.send(id, "[]")
    let frames = harness.take(id).compactMap { Value($0) }
    expectEqual(frames.map(\.errorCode), [-32600])
    expectEqual(frames.first?["id"]?.text, "null")
  }

  @Test func failedRequestOfABatchDoesNotUndoTheOthers() {
    let id = prepared(elements: 1, in: harness)
    let replies = answers(
      harness, id,
      [request(1, "update", #"{"feed":"c","element":{"id":5}}"#), request(2, "update", #"{"feed":"c","element":{}}"#)])
    expectEqual(replies.first?.map(\.errorCode), [nil, -32003])
    expectEqual(harness.ask(id, "verify", #"{"feed":"c"}"#).first?.json?["result"]?["counts"]?.path, [2])
  }

  /// An answer that is computed over several turns keeps its position in the array.
  @Test func longAnswersKeepTheirPlaceInTheArray() {
    let id = prepared(elements: 9000, in: harness)
    let replies = answers(
      harness, id,
      [
        request(1, "verify", #"{"feed":"c"}"#), request(2, "ping"),
        request(3, "query", #"{"feed":"c","path":"$[8999]"}"#),
        request(4, "verify", #"{"feed":"c"}"#), request(5, "ping"),
      ])
    expectEqual(replies.map { $0.map { $0["id"]?.text } }, [["1", "2", "3", "4", "5"]])
    expectEqual(replies.first?[2]["result"]?["nodes"]?.text, #"[{"id":8999}]"#)
  }

  /// A long answer that fails does not damage the rest of the batch.
  @Test func failedLongAnswerLeavesTheOtherAnswersIntact() {
    let harness = EngineHarness { $0.maxQueryBytes = 1024 }
    let id = prepared(elements: 500, in: harness)
    let requests = [request(1, "query", #"{"feed":"c","path":"$..id"}"#)] + (2...400).map { request($0, "ping") }
    let replies = answers(harness, id, requests)
    expectEqual(replies.first?.first?.errorCode, -32007)
    expectEqual(replies.map { $0.map { $0["id"]?.int } }, [Array(1...400)])
  }

  /// `sync` waits for the snapshot of an earlier request of the same batch.
  @Test func syncInABatchIsAnsweredAfterTheSnapshot() {
    let id = prepared(elements: 9000, in: harness)
    harness.send(
      id,
      "["
        + [request(1, "watch", #"{"feed":"c"}"#), request(2, "sync"), request(3, "verify", #"{"feed":"c"}"#)]
        .joined(separator: ",") + "]")
    let frames = harness.take(id).compactMap { Value($0) }
    let replies = frames.filter { !$0.items.isEmpty }
    expectEqual(replies.map { $0.items.map { $0["id"]?.text } }, [["1", "2", "3"]])
    expectEqual(frames.filter { $0["params"]?["last"]?.bool == true }.count, 1)
  }

  /// A batch with many answers is answered in several frames within the limit.
  @Test func answersOfALargeBatchAreSplitIntoFrames() {
    let harness = EngineHarness { $0.maxFrame = 4096 }
    let id = harness.connect()
    let count = 1500
    let replies = answers(harness, id, Array(repeating: "1", count: count))
    expectEqual(replies.joined().count, count)
    expect(replies.joined().allSatisfy { $0.errorCode == -32600 })
    _ = harness.ask(id, "define", #"{"feed":"c","kind":"collection"}"#)
    let many = answers(
      harness, id, (1...40).map { request($0, "update", #"{"feed":"c","element":{"id":\#($0)}}"#) })
    expectEqual(many.joined().map { $0["id"]?.int }, Array(1...40))
    expect(many.joined().allSatisfy { $0.errorCode == nil })
  }

  /// Arrays of long answers are queued without a copy if their memory is well used, and with one otherwise.
  @Test("long answers to one batch are split into whole arrays", arguments: Array(stride(from: 100, to: 1000, by: 100)))
  func longAnswersOfABatchAreSplitIntoFrames(kilobytes: Int) {
    let maxFrame = 1 << 20
    let harness = EngineHarness { $0.maxFrame = maxFrame }
    let id = prepared(elements: 0, in: harness)
    let text = String(repeating: "x", count: kilobytes * 1000)
    _ = harness.ask(id, "update", #"{"feed":"c","element":{"id":1,"text":"\#(text)"}}"#)
    let count = 12
    harness.send(id, "[" + (1...count).map { request($0, "get", #"{"feed":"c","id":1}"#) }.joined(separator: ",") + "]")
    let frames = harness.take(id)
    expect(frames.allSatisfy { $0.utf8.count <= maxFrame })
    let answers = frames.map { Value($0)?.items ?? [] }
    expectEqual(answers.map(\.isEmpty), frames.map { _ in false })
    expectEqual(answers.joined().map { $0["id"]?.int }, Array(1...count))
  }

  /// The answers to the batch are among what its connection holds.
  @Test("what connections hold is told within a batch", arguments: ["stats", "clients"])
  func numbersAreToldWithinABatch(method: String) {
    let id = harness.connect(uid: 0)
    let replies = answers(harness, id, [request(1, "ping"), request(2, method), request(3, "ping")])
    expectEqual(replies.map { $0.map { $0["id"]?.int } }, [[1, 2, 3]])
    expectEqual(replies.map { $0.map(\.errorCode) }, [[nil, nil, nil]])
  }
}
