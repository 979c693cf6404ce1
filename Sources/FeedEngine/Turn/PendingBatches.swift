import FeedJSON
import FeedModel

/// The batches of requests that were decoded and not executed: the open batch, which still grows, and the batches in
/// flight, which the log has not stored yet, in order.
///
/// Invariant: the numbers of the batches in flight are consecutive and end with the last number assigned. Their count
/// is at most the log's window.
struct PendingBatches: ~Copyable {
  let log: any CommitLog
  /// Whether the log stores nothing: most requests are executed as they are decoded.
  let storesNothing: Bool
  /// The batch to which requests are added.
  private(set) var open: RequestBatch
  private var inFlight: [RequestBatch] = []
  private var pool: [RequestBatch] = []
  /// The number of the newest batch in flight, or of the last one that was.
  private(set) var lastNumber: UInt64 = 0
  private let maxDepth: Int
  private var room = BatchRoom()

  /// The maximum bytes of requests in one batch; a single request may be longer.
  private static let batchBytes = 1 << 20

  init(_ log: any CommitLog, maxDepth: Int) {
    (self.log, self.maxDepth) = (log, maxDepth)
    storesNothing = log.storesNothing
    open = RequestBatch(maxDepth: maxDepth)
  }

  /// Whether no request waits to be stored or executed.
  var isEmpty: Bool { inFlight.isEmpty && open.count == 0 }
  var isIdle: Bool { inFlight.isEmpty }
  /// Whether the open batch has requests, none of which needs storing, and nothing is before them.
  var hasOnlyWaiting: Bool { isIdle && open.count > 0 && open.frames.isEmpty }
  /// The number of the last batch that was executed or refused; 0 before the first.
  var executed: UInt64 { lastNumber &- UInt64(inFlight.count) }
  /// Whether the log accepts another batch now.
  var canAppend: Bool { inFlight.count < log.window && !storesNothing }

  /// Whether a request of `bytes` bytes that takes about `work` fits in the open batch. If so, its work is counted, and the
  /// caller must add it. One request of each user always fits, so that nobody can keep others from changing feeds.
  mutating func takeRoom(bytes: Int, work: Int, for user: UInt32) -> Bool {
    guard
      open.work &+ work <= room.work && open.byteCount &+ bytes <= Self.batchBytes || !open.hasRequests(of: user)
    else { return false }
    open.count(work: work, of: user)
    return true
  }

  /// Seals the open batch, gives it to the log, and opens another one.
  mutating func append(at moment: Instant, revision: UInt64) {
    assert(canAppend && !open.frames.isEmpty)
    lastNumber &+= 1
    let sealed = open.seal(number: lastNumber, at: moment, revision: inFlight.isEmpty && !log.isShared ? revision : nil)
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

  /// Reuses the memory of a batch that was executed or refused.
  /// - Parameter time: the time from its first turn to its last one, in nanoseconds.
  mutating func didExecute(_ batch: RequestBatch, in time: UInt64) {
    room.adapt(work: batch.work, time: time)
    if batch.number > 0 {
      assert(inFlight.first === batch, "batches are executed in order")
      inFlight.removeFirst()
    }
    batch.removeAll()
    if pool.count < 2 { pool.append(batch) }
    checkInvariants()
  }

  /// Removes the open batch to execute its waiting requests; it has nothing to store. Return it with `didExecute`.
  mutating func takeOpen() -> RequestBatch {
    assert(inFlight.isEmpty && open.frames.isEmpty)
    let batch = open
    open = pool.popLast() ?? RequestBatch(maxDepth: maxDepth)
    return batch
  }

  /// Frees memory that recent requests did not need. Called about once a second.
  mutating func releaseUnused() {
    open.releaseUnused()
    for batch in pool { batch.releaseUnused() }
  }

  /// Frees most memory of the tape.
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

/// The work that one batch may take, in units of about a microsecond.
///
/// A change waits for the batches before its own: at most one that is executed, and the open one. So a batch may not take long.
/// What a request takes is estimated before it joins. Estimates can be wrong, for example for costly filters, so the room
/// shrinks when a batch took long, and grows when a full one was quick.
///
/// Invariant: the room is between `least` and `most`.
struct BatchRoom {
  private(set) var work = most

  private static let least = 1
  private static let most = 1 << 14
  /// The time within which a batch should be executed, in nanoseconds.
  private static let longest: UInt64 = 40_000_000

  /// Adapts to a batch that was executed.
  /// - Parameters:
  ///   - work: the estimate for its requests.
  ///   - time: the time from its first turn to its last one, in nanoseconds; 0 if it took one turn.
  mutating func adapt(work: Int, time: UInt64) {
    // How long the daemon's own requests take says nothing about the estimates.
    if work == 0 { return }
    if time > Self.longest {
      let share = Double(Self.longest) / Double(time)
      self.work = max(Self.least, min(self.work, Int(Double(work) * share)))
    } else if time < Self.longest / 2, work &* 2 >= self.work {
      self.work = min(Self.most, self.work &* 2)
    }
  }
}
