import FeedJSON
import FeedModel

/// The output of this turn for single connections, and the list of connections with output.
///
/// Invariant: a session is listed once exactly if its flag `isInOutbox` is set.
struct Outbox {
  /// The output of this turn for one connection each, such as answers.
  let answers = TurnBuffer()
  var shares = AnswerShares()
  /// The blocks of this turn that connections were given whole, and their bytes.
  private var whole: [SharedBlock] = []
  private var wholeBytes = 0
  private var listed: [Session] = []
  /// The number of connections that the last turn with output wrote to.
  private(set) var receivers = 0

  /// The bytes of this turn for one connection each.
  @inline(__always) var size: Int { answers.bytes.count &+ wholeBytes }

  /// Keeps a block until the end of the turn.
  mutating func keep(_ block: SharedBlock) {
    if whole.last === block { return }
    whole.append(block)
    wholeBytes &+= block.bytes.count
  }

  /// Lists a session that has output or must be closed.
  mutating func list(_ session: Session) {
    if session.isInOutbox { return }
    session.isInOutbox = true
    listed.append(session)
  }

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
    if !listed.isEmpty { receivers = listed.count }
    for session in listed { session.output.noteRest() }
    for session in listed {
      session.isInOutbox = false
      session.output.keepRest()
      body(session)
    }
    listed.removeAll(keepingCapacity: true)
    answers.recycle()
    if whole.isEmpty { return }
    whole.removeAll()
    wholeBytes = 0
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
  /// Queues the bytes of `source` from `start` on, after the deltas that the connection's watches have not been given
  /// yet.
  /// - Parameter watch: the watch that the bytes are for; nil for an answer.
  @inline(__always) func queue(_ session: Session, _ source: TurnBuffer, from start: Int, for watch: Watch? = nil) {
    giveAll(to: session)
    session.output.append(source, from: start, to: source.bytes.count, watch: watch?.number ?? 0)
    outbox.list(session)
  }

  /// Queues all bytes of a buffer, whole frames for one connection, and empties it. O(bytes), but O(1) for many bytes.
  func queue(_ session: Session, taking frames: TurnBuffer) {
    if frames.bytes.count >= Self.manyBytes { return queue(session, SharedBlock(taking: &frames.bytes)) }
    let start = answers.bytes.count
    answers.bytes.append(frames.bytes.bytes)
    frames.bytes.removeAll(keepingCapacity: false)
    queue(session, answers, from: start)
  }

  /// Queues all frames of a block, after the deltas that the connection's watches have not been given yet.
  func queue(_ session: Session, _ block: SharedBlock, for watch: Watch? = nil) {
    giveAll(to: session)
    outbox.keep(block)
    session.output.append(block, from: 0, to: block.bytes.count, watch: watch?.number ?? 0)
    outbox.list(session)
  }

  /// The fewest bytes whose memory is taken over. Fewer are copied into the turn's own, which is in the caches of the processor.
  private static var manyBytes: Int { 256 << 10 }

  /// Removes bytes that were written.
  func didWrite(_ session: Session, _ count: Int) {
    session.output.consume(count)
    if session.charged > 0 || session.output.hasDues { recount(session) }
    status.counters.bytesOut &+= UInt64(count)
  }

  /// Discards queued output for a peer that stopped reading.
  func discardOutput(of session: Session) {
    if session.output.count > 0 { didWrite(session, session.output.count) }
  }

  /// Charges the users of the block that continues with what was appended in this turn.
  private func chargeGrowth(of buffer: TurnBuffer) {
    guard let growth = buffer.open?.takeGrowth(), growth.bytes > 0 else { return }
    for uid in growth.users { sessions.quotas.charge(growth.bytes, to: uid, limit: limits.maxQueuePerUser) }
  }

  /// Ends the writes of a turn.
  func finishWrites() {
    outbox.finish { session in
      session.output.isBlocked = session.output.backlog > 0
      if !session.output.isBlocked { watches.schedule.release(session.id, now: now) }
      recount(session)
      resumeIfPossible(session)
    }
    for channel in watches.changed {
      chargeGrowth(of: channel.buffer)
      if let selections = channel.selections { chargeGrowth(of: selections) }
    }
    watches.recycle()
  }
}

/// The bytes of answers that each user got in this turn, and work for them that counts as bytes.
///
/// A request of a few bytes may have an answer of megabytes, or need a snapshot of a large feed. When the answers of a user took its
/// share, further reads by the same user wait for the next turn. Its pings and changes do not, and neither do requests of other users.
struct AnswerShares {
  private var users: [UInt32: Int] = [:]

  /// The bytes of one user in a turn. Its last answer may be longer. They are more than ``turnBytes``, so that a user whose answers
  /// are ready can still read.
  private static let share = 2 << 20
  /// The bytes in a turn, of all users, after which answers that are ready, and requests of a stored batch, wait for the next
  /// turn.
  static let turnBytes = 1 << 20
  /// Fewer bytes for one connection are not counted, so that most connections cost nothing.
  private static let fewBytes = 16 << 10

  /// Begins to count, before the input of a turn is decoded. Until the next turn, it goes on with answers that were begun.
  mutating func beginTurn() {
    if !users.isEmpty { users.removeAll(keepingCapacity: true) }
  }

  func isUsedUp(by uid: UInt32) -> Bool { bytes(of: uid) >= Self.share }

  mutating func add(_ bytes: Int, of uid: UInt32) {
    if bytes >= Self.fewBytes { users[uid, default: 0] += bytes }
  }

  /// Adds work, in units of about a microsecond (see `WorkCost`).
  mutating func add(work: Int, of uid: UInt32) {
    if work > 0 { users[uid, default: 0] += work &* Self.bytesPerUnit }
  }

  /// The bytes that take as long as a unit of work.
  private static let bytesPerUnit = 1 << 10

  /// Adds the work of beginning a watch, or of making a snapshot of so many bytes, besides what is then sent of it.
  mutating func add(snapshot bytes: Int, of uid: UInt32) { users[uid, default: 0] += Self.preparation &+ bytes }

  /// The bytes that take as long as what each watch and each snapshot takes apart from its size: about 15 microseconds.
  private static let preparation = 16 << 10

  /// The bytes of a user so far.
  func bytes(of uid: UInt32) -> Int { users.isEmpty ? 0 : users[uid] ?? 0 }
}

extension Engine {
  /// Whether the answers of this turn took its bytes.
  var hasLongAnswers: Bool { outbox.size >= AnswerShares.turnBytes }
}
