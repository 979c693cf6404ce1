import FeedJSON
import FeedModel

/// Bytes that are encoded in one turn and shared by all their receivers, until the end of the turn's writes.
final class TurnBuffer {
  var bytes: ByteBuffer

  /// The memory kept between turns. Larger memory is released.
  private static let keptCapacity = 1 << 20

  init() {
    bytes = ByteBuffer()
  }

  func recycle() {
    bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptCapacity)
  }
}

/// The output of this turn for single connections, and the list of connections with output.
///
/// Invariant: a session is listed once exactly if its flag `isInOutbox` is set.
struct Outbox {
  /// The output of this turn for one connection each, such as answers.
  let answers = TurnBuffer()
  var shares = AnswerShares()
  private var listed: [Session] = []

  /// Lists a session that has output or must be closed.
  mutating func list(_ session: Session) {
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

  /// Ends the writes of a turn: each listed session keeps its unwritten output, and the memory of the turn is reused.
  mutating func finish(_ body: (Session) -> Void) {
    var heir: Session?
    for session in listed {
      session.isInOutbox = false
      if heir == nil && session.output.isMost(of: answers) {
        heir = session
        continue
      }
      session.output.keepRest()
      body(session)
    }
    if let heir {
      heir.output.take(answers)
      body(heir)
    }
    listed.removeAll(keepingCapacity: true)
    answers.recycle()
  }

  /// Traps in a debug build if a flag and the list disagree. O(connections).
  func checkInvariants(_ sessions: some Sequence<Session>) {
    #if CHECK_INVARIANTS
      precondition(Set(listed.map(ObjectIdentifier.init)).count == listed.count, "a session is listed twice")
      precondition(listed.allSatisfy(\.isInOutbox))
      precondition(sessions.count { $0.isInOutbox } <= listed.count, "a flag is set without a place in the list")
    #endif
  }
}

extension Engine {
  /// The buffer of this turn's answers.
  @inline(__always) var answers: TurnBuffer { outbox.answers }

  /// Queues the bytes of `source` from `start` on, after the deltas that the connection's watches have not been given
  /// yet.
  @inline(__always) func queue(_ session: Session, _ source: TurnBuffer, from start: Int) {
    giveAll(to: session)
    session.output.append(source, from: start, to: source.bytes.count)
    outbox.list(session)
  }

  /// Removes bytes that were written.
  func didWrite(_ session: Session, _ count: Int) {
    session.output.consume(count)
    if session.charged > 0 { recount(session) }
    status.counters.bytesOut &+= UInt64(count)
  }

  /// Discards queued output for a peer that stopped reading.
  func discardOutput(of session: Session) {
    if session.output.count > 0 { didWrite(session, session.output.count) }
  }

  /// Ends the writes of a turn.
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
