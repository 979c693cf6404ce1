/// The requests of one connection that are not answered: those that were decoded and not executed, which the turn's batches
/// hold in order, and the one whose answer takes more than one turn.
///
/// Invariant: the bytes and reads are those of the requests; without requests there are none, and nothing is held.
struct RequestLine {
  private var count = 0
  /// Bytes of the requests.
  private(set) var bytes = 0
  private var reads = 0
  /// Whether nothing may follow the last request until it is answered: the answer may take several turns.
  private var isHeld = false
  /// Whether the next request found no room in the open batch.
  var isStalled = false
  /// Whether the stream ends behind the last request.
  var isCut = false
  /// The answer that is worked out in parts. Requests behind it wait.
  var work: (job: any Job, ticket: JobTicket)?
  /// The JSON-RPC batch under way. Requests behind it wait.
  var batch: Batch?

  /// Requests that may wait without being stored: their answers may be large, and all come in one turn.
  private static let maxReads = 32

  /// Bytes of memory that the requests and the answers under way hold.
  var memory: Int {
    isAnswering ? bytes &+ (work?.job.memory ?? 0) &+ (batch?.memory ?? 0) : bytes
  }

  /// Whether no decoded request waits.
  var isEmpty: Bool { count == 0 }
  /// Whether further requests may be added.
  var takesMore: Bool { !isHeld && !isCut && !isStalled && reads < Self.maxReads }
  /// Whether an answer or a JSON-RPC batch is under way.
  var isAnswering: Bool { work != nil || batch != nil }
  /// Whether every request is answered.
  var isDone: Bool { isEmpty && !isAnswering }

  mutating func add(bytes: Int, isRead: Bool, isHeld: Bool) {
    assert(takesMore)
    count &+= 1
    self.bytes &+= bytes
    if isRead { reads &+= 1 }
    self.isHeld = isHeld
    checkInvariants()
  }

  /// Removes the first request: it is executed.
  mutating func remove(bytes: Int, isRead: Bool, isHeld: Bool) {
    assert(count > 0)
    count &-= 1
    self.bytes &-= bytes
    if isRead { reads &-= 1 }
    if isHeld { self.isHeld = false }
    checkInvariants()
  }

  /// Discards the answers under way.
  mutating func cancelAnswers() {
    work = nil
    batch = nil
  }

  func checkInvariants() {
    assert(count >= reads && reads >= 0 && bytes >= 0)
    assert(count > 0 || bytes == 0 && !isHeld)
  }
}
