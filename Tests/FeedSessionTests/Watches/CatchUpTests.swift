import FeedChange
import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine

@Suite("Catching up")
struct CatchUpTests {
  private let harness = EngineHarness()

  /// A feed to which several requests add `count` rows each; with sections, each a section.
  private func channel(_ count: Int, times: Int, sections: Bool = false) throws -> FeedChannel {
    let id = harness.connect()
    let section = sections ? #","section":"$.s""# : ""
    _ = harness.ask(id, "define", #"{"feed":"c","kind":"collection"\#(section)}"#)
    for time in 0..<times {
      let elements = (0..<count).map { #"{"id":\#(time * count + $0),"s":\#(time)}"# }.joined(separator: ",")
      _ = harness.ask(id, "update", "{\"feed\":\"c\",\"elements\":[\(elements)]}")
    }
    return FeedChannel(try harness.engine.catalog.feed(named: "c"))
  }

  @Test("changes are composed")
  func composes() throws {
    let channel = try channel(1000, times: 10)
    let end = channel.feed.revision
    let change = try require(channel.change(from: end - 10, to: end))
    expectEqual(change.added.count, 10_000)
    expectEqual(change.size, 10_000)
    expectEqual(channel.change(from: end - 3, to: end - 1)?.added.count, 2000)
    expectEqual(channel.change(from: end, to: end), .empty)
  }

  @Test("a long delta is made at once for a few throttled watches, and later for the others")
  func longDeltasOfThrottledWatches() {
    let pusher = harness.connect()
    _ = harness.ask(pusher, "define", #"{"feed":"c","kind":"collection"}"#)
    let watchers = (0..<8).map { _ in harness.connect() }
    for watcher in watchers { _ = harness.ask(watcher, "watch", #"{"feed":"c","initial":false,"throttle":1}"#) }
    let text = String(repeating: "x", count: 400_000)
    _ = harness.ask(pusher, "update", #"{"feed":"c","element":{"id":1,"t":"\#(text)"},"animation":"fade"}"#)
    for watcher in watchers {
      expectEqual(harness.take(watcher).map { $0.contains(text) && $0.contains(#""animation":"fade""#) }, [true])
    }
    expectEqual(harness.engine.status.counters.composedDeltas, 5)
  }

  @Test("watches of counts get what happened to the sections")
  func counting() throws {
    let rows = try channel(100, times: 3, sections: true)
    let counts = FeedChannel(rows.feed, isCounting: true)
    let end = rows.feed.revision
    for from in end - 3...end {
      let change = try require(rows.change(from: from, to: end))
      expectEqual(change.sectionsAdded.count, Int(end - from))
      expectEqual(counts.change(from: from, to: end), change.withoutRows)
    }
  }

  @Test("more rows than a snapshot has are out of reach")
  func tooLarge() throws {
    let channel = try channel(1000, times: 3)
    let end = channel.feed.revision
    expect(channel.change(from: end - 3, to: end) != nil)
    _ = harness.ask(harness.connect(), "delete", #"{"feed":"c","where":"@.s < 2"}"#)
    _ = harness.ask(harness.connect(), "delete", #"{"feed":"c","where":"@.s == 2"}"#)
    expectEqual(channel.feed.revision, end + 2)
    expectEqual(channel.change(from: end, to: end + 1), nil)
    expect(channel.change(from: end + 1, to: end + 2) != nil)
  }

  @Test("many changes and many rows are composed in parts")
  func missedMuch() throws {
    let channel = try channel(10, times: 300)
    let end = channel.feed.revision
    expect(!channel.missedMuch(since: end, fewRows: 0))
    expect(channel.missedMuch(since: end - 1, fewRows: 9))
    expect(!channel.missedMuch(since: end - 1, fewRows: 20))
    expect(channel.missedMuch(since: end - 300, fewRows: 2999))
    expect(!channel.missedMuch(since: end - 300, fewRows: 6000))
    let elements = (0..<100).map { #"{"id":\#($0),"s":0}"# }.joined(separator: ",")
    _ = harness.ask(harness.connect(), "update", #"{"feed":"c","elements":[\#(elements)]}"#)
    expect(channel.missedMuch(since: channel.feed.revision - 1, fewRows: 89))
    expect(!channel.missedMuch(since: channel.feed.revision - 1, fewRows: 100))
  }
}
