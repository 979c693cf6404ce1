import FeedChange
import FeedModel
import FeedWire

/// The end of a turn: whatever else is due before the turn's bytes are written.
extension Engine {
  /// Elements that one turn may spend on answers worked out in parts.
  private static let jobBudget = 4096

  /// Begins a turn.
  func begin(at now: Instant) {
    self.now = now
    moment = now
  }

  /// Does what is due: quotas, expiry, access rules, half frames, bookmarks, snapshots and catching up.
  func attend() {
    closeOverQuota()
    if !isDurable { evictExpired() }
    applyAccessRules()
    if nextSweep <= now { sweep() }
    advanceWatches()
  }

  /// When a turn is due even if nothing arrives; nil when nothing is due.
  var nextDeadline: Instant? {
    var next = sessions.count > freeIDs.count ? nextSweep : nil
    for moment in [nextEviction, watches.schedule.nextThrottle] {
      if let moment { next = min(next ?? moment, moment) }
    }
    return next
  }

  /// Whether there is work that waits for nothing: the next turn is due at once.
  var hasWork: Bool {
    !overQuota.isEmpty || workingSessions.contains { canWorkOn($0) } || watches.schedule.readyCount > 0
  }

  /// Evicts what is too old, a bounded number a turn.
  func evictExpired() {
    guard let expiry = catalog.nextExpiry, expiry <= moment else { return }
    for feed in catalog.expired(at: moment) {
      catalog.begin(at: moment)
      _ = feed.evictExpired(limit: 1000, in: catalog.commit)
      if catalog.finish(to: self) { counters.commits &+= 1 }
    }
  }

  /// Looks at what is bound to time only coarsely: half frames, closing connections, bookmarks, old history,
  /// unused memory.
  private func sweep() {
    nextSweep = now.adding(seconds: 1)
    resubmitRows()
    let timeout = UInt64(limits.frameTimeout) * 1_000_000_000
    for case let session? in sessions {
      // While its requests are not taken, it is not the client that makes no progress.
      if session.input.partialSince != nil && !canWork(session) { session.input.partialSince = now }
      if let since = session.input.partialSince, now.since(since) >= timeout, !session.isClosing {
        close(
          session, reason: "frameTimeout",
          message: "Half a frame made no progress for \(limits.frameTimeout) seconds (frameTimeout).", level: .warning)
      }
      if let deadline = session.closeDeadline, deadline <= now, session.output.count > 0 {
        report(.warning, "\(session.description) did not read its last \(session.output.count) bytes")
        session.output.removeAll()
        markDirty(session)
      }
    }
    sendBookmarks()
    trimHistories()
  }

  private func trimHistories() {
    let oldest = now.nanoseconds.subtractingReportingOverflow(UInt64(limits.historySeconds) * 1_000_000_000)
    let moment = Instant(nanoseconds: oldest.overflow ? 0 : oldest.partialValue)
    catalog.trimHistories(before: moment)
  }

  /// Goes on with the answers that are worked out in parts.
  func advanceAnswers() {
    let budget = max(256, Self.jobBudget / workingSessions.count)
    for session in workingSessions {
      if let (job, ticket) = session.work { run(job, ticket, of: session, budget: budget) }
    }
  }

  /// Forgets the sessions whose answers and batches are complete.
  func forgetFinishedWork() {
    workingSessions.removeAll { $0.work == nil && $0.batch == nil }
  }

  /// Whether a session could get on with its answer or batch now.
  private func canWorkOn(_ session: Session) -> Bool {
    if let work = session.work { return !work.job.isWaiting }
    return session.line.isEmpty && !session.line.isStalled && session.output.count <= limits.maxQueue
  }

  /// All requests taken from the session are answered: more can be taken, or it closes if there will be none.
  func finishWork(of session: Session) {
    assert(session.work == nil && session.batch == nil)
    guard session.line.isEmpty else { return }
    if session.input.hasEnded { session.isClosing = true }
    markDirty(session)
    resumeIfPossible(session)
  }

  /// Runs a job on and answers if that ends it.
  private func run(_ job: any Job, _ ticket: JobTicket, of session: Session, budget: Int) {
    giveAll(to: session)
    do throws(FeedError) {
      guard try job.advance(budget: budget) else { return }
      try answer(session, ticket) { job.appendResult(to: &$0) }
    } catch {
      refuse(session, ticket, error)
    }
    session.work = nil
  }

  /// Starts a job for a request.
  func start(_ job: any Job, for reply: Reply, _ parameters: Parameters) {
    let session = reply.session
    let ticket = JobTicket(reply, parameters)
    session.work = (job, ticket)
    run(job, ticket, of: session, budget: Self.jobBudget)
    if session.work != nil { keepWorking(session) }
  }

  /// The session goes on in a later turn.
  func keepWorking(_ session: Session) {
    if !workingSessions.contains(where: { $0 === session }) { workingSessions.append(session) }
  }
}

extension Engine {
  func countRequest(of session: Session, _ count: Int) {
    counters.requests &+= UInt64(bitPattern: Int64(count))
    session.requests &+= UInt64(bitPattern: Int64(count))
  }

  func count(input bytes: Int) { counters.bytesIn &+= UInt64(bytes) }
}
