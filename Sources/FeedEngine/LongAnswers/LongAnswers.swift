import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// The cost of work in parts, in units of about a microsecond.
enum WorkCost {
  /// The cost of reading `count` elements with `bytes` bytes in total.
  @inline(__always) static func reading(_ count: Int, bytes: Int) -> Int { count &+ bytes / 512 }
  /// The cost of the steps of a path.
  @inline(__always) static func steps(_ count: Int) -> Int { count / 64 }
  /// The cost of writing an answer of `bytes` bytes.
  @inline(__always) static func answering(bytes: Int) -> Int { 1 &+ bytes / 128 }
}

/// An answer that may take longer than one turn. It is computed in parts while other clients are served.
///
/// Later requests on the same connection wait, so responses keep the order of requests.
protocol Job: AnyObject {
  /// Whether the job waits for another event. It is not continued until one arrives.
  var isWaiting: Bool { get }
  /// Whether the job wants to begin work on the ``QueryStack``. It is not continued while that is not free.
  var wantsStack: Bool { get }
  /// The memory of the job in bytes, charged to its user.
  var memory: Int { get }
  /// Does about `budget` units of work; see ``WorkCost``. Returns whether the answer is complete.
  func advance(budget: Int) throws(FeedError) -> Bool
  /// The answer as a frame without its end, if the job writes a frame; otherwise nil.
  var frame: TurnBuffer? { get }
  /// Appends the members of the result. Not called if there is a frame.
  func appendResult(to out: inout ByteBuffer)
}

extension Job {
  var isWaiting: Bool { false }
  var wantsStack: Bool { false }
  var frame: TurnBuffer? { nil }
}

/// The request that a job answers. Outlives the frame of the request.
struct JobTicket {
  let id: [UInt8]?
  /// The feed of the request.
  let feed: String?

  init(_ reply: Reply, _ parameters: Parameters) {
    id = reply.id.map { Array($0) }
    feed = parameters.member("feed")?.truncatedName
  }
}

/// The sessions with an unfinished answer or JSON-RPC batch, in the order in which these started.
///
/// Invariant: between the steps of a turn, a session is listed once exactly if its line is answering.
struct LongAnswers {
  /// Units of work in one turn for all answers, and the same for all JSON-RPC batches.
  static let turnBudget = 2048
  /// Units of work that a new answer may use immediately while others are unfinished.
  static let firstPart = 128
  /// The minimum units of work of one session in a turn, whatever the number of sessions.
  private static let leastShare = 16

  private var listed: [Session] = []
  /// The sessions after which the next turn begins, because the budget of the last one was used up.
  private var last: (batch: Session?, answer: Session?) = (nil, nil)
  /// The stack of queries that take several turns.
  var queries = QueryStack()

  var isEmpty: Bool { listed.isEmpty }

  /// A copy of the list of sessions.
  var sessions: [Session] { listed }

  /// The share of a turn's budget for each session: users get equal shares, and so do the sessions of one user.
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

  /// The sessions in the order in which a turn continues their batches, or their answers. O(sessions).
  func order(ofBatches: Bool) -> [Session] {
    let last = ofBatches ? last.batch : last.answer
    guard let last, let place = listed.firstIndex(where: { $0 === last }) else { return listed }
    return Array(listed[(place + 1)...] + listed[...place])
  }

  /// Records the session after which the budget of this turn was used up; nil if all had their share.
  mutating func didContinue(batches: Bool, upTo session: Session?) {
    if batches { last.batch = session } else { last.answer = session }
  }

  /// Moves the sessions of a user to the end of the list, so that the others get their turn first. O(sessions).
  mutating func rotate(_ uid: UInt32) {
    listed = listed.filter { $0.peer.uid != uid } + listed.filter { $0.peer.uid == uid }
  }

  mutating func add(_ session: Session) {
    if !listed.contains(where: { $0 === session }) { listed.append(session) }
  }

  mutating func remove(_ session: Session) {
    listed.removeAll { $0 === session }
    forgetLast()
  }

  /// Removes the sessions whose answers and batches are complete.
  mutating func removeFinished() {
    listed.removeAll { !$0.line.isAnswering }
    if listed.isEmpty { forgetLast() }
  }

  /// Forgets sessions that may be closed.
  private mutating func forgetLast() { last = (nil, nil) }

  /// Traps in a debug build unless the list equals the set of answering sessions. O(connections).
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
    // Most answers are complete after a first part. If others are unfinished, the new one waits for its share.
    run(job, ticket, of: session, budget: longAnswers.isEmpty ? LongAnswers.turnBudget : LongAnswers.firstPart)
    if session.line.work == nil { return }
    longAnswers.add(session)
    // A part may be as long as an element. A complete answer counts when it is written.
    outbox.shares.add(job.memory, of: session.peer.uid)
  }

  /// Continues the unfinished answers, until the budget of the turn is used up.
  func advanceAnswers() {
    let shares = longAnswers.shares()
    longAnswers.queries.beginTurn()
    // The answer that has the stack may end in this turn. Then the next one is the first that wants it.
    var wanting: [Session] = []
    var left = LongAnswers.turnBudget
    var last: Session?
    for session in longAnswers.order(ofBatches: false) where left > 0 && !hasLongAnswers {
      guard let (job, ticket) = session.line.work else { continue }
      if job.wantsStack {
        wanting.append(session)
      } else {
        left -= run(job, ticket, of: session, budget: shares.share(of: session))
        last = session
      }
    }
    longAnswers.didContinue(batches: false, upTo: left > 0 ? nil : last)
    for session in wanting where longAnswers.queries.canBegin && !hasLongAnswers {
      guard let (job, ticket) = session.line.work else { continue }
      run(job, ticket, of: session, budget: shares.share(of: session))
      longAnswers.rotate(session.peer.uid)
    }
  }

  /// Whether an unfinished answer or batch can be continued now.
  var hasAnswersToContinue: Bool {
    longAnswers.sessions.contains { session in
      if let work = session.line.work { return !work.job.isWaiting }
      if session.line.batch == nil { return true }
      return session.line.isEmpty && !session.line.isStalled && session.output.count <= limits.maxQueue
    }
  }

  /// Cancels the unfinished answer to a peer that stopped reading. Its batch continues without the requests that only
  /// read.
  func stopAnswering(_ session: Session) {
    guard session.line.isAnswering else { return }
    session.line.work = nil
    recount(session)
  }

  /// Ends the work on a session whose requests were all answered: takes more requests, or closes it at the end of its
  /// input.
  func finishWork(of session: Session) {
    assert(!session.line.isAnswering)
    guard session.line.isEmpty else { return }
    if session.input.hasEnded { session.phase.isClosing = true }
    outbox.list(session)
    resumeIfPossible(session)
  }

  /// Advances a job, and answers its request if it is complete. Returns the units of work that it took, at least `budget`.
  @discardableResult
  private func run(_ job: any Job, _ ticket: JobTicket, of session: Session, budget: Int) -> Int {
    giveAll(to: session)
    let before = job.memory
    var isDone = true
    do throws(FeedError) {
      isDone = try job.advance(budget: budget)
      if isDone { try finish(job, ticket, of: session) }
    } catch {
      refuse(session, ticket, error)
    }
    if isDone { session.line.work = nil }
    recount(session)
    return max(budget, WorkCost.answering(bytes: max(0, job.memory - before)))
  }

  /// Queues the complete answer of a job.
  private func finish(_ job: any Job, _ ticket: JobTicket, of session: Session) throws(FeedError) {
    // The answer may say what was sent before it, as that of `sync` does.
    session.output.pin()
    guard let frame = job.frame else { return try answer(session, ticket) { job.appendResult(to: &$0) } }
    if session.isClosing { return }
    frame.bytes.endMessage()
    if frame.bytes.endFrame(at: 0) > limits.maxFrame { throw .answerTooLarge(maxFrame: limits.maxFrame) }
    queue(session, taking: frame)
  }
}
