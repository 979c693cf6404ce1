import FeedModel

/// What is to be written, to whom, and what becomes of what a socket did not take.
extension Engine {
  /// Queues everything of `source` from `start` on, behind what was made for the connection's watches before.
  @inline(__always) func queue(_ session: Session, _ source: TurnBuffer, from start: Int) {
    giveAll(to: session)
    session.output.append(source, from: start, to: source.bytes.count)
    markDirty(session)
  }

  func markDirty(_ session: Session) {
    if session.isDirty { return }
    session.isDirty = true
    dirty.append(session)
  }

  /// Each session that has something to write, or to close for.
  func forEachDirtySession(_ body: (Session) -> Void) {
    for session in dirty { body(session) }
  }

  /// The peer took `count` bytes.
  func didWrite(_ session: Session, _ count: Int) {
    session.output.consume(count)
    if session.counted > 0 { recount(session) }
    counters.bytesOut &+= UInt64(count)
  }

  /// Discards queued output for a peer that stopped reading.
  func discardOutput(of session: Session) {
    if session.output.count > 0 { didWrite(session, session.output.count) }
  }

  /// Ends the turn's writes: what peers did not take is kept, the turn's memory is reused.
  func finishWrites() {
    for session in dirty {
      session.isDirty = false
      session.output.keepRest()
      session.isBlocked = session.output.backlog > 0
      if !session.isBlocked { watches.schedule.release(session.id, now: now) }
      recount(session)
      resumeIfPossible(session)
    }
    dirty.removeAll(keepingCapacity: true)
    answers.recycle()
    watches.recycle()
  }
}
