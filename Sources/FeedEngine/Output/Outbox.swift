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
  /// The bytes of this turn whose memory was taken over by their connections.
  private var taken = 0
  private var listed: [Session] = []

  /// The bytes of this turn for one connection each.
  @inline(__always) var size: Int { answers.bytes.count &+ taken }

  /// Counts bytes whose memory is taken over.
  mutating func take(_ bytes: Int) { taken &+= bytes }

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
    taken = 0
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

  /// Queues all bytes of a buffer, whole frames for one connection, and empties it. O(bytes), but O(1) for many bytes if nothing
  /// else is queued.
  func queue(_ session: Session, taking frames: TurnBuffer) {
    if frames.bytes.count < Self.manyBytes {
      let start = answers.bytes.count
      answers.bytes.append(frames.bytes.bytes)
      frames.bytes.removeAll(keepingCapacity: false)
      return queue(session, answers, from: start)
    }
    giveAll(to: session)
    outbox.take(frames.bytes.count)
    session.output.append(taking: frames)
    outbox.list(session)
  }

  /// The fewest bytes whose memory is taken over. Fewer are copied into the turn's own, which is in the caches of the processor.
  private static var manyBytes: Int { 256 << 10 }

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
