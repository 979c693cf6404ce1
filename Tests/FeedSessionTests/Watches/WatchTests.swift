import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Watching from now, from a revision, without a snapshot, with a throttle and twice; and bookmarks.
struct WatchTests {
  let harness = EngineHarness()
  let pusher: ConnectionID
  let watcher: ConnectionID

  init() {
    (pusher, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(
      pusher, "define", #"{"feed":"c","kind":"collection","bins":[{"name":"a"},{"name":"b","filter":"@.v"}]}"#)
    _ = harness.ask(pusher, "define", #"{"feed":"other","kind":"collection"}"#)
  }

  private func push(_ id: Int, feed: String = "c") {
    _ = harness.ask(pusher, "update", #"{"feed":"\#(feed)","element":{"id":\#(id)}}"#)
  }

  private func watch(_ params: String, by id: ConnectionID? = nil) -> [Value] {
    harness.ask(id ?? watcher, "watch", params).compactMap { Value($0) }
  }

  private func notifications() -> [Value] { harness.take(watcher).compactMap { Value($0)?["params"] } }

  /// Returns the method and the revisions of each received frame.
  private func told() -> [String] {
    harness.take(watcher).compactMap { Value($0) }.map { frame in
      let params = frame["params"]
      return "\(frame["method"]?.string ?? "?") \(params?["from"]?.text ?? "-") \(params?["revision"]?.text ?? "-")"
    }
  }

  @Test func resumingWithinTheHistoryGivesOneDelta() {
    _ = watch(#"{"feed":"c"}"#)
    for id in 1...5 { push(id) }
    expectEqual(told().count, 5)
    for since in 2...7 {
      let frames = watch(#"{"feed":"c","since":{"epoch":"test","revision":\#(since)}}"#)
      expectEqual(frames.first?["result"]?["resumed"]?.bool, true)
      expectEqual(frames.first?["result"]?["sections"]?.items.map { $0["count"]?.int }, [5, 0])
      expectEqual(frames.count, (since == 7 ? 1 : 2))
      expect(frames.dropFirst().allSatisfy { $0["params"]?["from"]?.int == since })
      expect(frames.dropFirst().allSatisfy { $0["params"]?["added"]?.items.count == 7 - since })
    }
    push(6)
    expectEqual(told(), ["delta 7 8"], "the restarted watch must continue")
  }

  @Test func resumingBeyondTheHistoryStartsOver() {
    push(1)
    for since in [
      #"{"epoch":"other","revision":3}"#, #"{"epoch":"test","revision":0}"#, #"{"epoch":"test","revision":99}"#,
      #"{"epoch":"","revision":3}"#, #"{"epoch":"test","revision":18446744073709551615}"#,
      #"{"epoch":"test","revision":1e300}"#, #"{"epoch":"test","revision":-1}"#,
      #"{"epoch":"test","revision":2.5}"#,
    ] {
      let frames = watch(#"{"feed":"c","since":\#(since)}"#)
      expectEqual(frames.first?["result"]?["resumed"]?.bool, false, "an unknown position must not fail: \(since)")
      expectEqual(frames.last?["params"]?["last"]?.bool, true, "\(since)")
    }
    expectEqual(watch(#"{"feed":"c","since":null}"#).count, 2)
    for since in [#"{"epoch":"test","revision":"3"}"#, #"{"epoch":1,"revision":3}"#, #"{"revision":3}"#, "7", "[]"] {
      expectEqual(
        watch(#"{"feed":"c","since":\#(since)}"#).map(\.errorCode), [-32602],
        "a malformed position must be refused: \(since)")
    }
  }

  /// A position stays valid while its feed does not change, whatever other feeds do.
  @Test func unchangedFeedIsResumedFromAnyLaterRevision() {
    push(1)
    for id in 1...4 { push(id, feed: "other") }
    for since in 3...7 {
      let frames = watch(#"{"feed":"c","since":{"epoch":"test","revision":\#(since)}}"#)
      expectEqual(frames.map { $0["result"]?["resumed"]?.bool }, [true])
      expectEqual(frames.first?["result"]?["revision"]?.int, since)
    }
    push(2)
    expectEqual(told(), ["delta 7 8"])
  }

  /// The history of a feed is kept without watchers; that of a bin is not.
  @Test func feedWithoutWatchersIsResumed() {
    for id in 1...3 { push(id) }
    let frames = watch(#"{"feed":"c","since":{"epoch":"test","revision":3}}"#)
    expectEqual(frames.first?["result"]?["resumed"]?.bool, true)
    expectEqual(frames.last?["params"]?["added"]?.text, "[[0,1],[0,2]]")
    let since = #"{"feed":"c/a","since":{"epoch":"test","revision":4},"initial":false}"#
    expectEqual(watch(since).first?["result"]?["resumed"]?.bool, false)
    push(4)
    _ = harness.take(watcher)
    expectEqual(watch(since.replacing("4", with: "5")).first?["result"]?["resumed"]?.bool, true)
  }

  @Test func watchWithoutSnapshotReceivesDeltasAtOnce() {
    push(1)
    let frames = watch(#"{"feed":"c","initial":false}"#)
    expectEqual(frames.count, 1)
    expectEqual(frames.first?["result"]?["revision"]?.int, 3)
    push(2)
    expectEqual(told(), ["delta 3 4"])
  }

  @Test func throttleLimitsTheRateOfDeltas() {
    _ = watch(#"{"feed":"c","throttle":1000}"#)
    var told: [Int] = []
    for id in 1...40 {
      push(id)
      harness.advance(seconds: 0.1)
      told += notifications().map { $0["added"]?.items.count ?? 0 }
    }
    expect(told.reduce(0, +) > 30)
    expect((4...6).contains(told.count), "\(told)")
    harness.advance(seconds: 1)
    told += notifications().map { $0["added"]?.items.count ?? 0 }
    expectEqual(told.reduce(0, +), 40, "every change must arrive in the end")
  }

  @Test func unwatchEndsAWatch() {
    _ = watch(#"{"feed":"c"}"#)
    expectEqual(harness.ask(watcher, "unwatch", #"{"feed":"c"}"#), [#"{"jsonrpc":"2.0","id":1,"result":{}}"#])
    push(1)
    expect(told().isEmpty)
    expect(harness.ask(watcher, "unwatch", #"{"feed":"c"}"#).first?.json?["result"] != nil, "a second unwatch succeeds")
  }

  @Test func secondWatchOfAFeedStartsOver() {
    _ = watch(#"{"feed":"c"}"#)
    push(1)
    _ = harness.take(watcher)
    let again = watch(#"{"feed":"c"}"#)
    expect(again.count == 2 && again.last?["params"]?["elements"]?.text == #"[{"id":1}]"#)
    push(2)
    expectEqual(told(), ["delta 3 4"], "the second watch must replace the first")
  }

  @Test func bookmarksReportUnchangedFeeds() {
    _ = watch(#"{"feed":"c"}"#)
    for id in 1...3 { push(id, feed: "other") }
    harness.advance(seconds: 29)
    expect(told().isEmpty)
    harness.advance(seconds: 2)
    let bookmarks = notifications()
    expectEqual(bookmarks.map { $0["current"]?.int }, [5])
    expectEqual(bookmarks.first?["revision"]?.int, 1)
    expectEqual(bookmarks.first?["epoch"]?.string, "test")
    harness.advance(seconds: 100)
    expect(told().isEmpty, "a bookmark must not be repeated")
    let frames = watch(#"{"feed":"c","since":{"epoch":"test","revision":5}}"#, by: harness.connect())
    expectEqual(frames.map { $0["result"]?["resumed"]?.bool }, [true])
  }

  /// A bookmark is sent even if nothing changed since the watch began.
  @Test func firstBookmarkIsSentOneIntervalAfterTheWatch() {
    _ = watch(#"{"feed":"c"}"#)
    harness.advance(seconds: 29)
    expect(told().isEmpty)
    harness.advance(seconds: 2)
    let bookmarks = notifications()
    expectEqual(bookmarks.map { $0["current"]?.int }, [2])
    expectEqual(bookmarks.first?["revision"]?.int, 1)
  }

  @Test func watcherOfTheLastCommitGetsNoBookmark() {
    _ = watch(#"{"feed":"c"}"#)
    push(1)
    expectEqual(told(), ["delta 1 3"])
    harness.advance(seconds: 100)
    expect(told().isEmpty)
    _ = watch(#"{"feed":"other"}"#)
    harness.advance(seconds: 100)
    expectEqual(notifications().map { $0["feed"]?.string }, ["other"])
  }

  /// Revisions before the trimmed history cannot be resumed from; later ones can.
  @Test func historyIsBounded() {
    let harness = EngineHarness { $0.historyBytes = 400 }
    let (pusher, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(pusher, "define", #"{"feed":"c","kind":"collection"}"#)
    _ = harness.ask(watcher, "watch", #"{"feed":"c"}"#)
    for id in 1...50 { _ = harness.ask(pusher, "update", #"{"feed":"c","element":{"id":\#(id)}}"#) }
    harness.advance(seconds: 2)
    let resumed = (1...51).map { since -> Bool in
      let frames = harness.ask(watcher, "watch", #"{"feed":"c","since":{"epoch":"test","revision":\#(since)}}"#)
      return frames.first?.json?["result"]?["resumed"]?.bool == true
    }
    expectEqual(resumed, resumed.sorted { !$0 && $1 }, "the revisions that can be resumed from must be contiguous")
    expect((2..<20).contains(resumed.count { $0 }))
  }
}
