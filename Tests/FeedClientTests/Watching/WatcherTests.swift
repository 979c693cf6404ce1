import FeedSystem
import Glibc
import TestSupport
import Testing

@testable import FeedClient

struct WatcherTests {
  private let absent = ClientError.noDaemon(SystemError(code: ENOENT, operation: "connect to"))
  private let unknownFeed = RemoteError(code: -32000, message: "no such feed")

  private func options(
    since: FeedPosition? = nil, initial: Bool = true, waits: Bool = false, reconnects: Bool = false
  ) -> WatchOptions {
    var options = WatchOptions(feed: "f")
    options.since = since
    options.initial = initial
    options.waits = waits
    options.reconnects = reconnects
    return options
  }

  private func start(_ revision: UInt64, resumed: Bool = false, epoch: String = "e") -> WatchStart {
    WatchStart(feed: "f", epoch: epoch, revision: revision, resumed: resumed, sections: [])
  }

  /// Returns a watcher that received its snapshot of revision 5.
  private func live(_ options: WatchOptions) throws -> Watcher {
    var watcher = Watcher(options)
    _ = watcher.connected()
    _ = watcher.greeted()
    _ = watcher.started(start(5))
    try watcher.took(snapshot: 5, isReset: false, isLast: true)
    return watcher
  }

  @Test func watcherConnectsWatchesAndAppliesFrames() throws {
    var watcher = Watcher(options())
    expectEqual(watcher.connected(), .sendHello)
    expectEqual(watcher.greeted(), .sendWatch(since: nil, initial: true))
    expectEqual(watcher.position, nil)
    expectEqual(watcher.started(start(5)), .read)
    expect(watcher.isWatching)
    try watcher.took(snapshot: 5, isReset: false, isLast: false)
    expectEqual(watcher.position, nil)
    try watcher.took(snapshot: 5, isReset: false, isLast: true)
    expectEqual(watcher.position, FeedPosition(epoch: "e", revision: 5))
    try watcher.took(deltaFrom: 5, to: 8)
    expectEqual(watcher.position, FeedPosition(epoch: "e", revision: 8))
    try watcher.took(Bookmark(feed: "f", epoch: "e", revision: 8, current: 30))
    expectEqual(watcher.position, FeedPosition(epoch: "e", revision: 30))
    #expect(throws: FeedFault.gap(expected: 8, found: 31)) { try watcher.took(deltaFrom: 31, to: 32) }
  }

  @Test func watchersWithoutWaitingFailAtTheFirstObstacle() throws {
    var watcher = Watcher(options())
    expectEqual(watcher.failedToConnect(absent), .fail(absent))
    watcher = Watcher(options())
    _ = watcher.connected()
    _ = watcher.greeted()
    expectEqual(watcher.refused(unknownFeed), .fail(.refused(unknownFeed)))
    var begun = try live(options())
    expectEqual(begun.lost(.closed(nil)), .fail(.closed(nil)))
  }

  @Test func waitingForTheDaemonTakesLongerEachTime() {
    var watcher = Watcher(options(waits: true))
    var rests: [UInt64] = []
    for _ in 0..<9 {
      guard case .rest(let time) = watcher.failedToConnect(absent) else { break }
      rests.append(time)
      expectEqual(watcher.rested(), .connect)
    }
    expectEqual(rests.map { $0 / 1_000_000 }, [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000])
    expectEqual(watcher.connected(), .sendHello)
    expectEqual(watcher.greeted(), .sendWatch(since: nil, initial: true))
    expectEqual(watcher.started(start(1)), .read)
    // Waiting at the start does not imply reconnecting later.
    expectEqual(watcher.lost(.closed(nil)), .fail(.closed(nil)))
  }

  @Test func missingFeedIsAwaitedThroughTheListOfFeeds() {
    var watcher = Watcher(options(waits: true))
    _ = watcher.connected()
    expectEqual(watcher.greeted(), .sendWatch(since: nil, initial: true))
    expectEqual(watcher.refused(unknownFeed), .watchList)
    expect(watcher.isAskingForList)
    // The feed may have been defined before the list was watched.
    expectEqual(watcher.startedList(), .sendWatch(since: nil, initial: true))
    expectEqual(watcher.refused(unknownFeed), .read)
    expectEqual(watcher.listed(), .sendWatch(since: nil, initial: true))
    // Defined and undefined, and defined again before the answer.
    expectEqual(watcher.listed(), .read)
    expectEqual(watcher.refused(unknownFeed), .sendWatch(since: nil, initial: true))
    expectEqual(watcher.started(start(1)), .unwatchList)
    expect(!watcher.isFollowingList)
  }

  @Test func refusedListOfFeedsEndsTheWait() {
    var watcher = Watcher(options(waits: true))
    _ = watcher.connected()
    _ = watcher.greeted()
    _ = watcher.refused(unknownFeed)
    let refusal = RemoteError(code: -32006, message: "permission denied")
    expectEqual(watcher.refused(refusal), .fail(.refused(refusal)))
  }

  @Test func listOfFeedsIsWatchedAgainAfterALostConnection() {
    var watcher = Watcher(options(waits: true))
    _ = watcher.connected()
    _ = watcher.greeted()
    _ = watcher.refused(unknownFeed)
    _ = watcher.startedList()
    _ = watcher.refused(unknownFeed)
    expectEqual(watcher.lost(.closed(nil)), .rest(50_000_000))
    expect(!watcher.isFollowingList)
    expectEqual(watcher.rested(), .connect)
    _ = watcher.connected()
    _ = watcher.greeted()
    expectEqual(watcher.refused(unknownFeed), .watchList)
  }

  @Test func permanentFailuresAreNotRetried() {
    var watcher = Watcher(options(waits: true, reconnects: true))
    let forbidden = ClientError.noDaemon(SystemError(code: EACCES, operation: "connect to"))
    expectEqual(watcher.failedToConnect(forbidden), .fail(forbidden))
    watcher = Watcher(options(waits: true, reconnects: true))
    _ = watcher.connected()
    let refusal = RemoteError(code: -32602, message: "protocol")
    expectEqual(watcher.refused(refusal), .fail(.refused(refusal)))
  }

  @Test func memberOfAGroupThatIsBehindIsAskedAgain() throws {
    let behind = RemoteError(code: -32008, message: "behind")
    var watcher = try live(options(reconnects: true))
    _ = watcher.lost(.closed(nil))
    _ = watcher.rested()
    _ = watcher.connected()
    expectEqual(watcher.greeted(), .sendWatch(since: FeedPosition(epoch: "e", revision: 5), initial: true))
    expectEqual(watcher.refused(behind), .rest(100_000_000))
    expectEqual(watcher.rested(), .connect)
    _ = watcher.connected()
    expectEqual(watcher.greeted(), .sendWatch(since: FeedPosition(epoch: "e", revision: 5), initial: true))
    expectEqual(watcher.started(start(5, resumed: true)), .read)
    watcher = Watcher(options())
    _ = watcher.connected()
    _ = watcher.greeted()
    expectEqual(watcher.refused(behind), .fail(.refused(behind)))
  }

  @Test func reconnectingResumesTheWatch() throws {
    var watcher = try live(options(reconnects: true))
    try watcher.took(deltaFrom: 5, to: 9)
    expectEqual(watcher.lost(.closed(Bye(reason: "shutdown", message: ""))), .rest(50_000_000))
    expect(!watcher.isWatching)
    expectEqual(watcher.rested(), .connect)
    expectEqual(watcher.failedToConnect(absent), .rest(100_000_000))
    expectEqual(watcher.rested(), .connect)
    _ = watcher.connected()
    expectEqual(watcher.greeted(), .sendWatch(since: FeedPosition(epoch: "e", revision: 9), initial: true))
    expectEqual(watcher.started(start(12, resumed: true)), .read)
    try watcher.took(deltaFrom: 9, to: 12)
    expectEqual(watcher.position, FeedPosition(epoch: "e", revision: 12))
    // After a successful watch the delays are short again.
    expectEqual(watcher.lost(.closed(nil)), .rest(50_000_000))
  }

  @Test func verifiedRevisionStaysValidAfterResuming() throws {
    var watcher = try live(options(reconnects: true))
    try watcher.took(Bookmark(feed: "f", epoch: "e", revision: 5, current: 20))
    _ = watcher.lost(.closed(nil))
    _ = watcher.rested()
    _ = watcher.connected()
    expectEqual(watcher.greeted(), .sendWatch(since: FeedPosition(epoch: "e", revision: 20), initial: true))
    _ = watcher.started(start(20, resumed: true))
    // The rows are still those of revision 5 of the feed.
    expectEqual(watcher.progress?.holds(at: 5), true)
    expectEqual(watcher.progress?.holds(at: 21), false)
  }

  @Test func lostConnectionDuringASnapshotKeepsTheLastCompleteState() throws {
    var watcher = try live(options(reconnects: true))
    try watcher.took(snapshot: 40, isReset: true, isLast: false)
    expectEqual(watcher.position, FeedPosition(epoch: "e", revision: 5))
    _ = watcher.lost(.closed(nil))
    _ = watcher.rested()
    _ = watcher.connected()
    expectEqual(watcher.greeted(), .sendWatch(since: FeedPosition(epoch: "e", revision: 5), initial: true))
    _ = watcher.started(start(41))
    _ = watcher.lost(.closed(nil))
    expectEqual(watcher.position, FeedPosition(epoch: "e", revision: 5))
  }

  @Test func newEpochBeginsWithASnapshot() throws {
    let old = FeedPosition(epoch: "old", revision: 100)
    var watcher = Watcher(options(since: old, initial: false))
    _ = watcher.connected()
    expectEqual(watcher.greeted(), .sendWatch(since: old, initial: true))
    _ = watcher.started(start(3))
    expectEqual(watcher.position, old)
    try watcher.took(snapshot: 3, isReset: false, isLast: true)
    expectEqual(watcher.position, FeedPosition(epoch: "e", revision: 3))
  }

  @Test func withoutASnapshotDeltasStartAtTheAnswer() throws {
    var watcher = Watcher(options(initial: false))
    _ = watcher.connected()
    expectEqual(watcher.greeted(), .sendWatch(since: nil, initial: false))
    _ = watcher.started(start(7))
    expectEqual(watcher.position, FeedPosition(epoch: "e", revision: 7))
    try watcher.took(deltaFrom: 7, to: 8)
    #expect(throws: FeedFault.unexpectedSnapshot(revision: 9)) {
      try watcher.took(snapshot: 9, isReset: false, isLast: true)
    }
  }

  @Test func undefinedFeedEndsTheWatchOrIsAwaited() throws {
    var impatient = try live(options())
    guard case .fail(.refused(let error)) = impatient.ended() else {
      Issue.record("the watch goes on")
      return
    }
    expectEqual(error.code, RemoteError.unknownFeed)
    var patient = try live(options(reconnects: true))
    expectEqual(patient.ended(), .watchList)
    expectEqual(patient.startedList(), .sendWatch(since: FeedPosition(epoch: "e", revision: 5), initial: true))
    expectEqual(patient.refused(unknownFeed), .read)
    expectEqual(patient.listed(), .sendWatch(since: FeedPosition(epoch: "e", revision: 5), initial: true))
  }
}
