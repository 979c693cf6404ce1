import FeedJSON
import FeedModel
import FeedWire

/// Watches that are not live: snapshots in parts, catching up, bookmarks, ends.
extension Engine {
  /// Bytes of elements in one part of a snapshot.
  private static let partSize = 64 << 10
  /// Bytes that may wait for a connection before its next part is made.
  private static let partBacklog = 256 << 10
  /// Bytes of snapshots that one turn may make, so that others are served in between.
  private static let turnBudget = 512 << 10
  /// Changes that one turn may compose for one watch.
  private static let catchUpBudget = 4096

  func makePending(_ watch: Watch) {
    if watch.isPending { return }
    watch.isPending = true
    pendingWatches.append(watch)
  }

  /// The watch misses a delta: from now on it costs nothing until it can be brought up to date.
  func fallBehind(_ watch: Watch) {
    leaveStep(watch)
    watch.state = .behind
    watch.catchUp = nil
    makePending(watch)
  }

  /// The watch gets a whole new snapshot in place of what it has.
  func restart(_ watch: Watch) {
    beginSnapshot(watch, reset: true)
    watch.session.resets &+= 1
    counters.resets &+= 1
    let bytes = watch.session.output.count
    report(
      .info,
      "\(watch.session.description) watching \(watch.channel.feed.name) is reset with a snapshot: what it missed since revision \(watch.revision) is out of reach or larger than one frame; \(bytes) bytes queued, limit maxQueue \(limits.maxQueue)"
    )
  }

  func beginSnapshot(_ watch: Watch, reset: Bool) {
    leaveStep(watch)
    let cursor = SnapshotCursor(watch.channel.feed.makeSnapshot(), of: watch.channel, reset: reset)
    watch.state = .snapshot(cursor)
    watch.catchUp = nil
    watch.queuedRevision = cursor.revision
    watch.queuedPosition = cursor.revision
    counters.snapshots &+= 1
    makePending(watch)
  }

  /// Whether a watch that is not live could be told something now.
  func canAdvance(_ watch: Watch) -> Bool {
    let session = watch.session
    if watch.isEnded || session.isBlocked || session.output.count > Self.partBacklog { return false }
    if case .behind = watch.state { return now >= watch.nextDelta }
    return true
  }

  /// When the next throttled watch may be told something; nil while none waits for its time.
  var nextThrottle: Instant? {
    pendingWatches.lazy.filter { !$0.isEnded && !$0.session.isBlocked && $0.throttle > 0 }.map(\.nextDelta).min()
  }

  /// Brings the watches that are not live forward, as far as their connections take it and the turn's budget allows.
  func advanceWatches() {
    var budget = Self.turnBudget
    let watches = pendingWatches
    pendingWatches.removeAll(keepingCapacity: true)
    for (place, watch) in watches.enumerated() {
      if budget <= 0 {
        // Those that had no turn come first in the next one.
        pendingWatches.insert(contentsOf: watches[place...], at: 0)
        break
      }
      advance(watch, &budget)
      if watch.isEnded || watch.isLive { watch.isPending = false } else { pendingWatches.append(watch) }
    }
  }

  private func advance(_ watch: Watch, _ budget: inout Int) {
    while !watch.isEnded && !watch.isLive && budget > 0 && canAdvance(watch) {
      switch watch.state {
      case .live: return
      case .snapshot(let cursor): sendPart(of: cursor, to: watch, &budget)
      case .behind: if !catchUp(watch, &budget) { return }
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

  /// The watcher has everything up to `watch.revision`; it is live if the feed has not moved on.
  private func settle(_ watch: Watch) {
    watch.catchUp = nil
    if watch.position >= watch.channel.feed.revision {
      watch.state = .live
      joinIfUpToDate(watch)
      tellSelection(watch)
      if watch.channel.feed.isGone { end(watch) }
    } else {
      watch.state = .behind
    }
  }

  /// Composes what was missed and queues it. Returns whether there is anything further to do at once.
  private func catchUp(_ watch: Watch, _ budget: inout Int) -> Bool {
    let feed = watch.channel.feed
    var catchUp = watch.catchUp ?? CatchUp(from: watch.position)
    watch.catchUp = nil
    budget -= Self.partSize
    switch catchUp.advance(feed, budget: Self.catchUpBudget, maxSize: max(1024, feed.count)) {
    case .more:
      watch.catchUp = catchUp
      return false
    case .outOfReach:
      restart(watch)
    case .complete(let change) where change.isEmpty:
      // What was missed has undone itself; a change of nothing is told to nobody.
      watch.queuedPosition = feed.revision
      settle(watch)
    case .complete(let change):
      let range = appendDelta(to: answers, watch.channel, from: watch.revision, change)
      if range.isEmpty {
        restart(watch)
      } else {
        tell(watch, answers, range)
        counters.composedDeltas &+= 1
        settle(watch)
      }
    }
    return true
  }
}
