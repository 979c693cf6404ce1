import FeedJSON
import FeedModel

/// Timed work: quotas, evictions, access rules, incomplete frames, bookmarks, and watches that are not live.
extension Engine {
  /// The maximum number of elements that one eviction deletes: about two milliseconds. In a log of a former version, of each feed.
  private static let evictionLimit = 1000
  /// The maximum number of feeds of one eviction. Each has a commit of its own.
  private static let evictedFeeds = 250
  /// The maximum number of elements that are gone whose memory one turn frees.
  private static let discardLimit = 2048

  /// Starts a turn.
  func begin(at now: Instant) {
    time.now = now
    time.moment = now
  }

  /// Does the timed work that is due, before the turn writes its output.
  func attend() {
    chargeSnapshots()
    closeOverQuota()
    if longWork.isExclusive { return }
    if !isDurable && !longWork.isUnderWay { evictExpired(after: ownWork.queue.lastEvicted) }
    applyAccessRules()
    if time.nextSweep <= now {
      sweep()
    } else {
      if watches.hasDueBookmarks { sendBookmarks() }
    }
    trimHistories()
    advanceWatches()
    catalog.freeDiscarded(Self.discardLimit)
  }

  /// The time of the next turn if nothing arrives; nil if nothing is scheduled.
  var nextDeadline: Instant? {
    var next = sessions.isEmpty ? nil : time.nextSweep
    for moment in [nextEviction, watches.schedule.nextThrottle] {
      if let moment { next = min(next ?? moment, moment) }
    }
    return next
  }

  /// Whether there is work that can continue immediately.
  var hasWork: Bool {
    sessions.quotas.hasOverLimit || hasAnswersToContinue || watches.schedule.readyCount > 0 || sessions.hasResumable
      || catalog.hasDiscarded || catalog.isTrimming || hasLongTextToScan || watches.catchUps.hasWork
      || watches.hasDueBookmarks
  }

  /// Evicts expired elements, a bounded number in each turn. The feeds that are due share it.
  ///
  /// - Parameter name: the last feed of the eviction before. The feeds behind it are next, so that those of one user do not keep
  ///   others waiting. By rules before 5, and in their logs nil, from all feeds.
  func evictExpired(after name: String?) {
    guard let expiry = catalog.nextExpiry, expiry <= time.moment else { return }
    let name = commit.rules < 5 ? nil : name
    let due = catalog.expired(at: time.moment, after: name ?? "", limit: name == nil ? .max : Self.evictedFeeds)
    let limit = name == nil ? Self.evictionLimit : Self.evictionLimit / max(1, due.count)
    for feed in due.sorted(by: { $0.name < $1.name }) {
      catalog.begin(at: time.moment)
      _ = catalog.evictExpired(of: feed, limit: limit)
      if catalog.finish(to: self) { status.counters.commits &+= 1 }
    }
    ownWork.queue.lastEvicted = due.last?.name ?? ""
  }

  /// Does the work that is checked only once a second.
  private func sweep() {
    time.nextSweep = now.adding(seconds: 1)
    resubmitRows()
    for session in sessions.all {
      closeIfStuck(session)
      discardIfUnread(session)
      session.last.feed.forgetIfGone()
    }
    sessions.nobody.last.feed.forgetIfGone()
    sendBookmarks()
    if !catalog.isTrimming { catalog.beginTrimming() }
  }

  /// Closes a connection whose incomplete frame makes no progress.
  private func closeIfStuck(_ session: Session) {
    guard let since = session.input.partialSince, !session.isClosing else { return }
    // While requests of the connection are not taken, the client cannot make progress.
    if !canWork(session) {
      session.input.partialSince = now
      return
    }
    guard now.since(since) >= UInt64(limits.frameTimeout) * 1_000_000_000 else { return }
    close(
      session, reason: "frameTimeout",
      message: "Half a frame made no progress for \(counted(limits.frameTimeout, "second")) (frameTimeout).",
      level: .warning)
  }

  /// Discards the output of a closing connection that was not read before the deadline.
  private func discardIfUnread(_ session: Session) {
    guard let deadline = session.phase.closeDeadline, deadline <= now, session.output.count > 0 else { return }
    status.report(
      .warning, "\(session.description) did not read its last \(counted(session.output.count, "byte"))",
      about: session.subject)
    session.output.removeAll()
    outbox.list(session)
  }

  /// Discards recorded changes beyond the limits, once a second and after many changes: those of some feeds in each turn.
  func trimHistories() {
    if !catalog.isTrimming && catalog.hasManyChanges { catalog.beginTrimming() }
    if !catalog.isTrimming { return }
    let oldest = now.nanoseconds.subtractingReportingOverflow(UInt64(limits.historySeconds) * 1_000_000_000)
    catalog.trimSome(before: Instant(nanoseconds: oldest.overflow ? 0 : oldest.partialValue))
  }

  func countRequest(of session: Session, _ count: Int) {
    status.counters.requests &+= UInt64(bitPattern: Int64(count))
    session.client.requests &+= UInt64(bitPattern: Int64(count))
  }
}
