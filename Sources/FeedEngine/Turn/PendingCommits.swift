import FeedModel

/// The batches between a request's decoding and its execution: the open one, which still grows, and those that the log has not
/// stored yet, in order.
///
/// Invariant: the numbers of the batches in flight follow one another and end with the last number given; there are at most
/// as many as the log's window.
struct PendingCommits: ~Copyable {
  let log: any CommitLog
  /// Whether the log keeps nothing: requests are executed as they are decoded, and batches stay empty.
  let storesAtOnce: Bool
  /// The batch that takes requests.
  private(set) var open: RequestBatch
  private var inFlight: [RequestBatch] = []
  private var pool: [RequestBatch] = []
  private var lastNumber: UInt64 = 0
  private let maxDepth: Int

  /// Bytes of requests that one batch takes; a single request may be longer.
  private static let batchBytes = 1 << 20

  init(_ log: any CommitLog, maxDepth: Int) {
    self.log = log
    self.maxDepth = maxDepth
    storesAtOnce = log.storesAtOnce
    open = RequestBatch(maxDepth: maxDepth)
  }

  /// Whether nothing waits, neither to be stored nor to be executed.
  var isEmpty: Bool { inFlight.isEmpty && open.count == 0 }
  /// Whether the log has nothing left to store.
  var isIdle: Bool { inFlight.isEmpty }
  /// The number of the last batch that was executed or refused; 0 before the first.
  var executed: UInt64 { lastNumber &- UInt64(inFlight.count) }
  /// Whether the log takes another batch now.
  var canAppend: Bool { inFlight.count < log.window && !storesAtOnce }

  /// Whether the open batch takes a request of so many bytes.
  func hasRoom(for bytes: Int) -> Bool {
    open.count == 0 || open.byteCount &+ bytes <= Self.batchBytes
  }

  /// Seals the open batch and gives it to the log. Another one is open then.
  mutating func append(at moment: Instant, revision: UInt64) {
    assert(canAppend && !open.frames.isEmpty)
    lastNumber &+= 1
    let sealed = open.seal(number: lastNumber, at: moment, revision: inFlight.isEmpty ? revision : nil)
    inFlight.append(open)
    open = pool.popLast() ?? RequestBatch(maxDepth: maxDepth)
    log.append(sealed)
    checkInvariants()
  }

  /// The oldest batch in flight, if its number is at most `number`.
  func first(through number: UInt64) -> RequestBatch? {
    guard let first = inFlight.first, first.number <= number else { return nil }
    return first
  }

  /// Takes the oldest batch in flight away: it was executed or refused.
  mutating func removeFirst() {
    recycle(inFlight.removeFirst())
    checkInvariants()
  }

  /// Takes the open batch to execute what waits in it; nothing of it has to be stored. Give it back with `recycle`.
  mutating func takeOpen() -> RequestBatch {
    assert(inFlight.isEmpty && open.frames.isEmpty)
    let batch = open
    open = pool.popLast() ?? RequestBatch(maxDepth: maxDepth)
    return batch
  }

  mutating func recycle(_ batch: RequestBatch) {
    batch.removeAll()
    if pool.count < 2 { pool.append(batch) }
  }

  /// Returns memory that recent requests did not need. Call it about once a second.
  mutating func releaseUnused() {
    open.releaseUnused()
    for batch in pool { batch.releaseUnused() }
  }

  /// Returns most memory of the tape.
  mutating func releaseMemory() {
    open.releaseMemory()
    pool.removeAll()
  }

  func checkInvariants() {
    #if CHECK_INVARIANTS
      precondition(inFlight.count <= log.window)
      for (place, batch) in inFlight.enumerated() {
        precondition(batch.number == lastNumber - UInt64(inFlight.count - 1 - place))
      }
      precondition(open.number == 0)
    #endif
  }
}
