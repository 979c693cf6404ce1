import FeedModel
import FeedServer
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Watches that receive the deltas of a turn together at its end: no frame may be lost or reordered.
struct InStepTests {
  let harness = EngineHarness()

  private static func update(_ id: Int, _ version: Int, request: Int) -> String {
    #"{"jsonrpc":"2.0","id":\#(request),"method":"update","params":{"feed":"c","element":{"id":\#(id),"v":\#(version)}}}"#
  }

  private static func request(_ method: String, id: Int) -> String {
    #"{"jsonrpc":"2.0","id":\#(id),"method":"\#(method)","params":{"feed":"c"}}"#
  }

  private func connectWatching(_ more: String = "") -> ConnectionID {
    let id = harness.connect()
    _ = harness.ask(id, "define", #"{"feed":"c","kind":"collection"}"#)
    _ = harness.ask(id, "watch", #"{"feed":"c","initial":false\#(more)}"#)
    return id
  }

  /// Sends several requests in one turn.
  private func send(_ id: ConnectionID, _ requests: [String]) {
    harness.deliver(id, requests.flatMap(EngineHarness.frame))
  }

  /// Describes a frame: the id of an answer, or the method and the revisions of a notification.
  private func summary(_ frame: String) -> String {
    guard let value = Value(frame) else { return "invalid JSON" }
    if let id = value["id"]?.int { return "answer \(id)" }
    let params = value["params"]
    return "\(value["method"]?.string ?? "") \(params?["from"]?.int ?? 0)-\(params?["revision"]?.int ?? 0)"
  }

  /// The memory of a feed's deltas counts for nobody, and there may be as many watched feeds as a user likes.
  @Test func fewFeedsKeepTheMemoryOfTheirDeltas() throws {
    let id = harness.connect()
    let names = (0..<2 * KeptBuffers.most).map { "f\($0)" }
    let long = String(repeating: "x", count: 5000)
    for name in names {
      _ = harness.ask(id, "define", #"{"feed":"\#(name)","kind":"single"}"#)
      _ = harness.ask(id, "watch", #"{"feed":"\#(name)"}"#)
    }
    for round in 0..<3 {
      for name in names { _ = harness.ask(id, "put", #"{"feed":"\#(name)","element":"\#(long)\#(round)"}"#) }
    }
    let capacities = try names.map { name in
      try harness.engine.catalog.feed(named: name).watching?.buffer.bytes.capacity ?? 0
    }
    expectEqual(capacities.count { $0 > KeptBuffers.little }, KeptBuffers.most)
  }

  @Test func answerFollowsTheDeltasBeforeIt() {
    let id = connectWatching()
    let revision = Int(harness.engine.catalog.revision)
    send(
      id,
      [
        Self.update(1, 1, request: 1), Self.update(1, 2, request: 2), Self.request("sync", id: 3),
        Self.update(2, 1, request: 4),
      ])
    let deltas = (0..<3).map { "delta \(revision + $0)-\(revision + $0 + 1)" }
    expectEqual(
      harness.take(id).map(summary),
      [
        deltas[0], "answer 1", deltas[1], "answer 2", "answer 3", deltas[2], "answer 4",
      ])
  }

  @Test func otherWatchersReceiveTheSameDeltas() {
    let pusher = connectWatching()
    let watcher = connectWatching()
    send(pusher, (0..<10).map { Self.update($0, 1, request: $0) })
    let frames = harness.take(watcher)
    expectEqual(frames.count, 10)
    expectEqual(frames, harness.take(pusher).filter { $0.json?["method"]?.string == "delta" })
  }

  @Test func watchThatEndsWithinATurnReceivesEarlierDeltas() {
    let pusher = connectWatching()
    let watcher = connectWatching()
    let second = harness.connect()
    let revision = Int(harness.engine.catalog.revision)
    harness.supply(pusher, EngineHarness.frame(Self.update(1, 1, request: 1)))
    harness.supply(watcher, EngineHarness.frame(Self.request("unwatch", id: 7)))
    harness.supply(second, EngineHarness.frame(Self.update(1, 2, request: 2)))
    harness.turn()
    expectEqual(harness.take(watcher).map(summary), ["delta \(revision)-\(revision + 1)", "answer 7"])
  }

  @Test func watchThatBeginsWithinATurnReceivesLaterDeltas() {
    let pusher = connectWatching()
    let (watcher, second) = (harness.connect(), harness.connect())
    let revision = Int(harness.engine.catalog.revision)
    harness.supply(pusher, EngineHarness.frame(Self.update(1, 1, request: 1)))
    harness.supply(watcher, "watch", #"{"feed":"c","initial":false}"#, id: 7)
    harness.supply(second, EngineHarness.frame(Self.update(1, 2, request: 2)))
    harness.turn()
    expectEqual(harness.take(watcher).map(summary), ["answer 7", "delta \(revision + 1)-\(revision + 2)"])
  }

  @Test func watchOfAFullConnectionCatchesUpByComposedDeltas() {
    let harness = EngineHarness { $0.maxQueue = 4096 }
    let (pusher, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(pusher, "define", #"{"feed":"c","kind":"collection"}"#)
    _ = harness.ask(watcher, "watch", #"{"feed":"c","initial":false}"#)
    harness.stopped = [watcher]
    for version in 0..<100 { harness.send(pusher, Self.update(1, version, request: version)) }
    harness.stopped = []
    harness.turn()
    let frames = harness.take(watcher).compactMap { Value($0) }
    expect(frames.count < 100)
    var reached = frames.first?["params"]?["from"]?.int
    for frame in frames {
      expectEqual(frame["params"]?["from"]?.int, reached)
      reached = frame["params"]?["revision"]?.int
    }
    expectEqual(reached, Int(harness.engine.catalog.revision))
    expectEqual(frames.last?["params"]?["elements"]?.items.first?["v"]?.int, 99)
  }

  /// A long commit gives its feed the new revision before it tells the change, and may stop in between.
  @Test func deltaThatIsGivenWhileTheNextChangeIsRecordedLeadsToItsOwnRevision() throws {
    let runner = ChosenStops()
    var limits = Limits()
    // One delta fills the connection.
    limits.maxQueue = 50
    let harness = EngineHarness(limits: limits, slices: runner)
    let (first, second, watcher) = (harness.connect(), harness.connect(), harness.connect())
    _ = harness.ask(first, "define", #"{"feed":"c","kind":"array"}"#)
    _ = harness.ask(watcher, "watch", #"{"feed":"c","elements":false}"#)
    let feed = try harness.engine.catalog.feed(named: "c")
    let revision = feed.revision
    var stops = 0
    runner.stops = {
      guard stops == 0, feed.revision == revision + 2 else { return false }
      stops += 1
      return true
    }
    harness.stopped = [watcher]
    for (pusher, count) in [(first, 1), (second, 5000)] {
      let elements = repeatElement("0", count: count).joined(separator: ",")
      let params = #"{"feed":"c","elements":[\#(elements)]}"#
      harness.supply(pusher, "insert", params)
    }
    harness.turn()
    expectEqual(stops, 1)
    harness.resume(watcher)
    expectEqual(
      harness.take(watcher).map(summary),
      ["delta \(revision)-\(revision + 1)", "delta \(revision + 1)-\(revision + 2)"])
  }
}

/// Lets long requests stop only where a test says so.
private final class ChosenStops: SliceRunner {
  private let work = SlicedWork("slices")
  var stops: () -> Bool = { false }
  let isEager = true

  func beginSlice() {}
  var timeLeft: UInt64 { stops() ? 0 : .max }
  func run(_ work: @escaping () -> Void) -> Bool { self.work.run(work) }
  func resume() -> Bool { work.resume() }
  func suspend() { work.suspend() }
  func end() { work.end() }
}
