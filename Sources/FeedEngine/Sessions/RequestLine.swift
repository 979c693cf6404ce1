/// The unanswered requests of one connection: those that were decoded but not executed, which the turn's batches hold
/// in order, and one whose answer takes more than one turn.
///
/// Invariant: the bytes and reads are those of the requests. Without requests both are 0, and the line is not held.
struct RequestLine {
  private var count = 0
  /// The memory in bytes of the requests, and that of the one that is being executed.
  private(set) var bytes = 0
  private var reads = 0
  /// Whether the last request must be answered before another is added, because its answer may take several turns.
  private var isHeld = false
  /// Whether the open batch had no room for the next request.
  var isStalled = false
  /// Whether the stream ends after the last request.
  var isCut = false
  /// The answer that is computed in parts. Later requests wait.
  var work: (job: any Job, ticket: JobTicket)? {
    didSet { oldValue?.job.cancel() }
  }
  /// The JSON-RPC batch in progress. Later requests wait.
  var batch: Batch?
  /// The place of the connection in the queue of those with unfinished answers; nil if it is not there.
  var place: Int?

  /// The maximum number of waiting requests that are not stored: their answers may be large, and all are written in one
  /// turn.
  private static let maxReads = 32

  /// The memory in bytes of the requests and the unfinished answers.
  var memory: Int {
    isAnswering ? bytes &+ (work?.job.memory ?? 0) &+ (batch?.memory ?? 0) : bytes
  }

  /// Whether no decoded request waits.
  var isEmpty: Bool { count == 0 }
  /// Whether more requests may be added.
  var takesMore: Bool { !isHeld && !isCut && !isStalled && reads < Self.maxReads }
  /// Whether an answer or a JSON-RPC batch is in progress.
  var isAnswering: Bool { work != nil || batch != nil }
  /// Whether all requests were answered.
  var isDone: Bool { isEmpty && !isAnswering }

  mutating func add(bytes: Int, isRead: Bool, isHeld: Bool) {
    assert(takesMore)
    count &+= 1
    self.bytes &+= bytes
    if isRead { reads &+= 1 }
    self.isHeld = isHeld
    checkInvariants()
  }

  /// Removes the first request, which is being executed.
  mutating func remove(bytes: Int, isRead: Bool, isHeld: Bool) {
    assert(count > 0)
    count &-= 1
    self.bytes &-= bytes
    if isRead { reads &-= 1 }
    if isHeld { self.isHeld = false }
    checkInvariants()
  }

  /// Changes the memory of the request that is being executed.
  mutating func charge(_ more: Int) {
    bytes &+= more
    checkInvariants()
  }

  /// Discards the unfinished answers.
  mutating func cancelAnswers() {
    work = nil
    batch = nil
  }

  func checkInvariants() {
    assert(count >= reads && reads >= 0 && bytes >= 0)
    assert(count > 0 || bytes == 0 && !isHeld)
  }
}
