import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// A watcher receives the promised revision even if the changes that it missed cancel out.
struct ReachedRevisionTests {
  private let harness = EngineHarness()
  private let pusher: ConnectionID
  private let watcher: ConnectionID

  init() {
    (pusher, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(pusher, "define", #"{"feed":"c","kind":"collection"}"#)
    _ = harness.ask(pusher, "update", #"{"feed":"c","element":{"id":1}}"#)
  }

  /// Adds an element and deletes it again: two commits that cancel out.
  private func pushAndDelete() {
    _ = harness.ask(pusher, "update", #"{"feed":"c","element":{"id":2}}"#)
    _ = harness.ask(pusher, "delete", #"{"feed":"c","id":2}"#)
  }

  private func watch(_ params: String) -> [Value] {
    harness.ask(watcher, "watch", params).compactMap { Value($0) }
  }

  private func notifications() -> [Value] { harness.take(watcher).compactMap { Value($0)?["params"] } }

  private func expectEmptyDelta(_ delta: Value?, from: Int, to revision: Int) {
    expect(delta?["from"]?.int == from && delta?["revision"]?.int == revision)
    for member in ["deleted", "added", "updated", "elements"] { expectEqual(delta?[member]?.text, "[]", "\(member)") }
    for member in ["moves", "sections", "types", "ended"] { expectEqual(delta?[member], nil, "\(member)") }
  }

  @Test func resumingReachesTheRevisionOfTheAnswer() {
    pushAndDelete()
    let frames = watch(#"{"feed":"c","since":{"epoch":"test","revision":2}}"#)
    expectEqual(frames.first?["result"]?["resumed"]?.bool, true)
    expectEqual(frames.first?["result"]?["revision"]?.int, 4)
    expectEqual(frames.count, 2)
    expectEmptyDelta(frames.last?["params"], from: 2, to: 4)
    _ = harness.ask(pusher, "update", #"{"feed":"c","element":{"id":3}}"#)
    expectEqual(notifications().map { $0["from"]?.int }, [4])
  }

  @Test func throttledWatchReceivesTheRevision() {
    _ = watch(#"{"feed":"c","throttle":1000}"#)
    _ = harness.ask(pusher, "update", #"{"feed":"c","element":{"id":3}}"#)
    expectEqual(notifications().map { $0["revision"]?.int }, [3])
    pushAndDelete()
    expect(notifications().isEmpty)
    harness.advance(seconds: 1)
    let deltas = notifications()
    expectEqual(deltas.count, 1)
    expectEmptyDelta(deltas.first, from: 3, to: 5)
  }

  @Test func slowReaderReceivesTheRevision() {
    let harness = EngineHarness { $0.maxQueue = 1 << 16 }
    let (pusher, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(pusher, "define", #"{"feed":"c","kind":"collection"}"#)
    _ = harness.ask(watcher, "watch", #"{"feed":"c"}"#)
    harness.stopped = [watcher]
    let element = #"{"id":1,"text":"\#(String(repeating: "x", count: 1 << 17))"}"#
    _ = harness.ask(pusher, "update", #"{"feed":"c","element":\#(element)}"#)
    for _ in 0..<3 {
      _ = harness.ask(pusher, "update", #"{"feed":"c","element":{"id":2}}"#)
      _ = harness.ask(pusher, "delete", #"{"feed":"c","id":2}"#)
    }
    harness.resume(watcher)
    let deltas = harness.take(watcher).compactMap { Value($0)?["params"] }
    expectEqual(deltas.last?["revision"]?.int, harness.engine.catalog.revision.asInt)
    expect(zip(deltas.dropFirst(), deltas).allSatisfy { $0["from"]?.int == $1["revision"]?.int })
  }

  @Test func syncWaitsForTheRevision() {
    _ = watch(#"{"feed":"c","throttle":60000}"#)
    _ = harness.ask(pusher, "update", #"{"feed":"c","element":{"id":3}}"#)
    pushAndDelete()
    _ = harness.take(watcher)
    let frames = harness.ask(watcher, "sync").compactMap { Value($0) }
    expectEmptyDelta(frames.first?["params"], from: 3, to: 5)
    expectEqual(frames.last?["result"]?["revision"]?.int, 5)
  }
}

extension UInt64 {
  fileprivate var asInt: Int { Int(self) }
}
