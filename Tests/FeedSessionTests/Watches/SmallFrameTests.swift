import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Small frames: snapshots are split into parts, a delta that does not fit becomes a snapshot, no frame exceeds the limit.
struct SmallFrameTests {
  /// Sizes of elements: equal, mixed, and up to the largest that is accepted.
  static let sizes: [[Int]] = [
    Array(repeating: 20, count: 700), [20] + Array(repeating: 900, count: 40), (0..<60).map { $0 * 15 },
    Array(repeating: 400, count: 20) + [20] + Array(repeating: 1000, count: 20), [1000, 20, 1000, 20],
  ]

  @Test(arguments: [2048, 4096, 65536], 0..<5) func snapshotsFit(maxFrame: Int, set: Int) throws {
    var limits = Limits()
    limits.maxFrame = maxFrame
    let harness = EngineHarness(limits: limits)
    let (pusher, watcher) = (harness.connect(), harness.connect())
    let definition =
      #"{"feed":"c","kind":"collection","type":"$.k","bins":[{"name":"a"},{"name":"b","filter":"@.id<50"}]}"#
    _ = harness.ask(pusher, "define", definition)
    var pushed = 0
    for (number, size) in Self.sizes[set].enumerated() {
      let filler = String(repeating: "x", count: min(size, limits.elementRoom - 30))
      let answer = harness.ask(pusher, "update", #"{"feed":"c","element":{"id":\#(number),"k":"\#(filler)"}}"#)
      if answer.first?.json?["error"] == nil { pushed += 1 }
    }
    expectEqual(pushed, Self.sizes[set].count)
    let frames = harness.ask(watcher, "watch", #"{"feed":"c"}"#)
    expect(frames.allSatisfy { $0.utf8.count <= maxFrame })
    let values = frames.compactMap { Value($0) }
    var mirror = try Mirror(require(values.first?["result"]), since: nil, initial: true)
    for value in values.dropFirst() { try mirror.take(snapshot: require(value["params"])) }
    expect(mirror.isLive)
    expectEqual(
      harness.ask(pusher, "verify", #"{"feed":"c"}"#).first?.json?["result"]?["digest"]?.string, mirror.digest)
  }

  /// A small element before large ones must not make a part exceed the limit.
  @Test func snapshotPartsOfMixedSizesFit() throws {
    var limits = Limits()
    limits.maxFrame = 1 << 20
    let harness = EngineHarness(limits: limits)
    let (pusher, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(pusher, "define", #"{"feed":"c","kind":"collection"}"#)
    _ = harness.ask(pusher, "update", #"{"feed":"c","element":{"id":0}}"#)
    let filler = String(repeating: "x", count: 200_000)
    for number in 1...12 {
      _ = harness.ask(pusher, "update", #"{"feed":"c","element":{"id":\#(number),"f":"\#(filler)"}}"#)
    }
    let frames = harness.ask(watcher, "watch", #"{"feed":"c"}"#)
    expect(frames.allSatisfy { $0.utf8.count <= limits.maxFrame })
    expectEqual(frames.last?.json?["params"]?["last"]?.bool, true)
  }

  /// A delta that exceeds a frame is replaced by a snapshot, although the answer to the pusher fits.
  @Test func deltaLargerThanAFrameBecomesAReset() throws {
    let harness = EngineHarness { $0.maxFrame = 4096 }
    let (pusher, watcher) = (harness.connect(), harness.connect())
    let bins = (0..<8).map { #"{"name":"\#($0)"}"# }.joined(separator: ",")
    _ = harness.ask(pusher, "define", #"{"feed":"c","kind":"collection","bins":[\#(bins)]}"#)
    let values = harness.ask(watcher, "watch", #"{"feed":"c"}"#).compactMap { Value($0) }
    var mirror = try Mirror(require(values.first?["result"]), since: nil, initial: true)
    try mirror.take(snapshot: require(values.last?["params"]))
    let filler = String(repeating: "x", count: 800)
    let answer = harness.ask(pusher, "update", #"{"feed":"c","element":{"id":1,"f":"\#(filler)"}}"#)
    expectEqual(Value(answer.first ?? "")?["result"]?["added"]?.items.count, 8)
    let frames = harness.take(watcher)
    expect(frames.allSatisfy { $0.utf8.count <= 4096 })
    for frame in frames.compactMap({ Value($0) }) { try mirror.take(snapshot: require(frame["params"])) }
    expectEqual(mirror.resets, 1)
    expectEqual(
      harness.ask(pusher, "verify", #"{"feed":"c"}"#).first?.json?["result"]?["digest"]?.string, mirror.digest)
  }

  /// A reset lists the sections in its first part. If the list does not fit a frame, the connection ends instead.
  @Test func resetWhoseSectionsExceedAFrameEndsTheConnection() throws {
    var limits = Limits()
    limits.maxFrame = 4096
    let harness = EngineHarness(limits: limits)
    let (pusher, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(pusher, "define", #"{"feed":"c","kind":"collection","section":"$.k","bins":[{"name":"a"}]}"#)
    _ = harness.ask(watcher, "watch", #"{"feed":"c"}"#)
    let name = String(repeating: "k", count: 100)
    // The delta of each update is longer than a frame, and the second list of sections.
    var frames: [Value] = []
    for start in [0, 12] {
      let elements = (start..<start + 12).map { #"{"id":\#($0),"k":"\#(name)\#($0)"}"# }.joined(separator: ",")
      let answer = harness.ask(pusher, "update", #"{"feed":"c","elements":[\#(elements)],"result":"counts"}"#)
      expectEqual(Value(answer.first ?? "")?.errorCode, nil)
      let received = harness.take(watcher)
      expect(received.allSatisfy { $0.utf8.count <= limits.maxFrame })
      frames += received.compactMap { Value($0) }
    }
    expectEqual(frames.count { $0["params"]?["reset"]?.bool == true }, 1)
    expectEqual(frames.last?["method"]?.string, "bye")
    expectEqual(frames.last?["params"]?["reason"]?.string, "maxFrame")
    expect(!harness.isOpen(watcher))
  }

  /// A mutation whose answer does not fit a frame is refused without a change. A redefinition or a notification, whose answer
  /// does not list the change, is executed.
  @Test func mutationWhoseAnswerExceedsAFrameIsRefused() {
    let harness = EngineHarness { $0.maxFrame = 4096 }
    let id = harness.connect()
    _ = harness.ask(id, "define", #"{"feed":"c","kind":"collection"}"#)
    for start in stride(from: 0, to: 1000, by: 100) {
      let elements = (start..<start + 100).map { #"{"id":\#($0)}"# }.joined(separator: ",")
      _ = harness.ask(id, "update", #"{"feed":"c","elements":[\#(elements)]}"#)
    }
    let before = harness.ask(id, "verify", #"{"feed":"c"}"#)
    let many = #"{"feed":"c","elements":[]}"#
    for reply in [
      harness.ask(id, "set", many), harness.ask(id, "transaction", #"{"ops":[{"method":"set","params":\#(many)}]}"#),
    ] {
      expectEqual(Value(reply.first ?? "")?.errorCode, -32007)
      expectEqual(Value(reply.first ?? "")?.errorData?["limit"]?.string, "maxFrame")
    }
    expectEqual(harness.ask(id, "verify", #"{"feed":"c"}"#), before)
    let redefined = harness.ask(
      id, "define", #"{"feed":"c","kind":"collection","replace":true,"bins":[{"name":"other"}]}"#)
    expectEqual(Value(redefined.first ?? "")?.errorCode, nil)
    harness.send(id, #"{"jsonrpc":"2.0","method":"set","params":\#(many)}"#)
    expectEqual(harness.ask(id, "verify", #"{"feed":"c"}"#).first?.json?["result"]?["counts"]?.path, [0])
  }

  /// Frames that a turn has produced already must not truncate later frames of the turn.
  @Test func manyAnswersOfOneTurnAreComplete() throws {
    let harness = EngineHarness { ($0.maxFrame, $0.maxQueue) = (4096, 1 << 20) }
    let (pusher, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(pusher, "define", #"{"feed":"c","kind":"collection"}"#)
    _ = harness.ask(watcher, "watch", #"{"feed":"c"}"#)
    let filler = String(repeating: "x", count: 1000)
    let update = { (number: Int) in
      EngineHarness.request("update", #"{"feed":"c","element":{"id":\#(number % 3),"f":"\#(filler)\#(number)"}}"#)
    }
    let snapshot = EngineHarness.request("snapshot", #"{"feed":"c"}"#, id: 2)
    harness.deliver(pusher, (0..<40).flatMap { update($0) + snapshot })
    let answers = harness.take(pusher).compactMap { Value($0) }.filter { $0["id"]?.int == 2 }
    expectEqual(answers.count, 40)
    for (number, answer) in answers.enumerated() {
      let section = answer["result"]?["sections"]?.items.first
      expectEqual(section?["count"]?.int, min(number + 1, 3))
      expectEqual(section?["elements"]?.items.count, min(number + 1, 3))
    }
    let deltas = harness.take(watcher).compactMap { Value($0) }
    expectEqual(deltas.count, 40)
    expect(deltas.allSatisfy { $0["params"]?["elements"]?.items.first?["f"]?.string?.hasPrefix(filler) == true })
  }

  /// Reads whose answer exceeds a frame are refused; smaller reads of the same feed are not.
  @Test func readLargerThanAFrameIsRefused() {
    let harness = EngineHarness { $0.maxFrame = 4096 }
    let id = harness.connect()
    _ = harness.ask(id, "define", #"{"feed":"c","kind":"collection"}"#)
    for number in 0..<200 {
      _ = harness.ask(id, "update", #"{"feed":"c","element":{"id":\#(number),"text":"0123456789"}}"#)
    }
    for (method, params) in [
      ("snapshot", #"{"feed":"c"}"#), ("range", #"{"feed":"c","section":0,"from":0,"count":200}"#),
      ("query", #"{"feed":"c","path":"$[*]"}"#),
    ] {
      let reply = Value(harness.ask(id, method, params).first ?? "")
      expectEqual(reply?.errorCode, -32007)
      expectEqual(reply?.errorData?["limit"]?.string, "maxFrame")
    }
    let part = Value(harness.ask(id, "range", #"{"feed":"c","section":0,"from":190,"count":50}"#).first ?? "")
    expectEqual(part?["result"]?["elements"]?.items.count, 10)
  }

  /// The list of the sections of a reset counts for nobody before it is sent, so it is not made when the turn's bytes are used up.
  @Test func resetAfterOtherWatchesIsMadeInTheNextTurn() {
    let harness = EngineHarness { $0.maxFrame = 64 << 10 }
    let (writer, watcher) = (harness.connect(), harness.connect())
    for feed in ["long", "short"] {
      _ = harness.ask(writer, "define", #"{"feed":"\#(feed)","kind":"array","id":"$.id"}"#)
    }
    let others = (0..<7).map { _ in harness.connect() }
    for other in others { _ = harness.ask(other, "watch", #"{"feed":"short","throttle":500}"#) }
    _ = harness.ask(watcher, "watch", #"{"feed":"long","throttle":900}"#)
    let filler = String(repeating: "x", count: 30 << 10)
    for id in 0..<4 {
      _ = harness.ask(writer, "update", #"{"feed":"short","element":{"id":\#(id)}}"#)
      _ = harness.ask(writer, "update", #"{"feed":"long","element":{"id":\#(id),"t":"\#(filler)"}}"#)
    }
    for id in others + [watcher] { _ = harness.take(id) }
    // Seven watches catch up first, and this one composes a delta that does not fit a frame.
    harness.turnOnce(after: 1)
    expectEqual(harness.take(others[6]).count, 1)
    expectEqual(harness.engine.status.counters.resets, 0)
    harness.turn()
    expectEqual(harness.engine.status.counters.resets, 1)
    let frames = harness.take(watcher).compactMap { Value($0)?["params"] }
    expectEqual(frames.first?["reset"]?.bool, true)
    expectEqual(frames.last?["last"]?.bool, true)
  }

  /// The sections of a reset may take as much as a frame, so no more resets are made than can be sent.
  @Test func resetsAreMadeWhenTheyCanBeSent() throws {
    let harness = EngineHarness { $0.maxFrame = 512 << 10 }
    let writer = harness.connect()
    _ = harness.ask(writer, "define", #"{"feed":"c","kind":"collection","section":"$.s"}"#)
    let filler = String(repeating: "s", count: 60)
    let elements = (0..<2500).map { #"{"id":\#($0),"s":"\#($0)\#(filler)"}"# }.joined(separator: ",")
    _ = harness.ask(writer, "update", #"{"feed":"c","elements":[\#(elements)]}"#)
    let long = String(repeating: "x", count: 200 << 10)
    for id in 0..<3 { _ = harness.ask(writer, "update", #"{"feed":"c","element":{"id":\#(id),"t":"\#(long)"}}"#) }
    let watchers = (0..<6).map { _ in harness.connect() }
    for watcher in watchers { _ = harness.ask(watcher, "watch", #"{"feed":"c","initial":false}"#) }
    let ops = (0..<3).map { #"{"method":"patch","params":{"feed":"c","id":\#($0),"patch":{"q":1}}}"# }
      .joined(separator: ",")
    harness.supply(writer, "transaction", #"{"result":"counts","ops":[\#(ops)]}"#)
    for _ in 0..<10 where harness.engine.status.counters.resets == 0 { harness.turnOnce() }
    // Two lists use up the turn's bytes of snapshots.
    expect((1..<6).contains(harness.engine.status.counters.resets))
    harness.turn()
    expectEqual(harness.engine.status.counters.resets, 6)
    for watcher in watchers {
      let frames = harness.take(watcher).compactMap { Value($0)?["params"] }
      expectEqual(frames.filter { $0["reset"]?.bool == true }.map { $0["sections"]?.items.count }, [2498])
      expectEqual(frames.last?["last"]?.bool, true)
    }
  }
}
