import FeedChange
import FeedModel
import FeedWire

/// All watches: which of them are live, which wait for what, and whose bookmarks are due.
///
/// Invariant: a watch that has not ended is counted once and has one seat, in its channel or in the schedule.
struct Watches {
  /// The watches that are not live.
  var schedule = WatchSchedule()
  private(set) var count = 0
  /// Channels whose buffers hold deltas of this turn.
  private(set) var changed: [FeedChannel] = []
  /// Counts the deltas made for watches in step, so that a connection that was given all is known at once.
  private(set) var madeDeltas: UInt64 = 0
  private var bookmarks: Timers<Watch>

  init(now: Instant) {
    bookmarks = Timers(now: now)
  }

  /// Counts a new watch, which is live.
  mutating func begin(_ watch: Watch, bookmarkAt moment: Instant) {
    count += 1
    watch.channel.didBegin()
    watch.channel.addSolo(watch)
    bookmarks.add(watch, at: moment)
  }

  /// Takes a watch out of all lists.
  mutating func end(_ watch: Watch) {
    leaveSeat(watch)
    watch.seat = .ended
    watch.progress = .live
    watch.channel.didEnd()
    bookmarks.remove(watch)
    count -= 1
  }

  /// Takes a watch off its seat; it needs another one, or ends.
  mutating func leaveSeat(_ watch: Watch) {
    switch watch.seat {
    case .inStep, .solo: watch.channel.remove(watch)
    case .ready, .throttled, .blocked: schedule.remove(watch)
    case .standing: break
    case .ended: preconditionFailure("the watch has ended")
    }
  }

  /// Notes that a delta was made for the watches of a channel that are in step.
  mutating func didMakeDelta(_ channel: FeedChannel) {
    madeDeltas &+= 1
    if channel.isDirty { return }
    channel.isDirty = true
    changed.append(channel)
  }

  /// Uses the channels' buffers again: their bytes were given out and written.
  mutating func recycle() {
    if changed.isEmpty { return }
    for channel in changed { channel.recycle() }
    changed.removeAll(keepingCapacity: true)
  }

  /// The watches that may be due a bookmark; each is added again when it was looked at.
  mutating func takeDueBookmarks(now: Instant) -> [Watch] { bookmarks.takeExpired(now: now) }

  mutating func addBookmark(_ watch: Watch, at moment: Instant) { bookmarks.add(watch, at: moment) }

  /// Stops a debug build if a count or a seat is wrong. O(watches).
  func checkInvariants(channels: [FeedChannel]) {
    #if DEBUG
      schedule.checkInvariants()
      bookmarks.checkInvariants()
      for channel in channels { channel.checkInvariants() }
      let live = channels.reduce(0) { $0 + $1.inStep.count + $1.solo.count }
      assert(live + schedule.readyCount + schedule.throttledCount + schedule.blockedCount == count)
      assert(channels.reduce(0) { $0 + $1.watchCount } == count)
      assert(bookmarks.count == count)
    #endif
  }
}

/// Watches that share each delta of their feed.
extension Engine {
  /// Lets a watch that has the feed's revision, and need not wait for its throttle, share the deltas made from now on.
  func joinIfUpToDate(_ watch: Watch) {
    guard watch.seat == .solo, watch.throttle == 0, watch.queuedRevision == watch.channel.feed.revision else { return }
    watch.channel.join(watch)
  }

  /// Gives every watch what was made for it in this turn.
  func giveAll() {
    for channel in watches.changed {
      for watch in channel.inStep { give(watch) }
    }
  }

  /// Gives the watches of one connection what was made for them so far.
  func giveAll(to session: Session) {
    if session.givenDeltas == watches.madeDeltas || session.watches.isEmpty { return }
    session.givenDeltas = watches.madeDeltas
    for watch in session.watches where watch.seat == .inStep { give(watch) }
  }

  /// Queues what was made for a watch in step. It falls behind instead when its connection holds too much already.
  private func give(_ watch: Watch) {
    let channel = watch.channel
    let end = channel.buffer.bytes.count
    if watch.given == end { return }
    let session = watch.session
    if session.output.backlog > limits.maxQueue { return fallBehind(watch) }
    session.output.append(channel.buffer, from: watch.given, to: end)
    outbox.mark(session)
    watch.given = end
    watch.queuedRevision = channel.feed.revision
    watch.lastTold = now
  }

  /// Gives a watch in step what was made for it so far. It may fall behind, and then has left.
  private func giveRest(_ watch: Watch) {
    if watch.seat == .inStep { give(watch) }
  }

  /// The watch misses a delta: from now on it costs nothing until it can be brought up to date.
  func fallBehind(_ watch: Watch) {
    watches.leaveSeat(watch)
    watch.progress = .behind(nil)
    wait(watch)
  }

  /// The watch gets a new snapshot in place of what it has.
  func restart(_ watch: Watch) {
    beginSnapshot(watch, reset: true)
    watch.session.client.resets &+= 1
    status.counters.resets &+= 1
    let bytes = watch.session.output.count
    status.report(
      .info,
      "\(watch.session.description) watching \(watch.channel.feed.name) is reset with a snapshot: what it missed since revision \(watch.revision) is out of reach or larger than one frame; \(bytes) bytes queued, limit maxQueue \(limits.maxQueue)",
      about: .init(uid: watch.session.peer.uid, pid: watch.session.peer.pid, feed: watch.channel.feed.name))
  }

  func beginSnapshot(_ watch: Watch, reset: Bool) {
    giveRest(watch)
    watches.leaveSeat(watch)
    let cursor = SnapshotCursor(watch.channel.feed.makeSnapshot(), of: watch.channel, reset: reset)
    watch.progress = .snapshot(cursor)
    watch.queuedRevision = cursor.revision
    status.counters.snapshots &+= 1
    wait(watch)
  }

  /// Ends a watch; nothing more is queued for it.
  func end(_ watch: Watch) {
    giveRest(watch)
    watch.session.watches.removeAll { $0 === watch }
    remove(watch)
  }

  /// Ends a live watch of a feed that is gone. One whose connection is full falls behind, and ends when it was told.
  func endTold(_ watch: Watch) {
    giveRest(watch)
    if watch.isLive { end(watch) }
  }

  /// Takes a watch from its feed; the session's list is the caller's.
  func remove(_ watch: Watch) {
    watches.end(watch)
    releaseIfGone(watch.channel)
  }

  /// Cuts the cycle of a feed that is gone and its channel once no watch is left to be told.
  func releaseIfGone(_ channel: FeedChannel) {
    guard channel.feed.isGone, let whole = channel.feed.channel as? FeedChannel else { return }
    if whole.totalWatchCount == 0 { channel.feed.channel = nil }
  }

  /// Stops a debug build if the watches of the sessions are not the watches that are counted. O(watches).
  func checkWatches() {
    #if DEBUG
      var channels: [ObjectIdentifier: FeedChannel] = [:]
      for session in sessions.all {
        for watch in session.watches { channels[ObjectIdentifier(watch.channel)] = watch.channel }
      }
      watches.checkInvariants(channels: Array(channels.values))
    #endif
  }
}

/// Watches that are not live: snapshots in parts, catching up.
extension Engine {
  /// Bytes of elements in one part of a snapshot.
  private static let partSize = 64 << 10
  /// Bytes that may wait for a connection before its next part is made.
  private static let partBacklog = 256 << 10
  /// Bytes of snapshots that one turn may make, so that others are served in between.
  private static let turnBudget = 512 << 10
  /// Changes that one turn may compose for one watch.
  private static let catchUpBudget = 4096

  /// Puts a watch that is not live where it waits for what it needs.
  private func wait(_ watch: Watch) {
    watches.schedule.add(watch, isConnectionFull: isFull(watch.session), now: now)
  }

  private func isFull(_ session: Session) -> Bool {
    session.output.isBlocked || session.output.count > Self.partBacklog
  }

  /// Brings the watches that are not live forward, as far as their connections and the turn's budget allow.
  func advanceWatches() {
    watches.schedule.releaseThrottled(now: now)
    var budget = Self.turnBudget
    var left = watches.schedule.readyCount
    while left > 0 && budget > 0, let watch = watches.schedule.takeReady() {
      left -= 1
      advance(watch, &budget)
      if watch.seat == .standing { wait(watch) }
    }
    #if DEBUG
      if status.counters.requests % 32 == 0 { checkWatches() }
    #endif
  }

  private func advance(_ watch: Watch, _ budget: inout Int) {
    while watch.seat == .standing && budget > 0 && !isFull(watch.session) {
      switch watch.progress {
      case .live: preconditionFailure("a live watch waits for nothing")
      case .snapshot(let cursor): sendPart(of: cursor, to: watch, &budget)
      case .behind(let catchUp):
        if now < watch.nextDelta || !self.catchUp(watch, catchUp ?? CatchUp(from: watch.queuedRevision), &budget) {
          return
        }
      }
    }
  }

  private func sendPart(of cursor: SnapshotCursor, to watch: Watch, _ budget: inout Int) {
    let start = answers.bytes.count
    cursor.writePart(to: &answers.bytes, target: Self.partSize, limit: limits.maxFrame)
    budget -= answers.bytes.count - start
    queue(watch.session, answers, from: start)
    watch.lastTold = now
    if cursor.isDone { settle(watch) }
  }

  /// The watcher has everything up to `queuedRevision`: the watch becomes live, unless the feed has moved on.
  private func settle(_ watch: Watch) {
    if watch.queuedRevision < watch.channel.feed.revision {
      watch.progress = .behind(nil)
      return
    }
    watch.progress = .live
    watch.channel.addSolo(watch)
    joinIfUpToDate(watch)
    tellSelection(watch)
    if watch.channel.feed.isGone { end(watch) }
  }

  /// Composes what was missed and queues it. Returns whether there is anything further to do at once.
  ///
  /// Changes that cancel out are told as well, as a delta that lists nothing: the watcher learns the revision it has reached.
  private func catchUp(_ watch: Watch, _ progress: CatchUp, _ budget: inout Int) -> Bool {
    let feed = watch.channel.feed
    var progress = progress
    watch.progress = .behind(nil)
    budget -= Self.partSize
    switch progress.advance(feed, budget: Self.catchUpBudget, maxSize: max(1024, feed.count)) {
    case .more:
      watch.progress = .behind(progress)
      return false
    case .outOfReach:
      restart(watch)
    case .complete(let change):
      let range = appendDelta(to: answers, watch.channel, from: watch.queuedRevision, change)
      if range.isEmpty {
        restart(watch)
      } else {
        tell(watch, answers, range)
        status.counters.composedDeltas &+= 1
        settle(watch)
      }
    }
    return true
  }
}
