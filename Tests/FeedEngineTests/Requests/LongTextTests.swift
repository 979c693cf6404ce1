import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Requests whose answers would exceed a frame: each is answered once, within the limit, and a refused one changes nothing.
struct LongTextTests {
  private func harness(maxFrame: Int) -> EngineHarness {
    var limits = Limits()
    limits.maxFrame = maxFrame
    return EngineHarness(limits: limits)
  }

  private func only(_ harness: EngineHarness, _ id: ConnectionID, _ text: String) -> Value? {
    harness.send(id, text)
    let frames = harness.take(id)
    expectEqual(frames.count, 1, "\(frames.count) answers to \(text.prefix(60))")
    expect(frames.allSatisfy { $0.utf8.count <= harness.engine.limits.maxFrame })
    return frames.first.flatMap { Value($0) }
  }

  @Test(arguments: [1024, 4096]) func errorAboutALongNameIsAnswered(maxFrame: Int) {
    let harness = harness(maxFrame: maxFrame)
    let id = harness.connect()
    for filler in ["x", "\\u0001", "é", "😀"] {
      let name = String(repeating: filler, count: (maxFrame - 120) / filler.utf8.count)
      let unknown = only(
        harness, id, #"{"jsonrpc":"2.0","id":1,"method":"get","params":{"feed":"\#(name)","at":[0,0]}}"#)
      expectEqual(unknown?.errorCode, -32000)
      expectEqual(unknown?["id"]?.int, 1)
      expectEqual(only(harness, id, #"{"jsonrpc":"2.0","id":2,"method":"\#(name)"}"#)?.errorCode, -32601)
      let kind = only(
        harness, id, #"{"jsonrpc":"2.0","id":3,"method":"define","params":{"feed":"c","kind":"\#(name)"}}"#)
      expectEqual(kind?.errorCode, -32602)
    }
  }

  @Test(arguments: [1024, 4096]) func requestWithALongIdIsAnsweredOrRefused(maxFrame: Int) {
    let harness = harness(maxFrame: maxFrame)
    let id = harness.connect()
    _ = harness.ask(id, "define", #"{"feed":"c","kind":"collection","bins":[{"name":"a"},{"name":"b"}]}"#)
    var applied = 0
    let lengths = Array(stride(from: 1, to: maxFrame - 140, by: 61)) + Array(maxFrame - 140..<maxFrame - 90)
    for length in lengths {
      let name = String(repeating: "i", count: length)
      let params = #"{"feed":"c","element":{"id":\#(length)}}"#
      let reply = only(harness, id, #"{"jsonrpc":"2.0","id":"\#(name)","method":"update","params":\#(params)}"#)
      if reply?.errorCode == nil {
        applied += 1
        expectEqual(reply?["id"]?.string, name)
      }
      let counts = Value(harness.ask(id, "verify", #"{"feed":"c"}"#).first ?? "")?["result"]?["counts"]
      expectEqual(counts?.items.first?.int, applied, "exactly the acknowledged updates must be applied")
    }
  }

  /// All members are looked at for each one that is read.
  @Test func requestWithVeryManyMembersIsRefused() {
    let harness = EngineHarness()
    let id = harness.connect()
    _ = harness.ask(id, "define", #"{"feed":"a","kind":"array"}"#)
    let members = { (count: Int) in (0..<count).map { #","m\#($0)":1"# }.joined() }
    func code(_ text: String) -> Int? { only(harness, id, text)?.errorCode }
    let get = { (more: String) in #"{"feed":"a","at":[0,0]\#(more)}"# }
    expectEqual(code(#"{"jsonrpc":"2.0","id":1,"method":"get","params":\#(get(members(998)))}"#), nil)
    expectEqual(code(#"{"jsonrpc":"2.0","id":1,"method":"get","params":\#(get(members(999)))}"#), -32602)
    expectEqual(code(#"{"jsonrpc":"2.0","id":1,"method":"ping"\#(members(997))}"#), nil)
    expectEqual(code(#"{"jsonrpc":"2.0","id":1,"method":"ping"\#(members(998))}"#), -32600)
    for (operation, parameters, wanted) in [(997, 0, nil), (999, 0, -32600), (0, 998, nil), (0, 999, -32602)] {
      let params = #"{"feed":"a","element":1\#(members(parameters))}"#
      let op = #"{"method":"insert","params":\#(params)\#(members(operation))}"#
      expectEqual(code(#"{"jsonrpc":"2.0","id":1,"method":"transaction","params":{"ops":[\#(op)]}}"#), wanted)
    }
    let counts = Value(harness.ask(id, "verify", #"{"feed":"a"}"#).first ?? "")?["result"]?["counts"]
    expectEqual(counts?.items.first?.int, 2)
  }

  /// The number of turns until a request is answered, and its answer.
  private func turns(_ harness: EngineHarness, _ id: ConnectionID, _ params: String) -> (count: Int, answer: String) {
    harness.supply(id, "transaction", params)
    var count = 0
    while harness.halfFrame(of: id) == 0 && count < 1000 {
      harness.turnOnce()
      count += 1
    }
    return (count, harness.take(id).joined())
  }

  /// A turn scans 65,536 tokens.
  @Test func longRequestWithVeryManyMembersIsRefusedFirst() {
    let harness = EngineHarness()
    let operations = Array(repeating: "{}", count: 100_000).joined(separator: ",")
    let members = (0..<1000).map { #","m\#($0)":1"# }.joined()
    let (count, answer) = turns(harness, harness.connect(), #"{"ops":[\#(operations)]\#(members)}"#)
    expect(answer.contains("1,001 members"))
    expect(count < 8, "\(count) turns")
  }

  /// A turn checks fewer operations if they have many members.
  @Test func operationsWithManyMembersAreCheckedInParts() {
    let harness = EngineHarness()
    let members = Array(repeating: #""a":1"#, count: 999).joined(separator: ",")
    let operations = Array(repeating: "{\(members)}", count: 200).joined(separator: ",")
    let (count, answer) = turns(harness, harness.connect(), #"{"ops":[\#(operations)]}"#)
    expect(answer.contains("ops[0]"), "\(answer)")
    expect((12..<30).contains(count), "\(count) turns")
  }

  @Test func limitOfMembersNamesTheOperation() {
    let harness = EngineHarness()
    let id = harness.connect()
    let members = Array(repeating: #""a":1"#, count: 1001).joined(separator: ",")
    let entries = Array(repeating: "1", count: 1001).joined(separator: ",")
    func answer(_ operation: String) -> String { harness.ask(id, "transaction", #"{"ops":[\#(operation)]}"#).joined() }
    expect(answer("{\(members)}").contains("an operation has 1,001 members"))
    expect(!answer("[\(entries)]").contains("members"))
    expect(!answer(#"{"method":"insert","params":[\#(entries)]}"#).contains("1,001"))
  }

  /// A refused watch is not started.
  @Test func refusedWatchIsNotStarted() {
    let harness = harness(maxFrame: 4096)
    let (pusher, watcher) = (harness.connect(), harness.connect())
    let feed = String(repeating: "n", count: 128)
    let bins = (0..<60).map { #"{"name":"\#($0)"}"# }.joined(separator: ",")
    _ = harness.ask(pusher, "define", #"{"feed":"\#(feed)","kind":"collection","bins":[\#(bins)]}"#)
    let answer = harness.ask(watcher, "watch", #"{"feed":"\#(feed)"}"#)
    expectEqual(answer.compactMap { Value($0)?.errorCode }, [-32007])
    _ = harness.ask(pusher, "update", #"{"feed":"\#(feed)","element":{"id":1}}"#)
    expectEqual(harness.take(watcher), [])
    let clients = harness.ask(watcher, "clients").first?.json?["result"]?["clients"]?.items ?? []
    expect(clients.contains { $0["self"]?.bool == true && $0["watches"]?.items.isEmpty == true })
  }
}
