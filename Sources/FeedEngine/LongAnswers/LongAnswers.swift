import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// The cost of work that is done in parts, in units of about a microsecond.
enum WorkCost {
  /// Reading elements of so many bytes in all.
  @inline(__always) static func reading(_ count: Int, bytes: Int) -> Int { count &+ bytes / 512 }
  /// Steps of a path.
  @inline(__always) static func steps(_ count: Int) -> Int { count / 64 }
  /// Making an answer of so many bytes.
  @inline(__always) static func answering(bytes: Int) -> Int { 4 &+ bytes / 256 }
}

/// An answer that may take longer than one turn: it is worked out in parts while others are served.
///
/// Requests behind it on the same connection wait, so responses keep the order of requests.
protocol Job: AnyObject {
  /// Whether only another event can advance the job: it is not continued until one arrives.
  var isWaiting: Bool { get }
  /// Whether the next step is long and cannot be divided. One turn does at most one such step.
  var isIndivisible: Bool { get }
  /// Bytes of memory that the job holds, which its user is charged for.
  var memory: Int { get }
  /// Does work of about `budget` units; see ``WorkCost``. Returns whether the answer is ready to be written.
  func advance(budget: Int) throws(FeedError) -> Bool
  /// Appends the members of the result.
  func appendResult(to out: inout ByteBuffer)
}

extension Job {
  var isWaiting: Bool { false }
  var isIndivisible: Bool { false }
}

/// The request that a job answers. It outlives the frame of the request.
struct JobTicket {
  let id: [UInt8]?
  /// The feed that the request named.
  let feed: String?

  init(_ reply: Reply, _ parameters: Parameters) {
    id = reply.id.map { Array($0) }
    feed = parameters.member("feed")?.truncatedName
  }
}

/// The sessions with an answer or a JSON-RPC batch under way, in the order in which they began.
///
/// Invariant: a session is listed once, and exactly while its line is answering, between the steps of a turn.
struct LongAnswers {
  /// Units of work that one turn may spend on all answers, and as many on all JSON-RPC batches.
  static let turnBudget = 4096
  /// Units that a new answer may spend at once while others are under way.
  static let firstPart = 128
  /// Units that one session may spend in a turn at least, however many there are.
  private static let leastShare = 16

  private var listed: [Session] = []

  var isEmpty: Bool { listed.isEmpty }

  /// The listed sessions as of this call.
  var sessions: [Session] { listed }

  /// The part of a turn's budget that each session gets: users get equal parts, and so do the sessions of one user.
  /// O(sessions).
  func shares() -> Shares {
    var sessions: [UInt32: Int] = [:]
    for session in listed { sessions[session.peer.uid, default: 0] += 1 }
    return Shares(sessions: sessions)
  }

  struct Shares {
    fileprivate let sessions: [UInt32: Int]

    func share(of session: Session) -> Int {
      let part = LongAnswers.turnBudget / max(1, sessions.count) / (sessions[session.peer.uid] ?? 1)
      return max(LongAnswers.leastShare, part)
    }
  }

  /// Moves a session to the end of the list, so that the next one has its turn first.
  mutating func rotate(_ session: Session) {
    guard let place = listed.firstIndex(where: { $0 === session }) else { return }
    listed.append(listed.remove(at: place))
  }

  mutating func add(_ session: Session) {
    if !listed.contains(where: { $0 === session }) { listed.append(session) }
  }

  mutating func remove(_ session: Session) { listed.removeAll { $0 === session } }

  /// Removes the sessions whose answers and batches are complete.
  mutating func removeFinished() { listed.removeAll { !$0.line.isAnswering } }

  /// Stops a debug build if the list is not that of the answering sessions. O(connections).
  func checkInvariants(_ sessions: some Sequence<Session>) {
    #if CHECK_INVARIANTS
      precondition(Set(listed.map(ObjectIdentifier.init)).count == listed.count, "a session is listed twice")
      for session in sessions where session.line.isAnswering {
        precondition(listed.contains { $0 === session }, "an answer is under way and nobody continues it")
      }
    #endif
  }
}

extension Engine {
  /// Starts a job for a request.
  func start(_ job: any Job, for reply: Reply, _ parameters: Parameters) {
    let session = reply.session
    let ticket = JobTicket(reply, parameters)
    session.line.work = (job, ticket)
    // A first part at once: most answers are complete then. With others under way, the new one waits for its share.
    run(job, ticket, of: session, budget: longAnswers.isEmpty ? LongAnswers.turnBudget : LongAnswers.firstPart)
    if session.line.work != nil { longAnswers.add(session) }
  }

  /// Continues the answers that are worked out in parts.
  func advanceAnswers() {
    let shares = longAnswers.shares()
    var didIndivisible = false
    for session in longAnswers.sessions {
      guard let (job, ticket) = session.line.work else { continue }
      if job.isIndivisible {
        if didIndivisible { continue }
        didIndivisible = true
        longAnswers.rotate(session)
      }
      run(job, ticket, of: session, budget: shares.share(of: session))
    }
  }

  /// Whether an answer or a batch under way can be continued now.
  var hasAnswersToContinue: Bool {
    longAnswers.sessions.contains { session in
      if let work = session.line.work { return !work.job.isWaiting }
      if session.line.batch == nil { return true }
      return session.line.isEmpty && !session.line.isStalled && session.output.count <= limits.maxQueue
    }
  }

  /// Ends the answer under way of a peer that reads nothing more. Its batch continues without the requests that only read.
  func stopAnswering(_ session: Session) {
    guard session.line.isAnswering else { return }
    session.line.work = nil
    recount(session)
  }

  /// Every request taken from the session is answered: more can be taken, or it closes if there will be none.
  func finishWork(of session: Session) {
    assert(!session.line.isAnswering)
    guard session.line.isEmpty else { return }
    if session.input.hasEnded { session.phase.isClosing = true }
    outbox.mark(session)
    resumeIfPossible(session)
  }

  /// Advances a job, and answers its request when it is done.
  private func run(_ job: any Job, _ ticket: JobTicket, of session: Session, budget: Int) {
    giveAll(to: session)
    do throws(FeedError) {
      guard try job.advance(budget: budget) else { return recount(session) }
      try answer(session, ticket) { job.appendResult(to: &$0) }
    } catch {
      refuse(session, ticket, error)
    }
    session.line.work = nil
    recount(session)
  }
}
