import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// An answer that may take longer than one turn: it is worked out in parts while others are served.
///
/// Requests behind it on the same connection wait, so responses keep the order of requests.
protocol Job: AnyObject {
  /// Whether only another event can advance the job: it is not continued until one arrives.
  var isWaiting: Bool { get }
  /// Does about `budget` elements' worth of work. Returns whether the answer is ready to be written.
  func advance(budget: Int) throws(FeedError) -> Bool
  /// Appends the members of the result.
  func appendResult(to out: inout ByteBuffer)
}

extension Job {
  var isWaiting: Bool { false }
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
  /// Elements that one turn may spend on all answers.
  static let turnBudget = 4096
  /// Elements that one answer may spend in a turn at least, however many there are.
  private static let leastShare = 256

  private var listed: [Session] = []

  var isEmpty: Bool { listed.isEmpty }

  /// The listed sessions as of this call.
  var sessions: [Session] { listed }

  /// Elements that each session may spend in this turn.
  var share: Int { max(Self.leastShare, Self.turnBudget / max(1, listed.count)) }

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
    run(job, ticket, of: session, budget: LongAnswers.turnBudget)
    if session.line.work != nil { longAnswers.add(session) }
  }

  /// Continues the answers that are worked out in parts.
  func advanceAnswers() {
    let share = longAnswers.share
    for session in longAnswers.sessions {
      if let (job, ticket) = session.line.work { run(job, ticket, of: session, budget: share) }
    }
  }

  /// Whether an answer or a batch under way can be continued now.
  var hasAnswersToContinue: Bool {
    longAnswers.sessions.contains { session in
      if let work = session.line.work { return !work.job.isWaiting }
      return session.line.isEmpty && !session.line.isStalled && session.output.count <= limits.maxQueue
    }
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
      guard try job.advance(budget: budget) else { return }
      try answer(session, ticket) { job.appendResult(to: &$0) }
    } catch {
      refuse(session, ticket, error)
    }
    session.line.work = nil
  }
}
