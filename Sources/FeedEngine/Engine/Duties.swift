import FeedModel

/// What is due by time: quotas, evictions, access rules, incomplete frames, bookmarks, and watches that are not live.
extension Engine {
  /// Elements that one turn evicts from a feed at most.
  private static let evictionLimit = 1000

  /// Begins a turn.
  func begin(at now: Instant) {
    time.now = now
    time.moment = now
  }

  /// Does what is due before the turn's bytes are written.
  func attend() {
    closeOverQuota()
    if !isDurable { evictExpired() }
    applyAccessRules()
    if time.nextSweep <= now { sweep() }
    advanceWatches()
  }

  /// When a turn is due even if nothing arrives; nil when nothing is due.
  var nextDeadline: Instant? {
    var next = sessions.isEmpty ? nil : time.nextSweep
    for moment in [nextEviction, watches.schedule.nextThrottle] {
      if let moment { next = min(next ?? moment, moment) }
    }
    return next
  }

  /// Whether there is work that waits for nothing: the next turn is due at once.
  var hasWork: Bool {
    quotas.hasOverLimit || hasAnswersToContinue || watches.schedule.readyCount > 0 || sessions.hasResumable
  }

  /// Evicts what is too old, a bounded number a turn.
  func evictExpired() {
    guard let expiry = catalog.nextExpiry, expiry <= time.moment else { return }
    for feed in catalog.expired(at: time.moment) {
      catalog.begin(at: time.moment)
      _ = feed.evictExpired(limit: Self.evictionLimit, in: catalog.commit)
      if catalog.finish(to: self) { status.counters.commits &+= 1 }
    }
  }

  /// Does, once a second, what is bound to time only coarsely.
  private func sweep() {
    time.nextSweep = now.adding(seconds: 1)
    resubmitRows()
    for session in sessions.all {
      closeIfStuck(session)
      discardIfUnread(session)
    }
    sendBookmarks()
    trimHistories()
  }

  /// Closes a connection whose frame makes no progress.
  private func closeIfStuck(_ session: Session) {
    guard let since = session.input.partialSince, !session.isClosing else { return }
    // While its requests are not taken, it is not the client that makes no progress.
    if !canWork(session) {
      session.input.partialSince = now
      return
    }
    guard now.since(since) >= UInt64(limits.frameTimeout) * 1_000_000_000 else { return }
    close(
      session, reason: "frameTimeout",
      message: "Half a frame made no progress for \(limits.frameTimeout) seconds (frameTimeout).", level: .warning)
  }

  /// Discards the last output of a closing connection that does not read it in time.
  private func discardIfUnread(_ session: Session) {
    guard let deadline = session.phase.closeDeadline, deadline <= now, session.output.count > 0 else { return }
    status.report(
      .warning, "\(session.description) did not read its last \(session.output.count) bytes", about: session.subject)
    session.output.removeAll()
    outbox.mark(session)
  }

  private func trimHistories() {
    let oldest = now.nanoseconds.subtractingReportingOverflow(UInt64(limits.historySeconds) * 1_000_000_000)
    catalog.trimHistories(before: Instant(nanoseconds: oldest.overflow ? 0 : oldest.partialValue))
  }
}

extension Engine {
  func countRequest(of session: Session, _ count: Int) {
    status.counters.requests &+= UInt64(bitPattern: Int64(count))
    session.client.requests &+= UInt64(bitPattern: Int64(count))
  }

  func count(input bytes: Int) { status.counters.bytesIn &+= UInt64(bytes) }
}
