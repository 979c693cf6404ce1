import FeedModel

/// A log that keeps its batches in an array, and stores or fails them when a test asks for it.
final class ArrayLog: CommitLog {
  /// Owns a copy of a batch's frames.
  private final class Copy {
    let bytes: UnsafeMutableRawBufferPointer

    init(_ bytes: UnsafeRawBufferPointer) {
      self.bytes = .allocate(byteCount: bytes.count, alignment: 1)
      self.bytes.copyMemory(from: bytes)
    }

    deinit { bytes.deallocate() }
  }

  let window: Int
  /// Whether batches of other members are delivered too.
  var isShared = false
  let storesNothing = false
  var shortage: String?
  let descriptor: Int32? = nil
  /// The stored batches in order, as a restart would find them.
  private(set) var stored: [LogBatch] = []
  /// The batches that are neither stored nor failed.
  private(set) var inFlight: [LogBatch] = []
  private var events: [LogEvent] = []
  /// Whether batches wait for `store` or `fail` instead of being stored at once.
  var isHeld = false
  /// The reason with which batches fail at once; nil to store them.
  var failure: String?
  /// The reason with which the batches in flight fail when another one is appended, which does not fail; nil for none.
  var failureBeforeNext: String?

  init(window: Int = 1) { self.window = window }

  func append(_ batch: LogBatch) {
    precondition(inFlight.count < window, "more batches are in flight than the window allows")
    if let failureBeforeNext { fail(failureBeforeNext) }
    failureBeforeNext = nil
    precondition(batch.number == (inFlight.last?.number ?? last) + 1)
    let copy = Copy(batch.frames)
    inFlight.append(
      LogBatch(
        number: batch.number, at: batch.at, revision: batch.revision, frames: UnsafeRawBufferPointer(copy.bytes),
        owner: copy))
    if let failure { fail(failure) } else if !isHeld { store() }
  }

  /// The number of the last batch that is no longer in flight.
  private var last: UInt64 = 0

  /// Stores the oldest `count` batches in flight; all if nil.
  func store(_ count: Int? = nil) {
    let count = min(count ?? inFlight.count, inFlight.count)
    guard count > 0 else { return }
    stored += inFlight.prefix(count)
    last = inFlight[count - 1].number
    inFlight.removeFirst(count)
    events.append(.stored(through: last))
  }

  /// Fails all batches in flight.
  func fail(_ reason: String) {
    guard let first = inFlight.first, let end = inFlight.last else { return }
    inFlight.removeAll()
    last = end.number
    events.append(.failed(from: first.number, through: last, reason: reason))
  }

  /// Delivers a batch of another member.
  func receive(_ batch: LogBatch) { events.append(.received(batch)) }

  /// Stores nothing any more: it is not known what is stored of the batches in flight.
  func lose(_ reason: String) { events.append(.lost(reason: reason)) }

  func nextEvent() -> LogEvent? { events.isEmpty ? nil : events.removeFirst() }
  func close(within nanoseconds: UInt64) {}
}
