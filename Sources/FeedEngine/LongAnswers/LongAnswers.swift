import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// The cost of work in parts, in units of about a microsecond.
enum WorkCost {
  @inline(__always) static func reading(_ count: Int, bytes: Int) -> Int { count &+ bytes / 512 }
  @inline(__always) static func steps(_ count: Int) -> Int { count / 64 }
  @inline(__always) static func compiling(bytes: Int) -> Int { bytes / 128 }
  @inline(__always) static func answering(bytes: Int) -> Int { 1 &+ bytes / 128 }
}

/// An answer that may take longer than one turn. It is computed in parts while other clients are served.
///
/// Later requests on the same connection wait, so responses keep the order of requests.
protocol Job: AnyObject {
  /// Whether only something else lets the job go on, so that a turn looks at it at most once.
  var isWaiting: Bool { get }
  /// The memory of the job in bytes, charged to its user.
  var memory: Int { get }
  /// Does about `budget` units of work, see ``WorkCost``, and leaves what it did not use. Returns whether the answer is complete.
  func advance(budget: inout Int) throws(FeedError) -> Bool
  /// The answer as a frame without its end, if the job writes a frame; otherwise nil.
  var frame: TurnBuffer? { get }
  /// Appends the members of the result. Not called if there is a frame.
  func appendResult(to out: inout ByteBuffer)
  /// Ends the work, whose result nobody wants or which is complete.
  func cancel()
}

/// The answer of a job that writes its result while it works.
struct ResultText {
  /// The members of the result, after the beginning of the frame if the answer is one.
  let buffer = TurnBuffer()
  /// The answer as a frame of its own; nil if it is an entry of a batch, or not sent.
  let frame: TurnBuffer?

  init(for reply: Reply) {
    guard let id = reply.id, reply.session.line.array == nil else {
      frame = nil
      return
    }
    frame = buffer
    _ = buffer.bytes.beginFrame()
    buffer.bytes.beginResult(id: id)
  }
}

extension Job {
  var isWaiting: Bool { false }
  var frame: TurnBuffer? { nil }
  func cancel() {}
}

/// The request that a job answers. Outlives the frame of the request.
struct JobTicket {
  let id: [UInt8]?
  let feed: String?

  init(_ reply: Reply, _ parameters: Parameters) {
    id = reply.id.map { Array($0) }
    feed = parameters.member("feed")?.truncatedName
  }
}

/// The sessions with an unfinished answer or JSON-RPC batch. Users take turns, and so do the sessions of one user.
///
/// Invariant: between the steps of a turn, a session whose line is answering is in the queue, at the place that its line has.
struct LongAnswers {
  /// Units of work in one turn for all answers, and the same for all JSON-RPC batches.
  static let turnBudget = 2048
  /// Units of work of one session until the next one has its turn, and of a new answer immediately while others are unfinished.
  static let part = 128
  /// The bytes of an answer after which its first part took a whole turn: a part may be longer than its budget, because it has at
  /// least one row or feed.
  fileprivate static let bytesOfTurn = 2 << 20

  private var queue = UserQueue<Session>()
  /// The queries that take several turns.
  var queries = ReadStack<QueryJob>()

  var isEmpty: Bool { queue.isEmpty }
  var count: Int { queue.count }

  /// Adds a session, unless it is there.
  mutating func add(_ session: Session) {
    if session.line.place == nil { session.line.place = queue.append(session, of: session.peer.uid) }
  }

  mutating func remove(_ session: Session) {
    guard let place = session.line.place.take() else { return }
    queue.remove(at: place, of: session.peer.uid)
  }

  /// Removes and returns the session whose turn it is; nil if there is none.
  mutating func takeFirst() -> Session? {
    let session = queue.takeFirst()
    session?.line.place = nil
    return session
  }

  /// Whether a session satisfies a condition. O(sessions).
  func contains(where isMatch: (Session) -> Bool) -> Bool { queue.contains(where: isMatch) }

  /// Traps in a debug build unless each answering session is at its place in the queue. O(connections).
  func checkInvariants(_ sessions: some Sequence<Session>) {
    #if CHECK_INVARIANTS
      queue.checkInvariants { session, uid, place in session.line.place == place && session.peer.uid == uid }
      for session in sessions where session.line.isAnswering {
        precondition(session.line.place != nil, "an answer is under way and nobody continues it")
      }
    #endif
  }
}

extension Engine {
  /// Begins the answer to a request of a method whose cost is `long`.
  func start(_ job: any Job, for reply: Reply, _ parameters: Parameters) {
    let session = reply.session
    assert(session.line.isEmpty && session.line.work == nil, "another request does not wait for this answer")
    let ticket = JobTicket(reply, parameters)
    session.line.work = (job, ticket)
    // Most answers are complete after a first part. If others are unfinished, the new one waits for its share.
    run(job, ticket, of: session, budget: longAnswers.isEmpty ? LongAnswers.turnBudget : LongAnswers.part)
    if session.line.work == nil { return }
    session.line.restsInTurn = job.memory > LongAnswers.bytesOfTurn
    longAnswers.add(session)
    // A part may be as long as an element. A complete answer counts when it is written.
    outbox.shares.add(job.memory, of: session.peer.uid)
  }

  /// Lets the sessions with unfinished answers take turns, until the budget of the turn is used up.
  /// - Parameter body: does a part of the work of a session. Returns what it took; nil if no more can be done in this turn.
  func continueAnswers(_ body: (Session) -> Int?) {
    var left = LongAnswers.turnBudget
    var waiting: [Session] = []
    while left > 0, let session = longAnswers.takeFirst() {
      let cost = body(session)
      left -= cost ?? 0
      if !session.line.isAnswering {
        finishWork(of: session)
      } else if cost == nil {
        waiting.append(session)
      } else {
        longAnswers.add(session)
      }
    }
    for session in waiting { longAnswers.add(session) }
  }

  /// Does a part of the unfinished answer of a session. Returns what it took; nil if no more can be done in this turn.
  func advanceAnswer(of session: Session) -> Int? {
    guard let (job, ticket) = session.line.work, !hasLongAnswers else { return nil }
    if session.line.restsInTurn {
      session.line.restsInTurn = false
      return nil
    }
    return run(job, ticket, of: session, budget: LongAnswers.part)
  }

  /// Whether an unfinished answer or batch can be continued now.
  var hasAnswersToContinue: Bool {
    longAnswers.queries.hasWork
      || longAnswers.contains { session in
        if let work = session.line.work { return !work.job.isWaiting }
        if session.line.array == nil { return true }
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

  /// Advances a job, and answers its request if it is complete. Returns the units of work that it took, at least `budget`; nil if
  /// it waits.
  @discardableResult
  private func run(_ job: any Job, _ ticket: JobTicket, of session: Session, budget: Int) -> Int? {
    giveAll(to: session)
    let before = job.memory
    var isDone = true
    var left = budget
    defer { outbox.shares.add(work: budget - left, of: session.peer.uid) }
    do throws(FeedError) {
      isDone = try job.advance(budget: &left)
      if isDone { try finish(job, ticket, of: session) }
    } catch {
      refuse(session, ticket, error)
    }
    if isDone { session.line.work = nil }
    recount(session)
    return !isDone && job.isWaiting ? nil : max(budget, WorkCost.answering(bytes: max(0, job.memory - before)))
  }

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

/// A JSON-RPC batch in progress: the answers so far, and the requests that were not executed yet.
///
/// Most batches are executed in the turn that decodes them. Others are continued in the next turns.
final class RequestArray {
  /// The frame of the answers so far, without its last bracket; empty if there are none.
  let answers = TurnBuffer()
  private var bytes = ByteBuffer()
  private var scanner: JSONScanner
  private var rest: JSONView.Elements?
  /// The remaining requests before the last call of `next`.
  private var previous: JSONView.Elements?

  init(maxDepth: Int) { scanner = JSONScanner(maxDepth: maxDepth) }

  /// The memory in bytes: the copy of the requests, its tokens, and the answers.
  var memory: Int { bytes.capacity + scanner.capacity * JSONScanner.tokenSize + answers.bytes.capacity }

  /// Begins an entry in the array of answers. Returns the size of the answers before it.
  func openEntry() -> Int {
    let start = answers.bytes.count
    if start == 0 {
      _ = answers.bytes.beginFrame()
      answers.bytes.append(UInt8(ascii: "["))
    } else {
      answers.bytes.append(UInt8(ascii: ","))
    }
    return start
  }

  /// The size of the array of answers so far, with its brackets.
  var answersSize: Int { max(0, answers.bytes.count - Self.head) + 2 }

  /// Removes the last entry, which was opened at `start`, and returns it.
  func takeEntry(from start: Int) -> [UInt8] {
    let entry = Array(answers.bytes.bytes[(start > 0 ? start + 1 : Self.head)...])
    answers.bytes.truncate(to: start)
    return entry
  }

  /// The bytes of the frame's length and the first bracket.
  private static let head = 5

  /// Whether requests are left.
  var isUnfinished: Bool { rest != nil }

  /// Copies all requests of `messages`, which is not empty.
  func keep(_ messages: JSONView) {
    bytes.append(messages.text)
    rest = (try? scanner.scan(bytes.bytes))?.elements
  }

  /// Copies all requests of an array that was scanned in parts, and takes its tokens.
  func keep(_ text: LongText, of message: UnsafeRawBufferPointer) {
    assert(text.isComplete)
    bytes.append(message)
    swap(&scanner, &text.scanner)
    rest = scanner.view(at: 0, of: bytes.bytes).elements
  }

  /// Returns the next copied request; nil if there is none. Valid as long as this object.
  func next() -> JSONView? {
    previous = rest
    let message = rest?.next()
    if message == nil
      || rest.map({
        var ahead = $0; return ahead.next() == nil
      }) ?? true
    {
      rest = nil
    }
    return message
  }

  /// Makes ``next()`` return its last request again.
  func putBack() { rest = previous }
}

extension Engine {
  /// Queues the answers so far.
  func sendAnswers(of array: RequestArray, to session: Session) {
    if array.answers.bytes.isEmpty { return }
    array.answers.bytes.append(UInt8(ascii: "]"))
    array.answers.bytes.endFrame(at: 0)
    queue(session, taking: array.answers)
  }
}
