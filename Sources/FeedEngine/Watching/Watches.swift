import FeedJSON
import FeedModel
import FeedWire

/// All watches: the live ones, the schedule of the others, and the timers of bookmarks.
///
/// Invariant: a watch that has not ended is counted once, also for its user, and has one seat, in its channel or in the schedule.
struct Watches {
  /// The watches that are not live.
  var schedule = WatchSchedule()
  private(set) var count = 0
  /// The watches of the connections of each user; a user without watches has no entry.
  private var counts: [UInt32: Int] = [:]
  /// Channels whose buffers hold frames of this turn.
  private(set) var changed: [FeedChannel] = []
  private var keptBuffers = KeptBuffers()
  /// The number of deltas made for watches in step. A connection that has the same number was given all of them.
  private(set) var madeDeltas: UInt64 = 0
  /// The bytes of the counts of very many sections that a commit wrote, and its revision.
  private var counted: (revision: UInt64, bytes: Int) = (0, 0)
  /// The deltas that are being encoded in parts, or will be after the first one.
  private(set) var longDeltas: [LongDelta] = []
  /// The identities that are kept although no watch gets them now.
  var idleIdentities = IdleIdentities()
  /// The deltas that are being composed and encoded in parts for watches that fell behind.
  var catchUps = LongCatchUps()
  private var bookmarks: Timers<Watch>
  /// Whether the last turn that looked at bookmarks may have left some that are due.
  private(set) var hasDueBookmarks = false
  private var lastNumber: UInt32 = 0

  init(now: Instant) { bookmarks = Timers(now: now) }

  /// Returns the number of the next watch, which is above 0. A connection does not have two watches with one number.
  mutating func nextNumber() -> UInt32 {
    lastNumber = max(1, lastNumber &+ 1)
    return lastNumber
  }

  /// The watches of all connections of a user. O(1).
  func count(of uid: UInt32) -> Int { counts[uid] ?? 0 }

  /// Adds to the number of watches of a user, and of all.
  private mutating func add(_ more: Int, of uid: UInt32) {
    count += more
    let sum = count(of: uid) + more
    counts[uid] = sum > 0 ? sum : nil
  }

  /// Counts a new watch, which is live.
  mutating func begin(_ watch: Watch, bookmarkAt moment: Instant) {
    add(1, of: watch.session.peer.uid)
    watch.channel.didBegin()
    watch.channel.addSolo(watch)
    bookmarks.add(watch, at: moment)
  }

  /// Removes a watch from all lists.
  mutating func end(_ watch: Watch) {
    add(-1, of: watch.session.peer.uid)
    leaveSeat(watch)
    watch.seat = .ended
    watch.progress = .live
    watch.channel.didEnd()
    bookmarks.remove(watch)
  }

  /// Removes a watch from its seat. The watch needs another seat, or ends.
  mutating func leaveSeat(_ watch: Watch) {
    switch watch.seat {
    case .inStep, .solo: watch.channel.remove(watch)
    case .ready, .throttled, .blocked: schedule.remove(watch)
    case .awaiting: if case .awaiting(let delta) = watch.progress { delta.remove(watch) }
    case .standing: break
    case .ended: preconditionFailure("the watch has ended")
    }
  }

  /// The bytes that a commit wrote so far for feeds with the counts of very many sections.
  func bytesOfCounts(in revision: UInt64) -> Int { counted.revision == revision ? counted.bytes : 0 }

  mutating func didWriteCounts(_ bytes: Int, in revision: UInt64) { counted = (revision, bytes) }

  mutating func didMakeDelta(_ channel: FeedChannel) {
    madeDeltas &+= 1
    didWrite(channel)
  }

  /// Lists a channel whose buffers hold frames of this turn.
  mutating func didWrite(_ channel: FeedChannel) {
    if channel.isDirty { return }
    channel.isDirty = true
    changed.append(channel)
  }

  /// Lets a live watch wait for the long delta of its channel from its revision, which `make` makes unless there is one.
  mutating func await(_ watch: Watch, _ make: () -> LongDelta) {
    leaveSeat(watch)
    var delta = longDeltas.last { $0.channel === watch.channel && $0.from == watch.queuedRevision }
    if delta == nil {
      let made = make()
      longDeltas.append(made)
      delta = made
    }
    guard let delta else { return }
    delta.add(watch)
    watch.progress = .awaiting(delta)
  }

  /// Removes the first long delta, which has no receivers left.
  mutating func removeFirstDelta() {
    let delta = longDeltas.removeFirst()
    precondition(delta.receivers.isEmpty, "a watch waits for a delta that is gone")
  }

  /// Reuses the buffers of the channels, whose bytes have been given out and written.
  mutating func recycle() {
    if changed.isEmpty { return }
    for channel in changed {
      channel.recycle()
      keptBuffers.add(channel.buffer)
    }
    changed.removeAll(keepingCapacity: true)
  }

  /// Removes and returns watches whose bookmark may be due, as many as one turn looks at. Each must be added again.
  mutating func takeDueBookmarks(now: Instant) -> [Watch] {
    let due = bookmarks.takeExpired(now: now, atMost: Self.bookmarksPerTurn)
    hasDueBookmarks = due.count == Self.bookmarksPerTurn
    return due
  }

  /// The bookmarks of one turn. To write one takes about half a microsecond.
  private static let bookmarksPerTurn = 4096

  mutating func addBookmark(_ watch: Watch, at moment: Instant) { bookmarks.add(watch, at: moment) }

  /// Traps in a debug build if a count or a seat is wrong. O(watches).
  func checkInvariants(channels: [FeedChannel], users: [UInt32: Int]) {
    #if DEBUG
      schedule.checkInvariants()
      bookmarks.checkInvariants()
      for channel in channels { channel.checkInvariants() }
      let live = channels.reduce(0) { $0 + $1.inStep.count + $1.solo.count }
      for delta in longDeltas { delta.checkInvariants() }
      catchUps.checkInvariants()
      let awaiting = (longDeltas + catchUps.deltas).reduce(0) { $0 + $1.receivers.count }
      assert(live + schedule.readyCount + schedule.throttledCount + schedule.blockedCount + awaiting == count)
      assert(channels.reduce(0) { $0 + $1.watchCount } == count)
      assert(bookmarks.count == count)
      assert(counts == users)
    #endif
  }
}

/// Watches that share each delta of their feed.
extension Engine {
  /// Moves a watch with the feed's revision and without a throttle to the watches in step.
  func joinIfUpToDate(_ watch: Watch) {
    guard watch.seat == .solo, watch.throttle == 0, watch.queuedRevision == watch.channel.feed.revision else { return }
    watch.channel.join(watch)
  }

  /// Gives every watch in step the deltas of this turn.
  func giveAll() {
    for channel in watches.changed {
      for watch in channel.inStep { give(watch) }
    }
  }

  /// Gives the watches in step of one connection the deltas made so far. O(its watches or the changed channels, whichever are fewer).
  func giveAll(to session: Session) {
    if session.givenDeltas == watches.madeDeltas || session.watches.isEmpty { return }
    session.givenDeltas = watches.madeDeltas
    if session.watches.count <= watches.changed.count {
      for watch in session.watches where watch.seat == .inStep { give(watch) }
      return
    }
    for channel in watches.changed {
      guard let watch = session.watches[channel.feed.name], watch.channel === channel else { continue }
      if watch.seat == .inStep { give(watch) }
    }
  }

  /// Queues the new deltas for a watch in step. If the queue of its connection is full, the watch falls behind instead.
  private func give(_ watch: Watch) {
    let channel = watch.channel
    let end = channel.buffer.bytes.count
    if watch.given == end { return }
    let session = watch.session
    if session.output.exceeds(limits.maxQueue) { return fallBehind(watch) }
    session.output.append(channel.buffer, from: watch.given, to: end, watch: watch.number)
    outbox.list(session)
    watch.given = end
    watch.queuedRevision = channel.bufferedRevision
    watch.told.at = now
  }

  /// Gives a watch in step the deltas made so far. It may fall behind, and then is no longer in step.
  func giveRest(_ watch: Watch) {
    if watch.seat == .inStep { give(watch) }
  }

  /// Marks a watch that misses a delta. From now on it costs nothing until it can catch up.
  func fallBehind(_ watch: Watch) {
    watches.leaveSeat(watch)
    watch.progress = .behind
    wait(watch)
  }

  /// Lets a watch wait for a new snapshot that replaces its state, because a delta does not fit.
  func cutOff(_ watch: Watch) {
    giveRest(watch)
    watches.leaveSeat(watch)
    watch.progress = .cutOff(because: Self.outOfReach)
    wait(watch)
  }

  private static let outOfReach = "what it missed is out of reach or larger than one frame"

  /// Makes a new snapshot that replaces the state of a watch that stands nowhere, and whose connection has room. Its list of
  /// sections, which counts for nobody, must be sent at once.
  private func restart(_ watch: Watch, because reason: String) {
    beginSnapshot(watch, reset: true)
    watch.session.client.resets &+= 1
    status.counters.resets &+= 1
    let bytes = watch.session.output.count
    status.report(
      .info,
      "\(watch.session.description) watching \(watch.channel.feed.name) is reset with a snapshot: \(reason); \(counted(bytes, "byte")) queued, limit maxQueue \(grouped(limits.maxQueue))",
      about: .init(uid: watch.session.peer.uid, pid: watch.session.peer.pid, feed: watch.channel.feed.name))
  }

  /// Makes a snapshot for a watch, which then stands nowhere.
  func beginSnapshot(_ watch: Watch, reset: Bool) {
    giveRest(watch)
    watches.leaveSeat(watch)
    let cursor = SnapshotCursor(
      of: watch.channel, reset: reset, spansSections: watch.spansSections, chargedTo: watch.session.snapshots)
    watch.progress = .snapshot(cursor)
    watch.queuedRevision = cursor.revision
    status.counters.snapshots &+= 1
  }

  /// Ends a watch. Nothing more is queued for it.
  func end(_ watch: Watch) {
    giveRest(watch)
    let session = watch.session
    session.watches.remove(watch)
    remove(watch)
    recount(session)
  }

  /// Removes a watch from its feed. The caller removes it from the session.
  func remove(_ watch: Watch) {
    let next = watch.charge.payers?.remove(watch)
    watches.end(watch)
    watches.idleIdentities.didEnd(watch, at: now)
    if let next {
      if next.channel.feed.isGone {
        chargeForHistory(next)
      } else if let identities = next.channel.identities {
        charge(identities)
      }
      // The sum of all connections is the same as before.
      recount(next.session)
    }
    releaseIfGone(watch.channel)
  }

  /// Charges the user of a watch for the history of its feed, which is gone.
  func chargeForHistory(_ watch: Watch) {
    watch.charge.share = watch.session.snapshots.hold(watch.channel.feed.history?.memory ?? 0)
  }

  /// Breaks the reference cycle of an undefined feed and its channel once no watch is left.
  func releaseIfGone(_ channel: FeedChannel) {
    guard channel.feed.isGone, let whole = channel.feed.watching else { return }
    if whole.totalWatchCount == 0 { channel.feed.channel = nil }
  }

  /// Traps in a debug build unless the watches of the sessions are the counted watches. O(watches).
  func checkWatches() {
    #if DEBUG
      var channels: [ObjectIdentifier: FeedChannel] = [:]
      var users: [UInt32: Int] = [:]
      for session in sessions.all {
        for watch in session.watches {
          channels[ObjectIdentifier(watch.channel)] = watch.channel
          users[session.peer.uid, default: 0] += 1
        }
      }
      watches.checkInvariants(channels: Array(channels.values), users: users)
    #endif
  }
}

/// Watches that are not live: snapshots in parts, catching up.
extension Engine {
  /// The bytes of elements in one part of a snapshot.
  private static let partSize = 64 << 10
  /// The maximum queued bytes of a connection for which the next part is made.
  private static let partBacklog = 256 << 10
  /// The maximum bytes of snapshots in one turn, so that other clients are served in between.
  private static let turnBudget = 512 << 10

  /// Adds a watch that is not live to the schedule.
  func wait(_ watch: Watch) { watches.schedule.add(watch, isConnectionFull: isFull(watch.session), now: now) }

  private func isFull(_ session: Session) -> Bool {
    session.output.isBlocked || session.output.count > Self.partBacklog
  }

  /// Advances the watches that are not live, as far as their connections and the turn's budget allow.
  func advanceWatches() {
    watches.schedule.releaseThrottled(now: now)
    var budget = Self.turnBudget
    var left = watches.schedule.readyCount
    while left > 0 && budget > 0, let watch = watches.schedule.takeReady() {
      left -= 1
      advance(watch, &budget)
      if watch.seat == .standing { wait(watch) }
    }
    advanceLongCatchUps()
    #if DEBUG
      if status.counters.requests % 32 == 0 { checkWatches() }
    #endif
  }

  private func advance(_ watch: Watch, _ budget: inout Int) {
    while watch.seat == .standing && budget > 0 && !isFull(watch.session) {
      switch watch.progress {
      case .live, .awaiting: preconditionFailure("the watch waits for nothing here")
      case .snapshot(let cursor): sendParts(of: cursor, to: watch, &budget)
      case .cutOff(let reason): restart(watch, because: reason)
      case .behind:
        if now < watch.nextDelta { return }
        let start = answers.bytes.count
        catchUp(watch)
        budget -= max(Self.partSize, answers.bytes.count - start)
      }
    }
  }

  /// Queues the next parts of a snapshot. Closes the connection if the sections of a reset do not fit a frame: nothing else can tell
  /// its client that the copy it has is old.
  private func sendParts(of cursor: SnapshotCursor, to watch: Watch, _ budget: inout Int) {
    guard cursor.fits(limits.maxFrame) else {
      let message =
        "the list of the sections of \(watch.channel.feed.name) does not fit a frame (limit maxFrame, \(grouped(limits.maxFrame)) bytes); "
        + "watch it when it has fewer sections, or raise the limit"
      return close(watch.session, reason: "maxFrame", message: message, level: .warning)
    }
    let start = answers.bytes.count
    cursor.writeParts(to: &answers.bytes, target: Self.partSize, limit: limits.maxFrame)
    budget -= answers.bytes.count - start
    queue(watch.session, answers, from: start, for: watch)
    watch.told.at = now
    if cursor.isDone { becomeLive(watch) }
  }

  /// Makes a watch that has everything up to `queuedRevision` live, unless the feed has changed since.
  func becomeLive(_ watch: Watch) {
    if watch.queuedRevision < watch.channel.feed.revision || watch.channel.identities?.isReading == true {
      watch.progress = .behind
      return
    }
    watch.progress = .live
    watch.channel.addSolo(watch)
    joinIfUpToDate(watch)
    tellSelection(watch)
    if watch.channel.feed.isGone { end(watch) }
  }

  /// Composes the missed changes and queues them. If they are many, the watch waits for a delta that is made in parts.
  ///
  /// Changes that cancel out are sent too, as a delta without rows: it gives the watcher its new revision.
  private func catchUp(_ watch: Watch) {
    let channel = watch.channel
    if channel.identities?.isReading == true { return watches.catchUps.add(watch) }
    // The watch may have waited for the identities or the selection only. It may have resumed from after the last change.
    if watch.queuedRevision >= channel.feed.revision { return becomeLive(watch) }
    if channel.missedMuch(since: watch.queuedRevision, fewRows: watches.catchUps.fewRows) {
      return watches.catchUps.add(watch)
    }
    guard let change = channel.change(from: watch.queuedRevision, to: channel.feed.revision) else {
      return watch.progress = .cutOff(because: Self.outOfReach)
    }
    let hint = channel.hint(since: watch.queuedRevision)
    let range = appendDelta(to: answers, channel, from: watch.queuedRevision, change, hint: hint)
    if range.isEmpty { return watch.progress = .cutOff(because: Self.outOfReach) }
    tell(watch, answers, range)
    status.counters.composedDeltas &+= 1
    becomeLive(watch)
  }
}
