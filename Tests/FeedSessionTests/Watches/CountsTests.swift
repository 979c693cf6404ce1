import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

@Suite("Watches of counts")
struct CountsTests {
  private let harness: EngineHarness
  private let pusher: ConnectionID
  private let watcher: ConnectionID

  init() {
    harness = EngineHarness { ($0.maxQueue, $0.historyBytes) = (4096, 1 << 16) }
    pusher = harness.connect()
    watcher = harness.connect()
    for definition in [
      #"{"feed":"c","kind":"collection","type":"$.t","bins":[{"name":"high","filter":"@.p > 5"},{"name":"low","filter":"@.p <= 5"}]}"#,
      #"{"feed":"a","kind":"array"}"#, #"{"feed":"both","kind":"composed","children":["a","c"]}"#,
      #"{"feed":"tabs","kind":"segmented","children":["c","a"]}"#,
    ] { expectEqual(ask("define", definition)?.errorCode, nil) }
  }

  private func ask(_ method: String, _ params: String) -> Value? {
    Value(harness.ask(pusher, method, params).first ?? "")
  }

  private func watch(_ feed: String, _ more: String = "") -> [Value] {
    harness.ask(watcher, "watch", #"{"feed":"\#(feed)","elements":false\#(more)}"#).compactMap { Value($0) }
  }

  private func messages() -> [Value] { harness.take(watcher).compactMap { Value($0) } }

  @Test("a feed that no watch counts any more is followed as before", arguments: ["elements\":false", "ids\":true"])
  func channelsEnd(option: String) throws {
    _ = harness.ask(watcher, "watch", #"{"feed":"c","initial":false}"#)
    let channel = try require(harness.engine.catalog.feed(named: "c").watching)
    expect(channel.isOnlyChannel)
    let other = harness.connect()
    _ = harness.ask(other, "watch", #"{"feed":"c","\#(option)}"#)
    expect(!channel.isOnlyChannel)
    _ = harness.ask(other, "unwatch", #"{"feed":"c"}"#)
    // Identities are kept for a while.
    harness.advance(seconds: Double(harness.engine.limits.historySeconds) + 1)
    _ = ask("update", #"{"feed":"c","element":{"id":1,"p":1}}"#)
    expect(channel.isOnlyChannel)
  }

  /// The counts of a feed according to `describe`.
  private func counts(_ feed: String) -> String {
    ask("describe", #"{"feed":"\#(feed)"}"#)?["result"]?["counts"]?.text ?? ""
  }

  @Test("the answer contains the counts, no snapshot follows, and deltas contain counts but no rows")
  func deltas() throws {
    let frames = watch("both")
    expectEqual(frames.count, 1)
    expectEqual(frames[0]["result"]?["sections"]?.items.map { $0["count"]?.int }, [0, 0, 0])
    _ = ask("update", #"{"feed":"c","elements":[{"id":1,"p":9,"t":"x"},{"id":2,"p":1}],"animation":"fade"}"#)
    let delta = try require(messages().first?["params"])
    expectEqual(delta["counts"]?.text, "[0,1,1]")
    expectEqual(delta["animation"]?.string, "fade")
    for name in ["elements", "types", "added", "deleted", "updated", "moves"] { expectEqual(delta[name], nil) }
    _ = ask("update", #"{"feed":"c","element":{"id":1,"p":8}}"#)
    expectEqual(messages().first?["params"]?["counts"]?.text, "[0,1,1]")
  }

  @Test("a delta takes less than 150 bytes, however many rows changed")
  func size() {
    _ = watch("c/high")
    _ = ask(
      "update", "{\"feed\":\"c\",\"elements\":[\((0..<500).map { #"{"id":\#($0),"p":9}"# }.joined(separator: ","))]}")
    let frames = harness.take(watcher)
    expectEqual(frames.count, 1)
    expect(frames.allSatisfy { $0.utf8.count < 150 })
  }

  @Test("added and deleted sections are listed")
  func sections() throws {
    _ = watch("tabs")
    _ = ask("activate", #"{"feed":"tabs","child":"a"}"#)
    let delta = try require(messages().first?["params"])
    expectEqual(delta["sections"]?.text, #"{"deleted":[0,1],"added":[{"at":0,"name":"a"}]}"#)
    expectEqual(delta["counts"]?.text, "[0]")
    _ = ask("undefine", #"{"feed":"both"}"#)
    _ = ask("undefine", #"{"feed":"tabs"}"#)
    let end = try require(messages().last?["params"])
    expectEqual(end["ended"]?.bool, true)
    expectEqual(end["counts"]?.text, "[]")
  }

  @Test("watches of counts and of rows of one feed are independent")
  func both() {
    let other = harness.connect()
    _ = harness.ask(other, "watch", #"{"feed":"a"}"#)
    _ = watch("a")
    expectEqual(ask("describe", #"{"feed":"a"}"#)?["result"]?["watchers"]?.int, 2)
    _ = ask("insert", #"{"feed":"a","elements":[1]}"#)
    expectEqual(messages().first?["params"]?["counts"]?.text, "[1]")
    expectEqual(Value(harness.take(other).last ?? "")?["params"]?["elements"]?.text, "[1]")
    _ = harness.ask(watcher, "watch", #"{"feed":"a"}"#)
    _ = ask("insert", #"{"feed":"a","elements":[2]}"#)
    expectEqual(messages().last?["params"]?["elements"]?.text, "[2]")
    expectEqual(ask("describe", #"{"feed":"a"}"#)?["result"]?["watchers"]?.int, 2)
    _ = ask("select", #"{"feed":"a","at":[0,0]}"#)
    expectEqual(messages().last?["method"]?.string, "selection")
    _ = watch("a")
    _ = ask("select", #"{"feed":"a","at":[1,0]}"#)
    expect(messages().isEmpty)
  }

  @Test("all watchers of counts receive the same bytes, and a slow one receives one composed delta")
  func sharing() {
    let others = (0..<3).map { _ in harness.connect() }
    for other in others { _ = harness.ask(other, "watch", #"{"feed":"a","elements":false}"#) }
    _ = watch("a")
    harness.stopped = [watcher]
    for place in 0..<200 { _ = ask("insert", #"{"feed":"a","elements":[\#(place)]}"#) }
    let frames = others.map { harness.take($0) }
    expect(frames[0].count == 200 && frames[0] == frames[1] && frames[1] == frames[2])
    harness.resume(watcher)
    let late = messages()
    expect(late.count < 200)
    expectEqual(late.last?["params"]?["counts"]?.text, "[200]")
  }

  @Test("a watch that cannot catch up is reset with one part without elements")
  func reset() {
    let harness = EngineHarness { ($0.maxQueue, $0.historyBytes) = (4096, 0) }
    let pusher = harness.connect()
    let watcher = harness.connect()
    _ = harness.ask(pusher, "define", #"{"feed":"a","kind":"array"}"#)
    _ = harness.ask(watcher, "watch", #"{"feed":"a","elements":false}"#)
    harness.stopped = [watcher]
    for place in 0..<200 { _ = harness.ask(pusher, "insert", #"{"feed":"a","elements":[\#(place)]}"#) }
    harness.advance(seconds: 2)
    harness.resume(watcher)
    let reset = harness.take(watcher).compactMap { Value($0) }.filter { $0["method"]?.string == "snapshot" }
    expectEqual(reset.count, 1)
    expectEqual(reset.first?["params"]?["sections"]?.text, #"[{"name":"a","count":200}]"#)
    expectEqual(reset.first?["params"]?["elements"]?.text, "[]")
    expectEqual(reset.first?["params"]?["last"]?.bool, true)
    _ = harness.ask(pusher, "insert", #"{"feed":"a","elements":[0]}"#)
    expectEqual(Value(harness.take(watcher).last ?? "")?["params"]?["counts"]?.text, "[201]")
  }

  @Test("a watch resumes with one delta")
  func resuming() {
    let start = watch("c")[0]["result"]
    _ = harness.ask(watcher, "unwatch", #"{"feed":"c"}"#)
    for id in 0..<5 { _ = ask("update", #"{"feed":"c","element":{"id":\#(id),"p":\#(id * 3)}}"#) }
    let since = #","since":{"epoch":"test","revision":\#(start?["revision"]?.int ?? 0)}"#
    let frames = watch("c", since)
    expectEqual(frames[0]["result"]?["resumed"]?.bool, true)
    expectEqual(frames.count, 2)
    expectEqual(frames[1]["params"]?["counts"]?.text, counts("c"))
    expectEqual(frames[1]["params"]?["from"]?.int, start?["revision"]?.int)
  }

  @Test("elements must be a boolean")
  func malformed() {
    let refused = Value(harness.ask(watcher, "watch", #"{"feed":"a","elements":1}"#).first ?? "")
    expectEqual(refused?.errorCode, -32602)
    expectEqual(refused?.errorData?["member"]?.string, "elements")
  }
}
