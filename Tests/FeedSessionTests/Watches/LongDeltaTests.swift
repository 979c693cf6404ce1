import FeedModel
import FeedServer
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

extension EngineHarness {
  /// The deltas and snapshots of a client, and the revision that each leads to.
  func messages(_ client: ConnectionID) -> [String] {
    take(client).compactMap { Value($0) }.map { message in
      let params = message["params"]
      return "\(message["method"]?.text ?? "answer") \(params?["from"]?.int ?? -1) \(params?["revision"]?.int ?? -1)"
    }
  }
}

/// Deltas with many rows, which are encoded in parts.
struct LongDeltaTests {
  private static let count = 500

  private static func harness(_ isSliced: Bool = true, limits: Limits = Limits()) -> EngineHarness {
    EngineHarness(limits: limits, slices: isSliced ? SlicedWork("slices", slice: 0, isEager: true) : nil)
  }

  private static func elements(_ value: Int) -> String {
    "[" + (0..<count).map { #"{"id":\#($0),"k":"t\#($0 % 3)","v":\#(value)}"# }.joined(separator: ",") + "]"
  }

  private static func update(_ value: Int) -> [UInt8] {
    EngineHarness.request("update", #"{"feed":"c","elements":\#(elements(value))}"#, id: 9)
  }

  private static func fill(_ harness: EngineHarness, _ client: ConnectionID) {
    _ = harness.ask(client, "define", #"{"feed":"c","kind":"collection","type":"$.k"}"#)
    _ = harness.ask(client, "define", #"{"feed":"above","kind":"composed","children":["c"]}"#)
    harness.deliver(client, update(0))
    _ = harness.take(client)
  }

  /// Runs turns until feeds have the new state and can be read, while a delta is being encoded.
  private static func turnUntilEncoding(_ harness: EngineHarness) {
    let revision = harness.engine.catalog.revision
    for _ in 0..<100_000 {
      harness.turnOnce()
      if harness.engine.catalog.revision > revision && !harness.isExclusive { return }
    }
    Issue.record("the change never takes effect")
  }

  @Test func equalsTheDeltaThatIsEncodedAtOnce() {
    var received: [[[String]]] = []
    for isSliced in [true, false] {
      let harness = Self.harness(isSliced)
      let (writer, reader) = (harness.connect(), harness.connect())
      Self.fill(harness, writer)
      let watchers = (0..<5).map { _ in harness.connect() }
      _ = harness.ask(watchers[0], "watch", #"{"feed":"c","initial":false}"#)
      _ = harness.ask(watchers[1], "watch", #"{"feed":"c","initial":false}"#)
      _ = harness.ask(watchers[1], "watch", #"{"feed":"above","initial":false}"#)
      _ = harness.ask(watchers[2], "watch", #"{"feed":"c","initial":false,"throttle":1000}"#)
      _ = harness.ask(watchers[3], "watch", #"{"feed":"c","elements":false}"#)
      _ = harness.ask(watchers[4], "select", #"{"feed":"c","at":[0,3]}"#)
      _ = harness.ask(watchers[4], "watch", #"{"feed":"c","initial":false}"#)
      for watcher in watchers { _ = harness.take(watcher) }
      harness.supply(writer, Self.update(1))
      var reads = 0
      if isSliced {
        Self.turnUntilEncoding(harness)
        for _ in 0..<100 where harness.halfFrame(of: watchers[0]) == 0 {
          harness.supply(reader, "get", #"{"feed":"c","id":7}"#)
          harness.turnOnce()
          let answers = harness.take(reader).compactMap { Value($0) }
          for answer in answers { expectEqual(answer["result"]?["element"]?["v"]?.int, 1) }
          reads += answers.count
        }
        // 500 rows with their types stop after each 64th.
        expect(reads > 5)
      }
      harness.turn()
      received.append(watchers.map { harness.take($0) })
      harness.deliver(writer, Self.update(2))
      harness.advance(seconds: 2)
      received[received.count - 1] += watchers.map { harness.take($0) }
    }
    expectEqual(received[0].map(\.count), received[1].map(\.count))
    let isSame = received[0] == received[1]
    expect(isSame)
    expect(received[0].allSatisfy { !$0.isEmpty })
  }

  @Test func watchesMayBeginAndEndMeanwhile() {
    let harness = Self.harness()
    let writer = harness.connect()
    Self.fill(harness, writer)
    let watchers = (0..<5).map { _ in harness.connect() }
    for watcher in watchers[..<4] { _ = harness.ask(watcher, "watch", #"{"feed":"c","initial":false}"#) }
    let revision = Int(harness.engine.catalog.revision)
    harness.supply(writer, Self.update(1))
    Self.turnUntilEncoding(harness)
    harness.drop(watchers[0])
    harness.supply(watchers[1], "unwatch", #"{"feed":"c"}"#)
    for watcher in watchers[2...] where watcher != watchers[3] {
      harness.supply(watcher, "watch", #"{"feed":"c","initial":false}"#)
    }
    harness.turnOnce()
    expectEqual(harness.messages(watchers[1]), ["answer -1 -1"])
    expectEqual(harness.messages(watchers[2]), ["answer -1 -1"])
    expect(harness.messages(watchers[3]).isEmpty)
    expectEqual(harness.messages(watchers[4]), ["answer -1 -1"])
    harness.turn()
    let first = "\"delta\" \(revision) \(revision + 1)"
    expectEqual(harness.messages(watchers[3]), [first])
    harness.deliver(writer, Self.update(2))
    let second = "\"delta\" \(revision + 1) \(revision + 2)"
    expectEqual(watchers[1...].map { harness.messages($0) }, [[], [second], [second], [second]])
  }

  @Test func deltaThatDoesNotFitAFrameIsASnapshot() {
    var limits = Limits()
    limits.maxFrame = 20_000
    let harness = Self.harness(limits: limits)
    let (writer, watcher) = (harness.connect(), harness.connect())
    Self.fill(harness, writer)
    _ = harness.ask(watcher, "watch", #"{"feed":"above","initial":false}"#)
    _ = harness.ask(writer, "define", #"{"feed":"c","kind":"collection","type":"$.k","section":"$.id","replace":true}"#)
    let messages = harness.messages(watcher)
    expect(messages.count > 1 && messages.allSatisfy { $0.hasPrefix("\"snapshot\"") })
  }

  /// The length of a delta with many rows is estimated. A few long elements do not count.
  @Test(arguments: [false, true]) func lengthIsEstimated(_ isTooLarge: Bool) {
    var limits = Limits()
    limits.maxFrame = 400_000
    let harness = Self.harness(false, limits: limits)
    let (writer, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(writer, "define", #"{"feed":"c","kind":"collection"}"#)
    for start in stride(from: 0, to: 5000, by: 500) {
      let list = (start..<start + 500).map { id in
        let length = isTooLarge ? 200 : id % 625 == 0 ? 20_000 : 1
        return #"{"id":\#(id),"v":"\#(String(repeating: "x", count: length))"}"#
      }
      _ = harness.ask(writer, "update", #"{"feed":"c","elements":[\#(list.joined(separator: ","))]}"#)
    }
    _ = harness.ask(watcher, "watch", #"{"feed":"c","initial":false}"#)
    let revision = Int(harness.engine.catalog.revision)
    _ = harness.ask(writer, "define", #"{"feed":"c","kind":"collection","bins":[{"name":"z"}],"replace":true}"#)
    let messages = harness.messages(watcher)
    if isTooLarge {
      expect(messages.count > 1 && messages.allSatisfy { $0.hasPrefix("\"snapshot\"") })
    } else {
      expectEqual(messages, ["\"delta\" \(revision) \(revision + 1)"])
    }
  }

  @Test func fullConnectionFallsBehind() {
    var limits = Limits()
    limits.maxQueue = 1
    let harness = Self.harness(limits: limits)
    let (writer, watcher) = (harness.connect(), harness.connect())
    Self.fill(harness, writer)
    _ = harness.ask(watcher, "watch", #"{"feed":"c","initial":false}"#)
    harness.stopped = [watcher]
    let revision = Int(harness.engine.catalog.revision)
    for value in 1...3 { harness.deliver(writer, Self.update(value)) }
    harness.resume(watcher)
    let messages = harness.messages(watcher)
    expectEqual(messages, ["\"delta\" \(revision) \(revision + 1)", "\"delta\" \(revision + 1) \(revision + 3)"])
  }
}
