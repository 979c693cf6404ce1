import FeedJSON
import FeedModel

/// Bytes that are made in one turn of the loop and shared by everybody they go to, until the turn's writes are done.
final class TurnBuffer {
  var bytes: ByteBuffer

  /// Memory kept between turns; what a large turn needed beyond it is given back.
  private static let keptCapacity = 1 << 20

  init() {
    bytes = ByteBuffer()
  }

  func recycle() {
    bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptCapacity)
  }
}

/// What this turn writes to single connections, and which connections have something to write.
///
/// Invariant: a session is listed once, exactly when its flag `isInOutbox` is set.
struct Outbox {
  /// This turn's answers and everything else that goes to one connection only.
  let answers = TurnBuffer()
  private var listed: [Session] = []

  /// Lists a session that has something to write, or to close for.
  mutating func mark(_ session: Session) {
    if session.isInOutbox { return }
    session.isInOutbox = true
    listed.append(session)
  }

  /// Removes a session that was closed.
  mutating func remove(_ session: Session) {
    guard session.isInOutbox else { return }
    session.isInOutbox = false
    listed.removeAll { $0 === session }
  }

  func forEach(_ body: (Session) -> Void) {
    for session in listed { body(session) }
  }

  /// Ends the turn's writes: each listed session keeps what its peer did not take, and the turn's memory is reused.
  mutating func finish(_ body: (Session) -> Void) {
    for session in listed {
      session.isInOutbox = false
      session.output.keepRest()
      body(session)
    }
    listed.removeAll(keepingCapacity: true)
    answers.recycle()
  }

  /// Stops a debug build if a flag and the list disagree. O(connections).
  func checkInvariants(_ sessions: some Sequence<Session>) {
    #if CHECK_INVARIANTS
      precondition(Set(listed.map(ObjectIdentifier.init)).count == listed.count, "a session is listed twice")
      precondition(listed.allSatisfy(\.isInOutbox))
      precondition(sessions.count { $0.isInOutbox } <= listed.count, "a flag is set without a place in the list")
    #endif
  }
}

extension Engine {
  /// This turn's answers.
  @inline(__always) var answers: TurnBuffer { outbox.answers }

  /// Queues everything of `source` from `start` on, behind what was made for the connection's watches before.
  @inline(__always) func queue(_ session: Session, _ source: TurnBuffer, from start: Int) {
    giveAll(to: session)
    session.output.append(source, from: start, to: source.bytes.count)
    outbox.mark(session)
  }

  /// Removes bytes that the peer took.
  func didWrite(_ session: Session, _ count: Int) {
    session.output.consume(count)
    if session.charged > 0 { recount(session) }
    status.counters.bytesOut &+= UInt64(count)
  }

  /// Discards queued output for a peer that stopped reading.
  func discardOutput(of session: Session) {
    if session.output.count > 0 { didWrite(session, session.output.count) }
  }

  /// Ends the turn's writes.
  func finishWrites() {
    outbox.finish { session in
      session.output.isBlocked = session.output.backlog > 0
      if !session.output.isBlocked { watches.schedule.release(session.id, now: now) }
      recount(session)
      resumeIfPossible(session)
    }
    watches.recycle()
  }
}
