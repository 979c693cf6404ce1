import FeedJSON
import FeedModel
import FeedSystem
import Synchronization

/// The thread of a log: stores what may wait for the disk, allocates segments and removes them, and reports the results.
///
/// A batch takes precedence over everything else. The thread that holds `lock` owns the segments. Invariant: every batch
/// given to `append` is answered by exactly one `stored` or `failed`.
final class LogThread: @unchecked Sendable {
  private enum Ending {
    /// Stores the batch in flight and records a clean stop.
    case clean(revision: UInt64)
    /// Ends like a killed process.
    case abandoned
  }

  private struct Inbox {
    var batch: LogBatch?
    /// The last batch that an image covers, until its segments are removed.
    var covered: UInt64?
    /// Whether a batch that waits for room is tried again, and refused if there is none.
    var decidesRoom = false
    var ending: Ending?
  }

  /// Work that may wait for the disk, and needs no lock.
  private enum Chore {
    case allocate(SegmentFiles.Wanted, isSoon: Bool)
    case remove(SegmentFiles.Covered)
  }

  private enum Next {
    case again
    case chore(Chore)
    case wait
    case pause(UInt64)
    case end
  }

  /// Nanoseconds between attempts to erase a failed batch: the first pause doubles up to the last.
  private static let settlePauses: (first: UInt64, last: UInt64) = (1_000_000, 128_000_000)
  /// Nanoseconds in which a segment is filled soon: before the system writes its zeros to the disk.
  private static let soon: UInt64 = 2_000_000_000
  /// Nanoseconds between attempts to allocate a spare segment.
  private static let sparePause: UInt64 = 200_000_000

  private let notices: LogNotices
  private let files: SegmentFiles
  /// The bytes that the next image needs.
  let reserve = Atomic<Int>(0)
  private let lock = Guarded<Void>(())
  /// The segments; nil after the end. Guarded by `lock`.
  private var segments: Box?
  /// A batch that failed to be stored and that a start might still find. Guarded by `lock`.
  private var unsettled: (number: UInt64, error: StorageError, pause: UInt64)?
  /// A batch without room. Guarded by `lock`.
  private var waiting: LogBatch?
  private var spareResumesAt: UInt64 = 0
  /// The times of the last batch that was stored, and of the one before the last allocation. Guarded by `lock`.
  private var times = (stored: Instant(nanoseconds: 0), allocated: Instant(nanoseconds: 0))
  private let inbox = Guarded<Inbox>(Inbox())
  private let wakeUps: (task: WakeUp, end: WakeUp)
  private let isRunning = Atomic<Bool>(false)
  /// Whether `close` timed out. The thread may then wait for the disk forever.
  private let isGivenUp = Atomic<Bool>(false)

  private final class Box {
    var writer: SegmentWriter
    init(_ writer: consuming SegmentWriter) { self.writer = writer }
  }

  init(_ writer: consuming SegmentWriter, _ files: SegmentFiles, _ notices: LogNotices) throws(SystemError) {
    (self.notices, self.files) = (notices, files)
    wakeUps = (try WakeUp(), try WakeUp())
    segments = Box(writer)
  }

  // MARK: The engine's side

  func start() throws(SystemError) {
    try Thread("log") { self.run() }
    isRunning.store(true, ordering: .relaxed)
    wakeUps.task.signal()
  }

  /// Sends a batch to the thread, which stores it.
  func append(_ batch: LogBatch) {
    inbox.withLock { inbox in
      assert(inbox.batch == nil)
      inbox.batch = batch
    }
    wakeUps.task.signal()
  }

  /// Stores a batch on the calling thread, if it fits in the current segment and the log's thread does not use that.
  /// - Returns: whether it is stored; nil if it was not tried, and the batch must be given to `append`.
  func appendInPlace(_ batch: LogBatch) -> LogNotices.Notice? {
    lock.withLockIfAvailable { _ -> LogNotices.Notice? in
      guard let segments, unsettled == nil, waiting == nil,
        segments.writer.canAppendAtOnce(bytes: batch.frames.count)
      else { return nil }
      let notice = store(batch, in: segments)
      if case .uncertain = notice { wakeUps.task.signal() }
      return notice
    } ?? nil
  }

  /// Removes the segments that an image covers, and then tries a batch again that waits for room.
  func removeSegments(coveredThrough batch: UInt64) {
    inbox.withLock { inbox in
      inbox.covered = batch
      inbox.decidesRoom = true
    }
    wakeUps.task.signal()
  }

  /// Refuses a batch that waits for room, unless there is room now.
  func decideRoom() {
    inbox.withLock { $0.decidesRoom = true }
    wakeUps.task.signal()
  }

  /// Stores the batch in flight, records a clean stop and ends the thread. Times out at `deadline`, a time of
  /// `MonotonicClock`.
  func close(revision: UInt64, until deadline: UInt64) {
    guard isRunning.load(ordering: .relaxed) else {
      return lock.withLock { _ in
        segments?.writer.close(revision: revision)
        segments = nil
      }
    }
    inbox.withLock { inbox in
      inbox.ending = .clean(revision: revision)
      inbox.decidesRoom = true
    }
    wakeUps.task.signal()
    isRunning.store(false, ordering: .relaxed)
    if !Self.wait(for: wakeUps.end, until: deadline) { isGivenUp.store(true, ordering: .relaxed) }
  }

  /// Ends the thread without recording a stop, like the end of a process, and closes the files.
  func abandon() {
    if isGivenUp.load(ordering: .relaxed) { return }
    if isRunning.exchange(false, ordering: .relaxed) {
      inbox.withLock { $0.ending = $0.ending ?? .abandoned }
      wakeUps.task.signal()
      wakeUps.end.wait()
    }
    lock.withLock { _ in segments = nil }
  }

  // MARK: The thread

  private func run() {
    while true {
      switch next() {
      case .again, .chore: continue
      case .wait: wakeUps.task.wait()
      case .pause(let nanoseconds): _ = Self.wait(for: wakeUps.task, until: MonotonicClock.now &+ nanoseconds)
      case .end: return wakeUps.end.signal()
      }
    }
  }

  /// Waits for a signal until a time of `MonotonicClock`. Returns false on timeout.
  static func wait(for wakeUp: WakeUp, until deadline: UInt64) -> Bool {
    let now = MonotonicClock.now
    let left = Duration.nanoseconds(Int64(clamping: deadline > now ? deadline - now : 0))
    let found = try? Readiness.readable.wait(on: wakeUp.descriptor, timeout: left)
    wakeUp.clear()
    return found?.isEmpty == false
  }

  /// Does one step of work in place of the thread, which was not started. Returns false if the thread would wait.
  func runOnce() -> Bool {
    assert(!isRunning.load(ordering: .relaxed))
    switch next() {
    case .again, .chore: return true
    case .wait, .pause, .end: return false
    }
  }

  /// Does one step of work, the most urgent first.
  private func next() -> Next {
    let (batch, ending) = inbox.withLock { inbox in
      defer { inbox.batch = nil }
      return (inbox.batch, inbox.ending)
    }
    if case .abandoned = ending { return .end }
    let result: (next: Next, notice: LogNotices.Notice?) = lock.withLock { _ in
      guard let segments else { return (.end, nil) }
      if let batch { return (.again, store(batch, in: segments)) }
      if let unsettled { return settle(unsettled, in: segments) }
      return maintain(segments, ending)
    }
    if let notice = result.notice { notices.post(notice) }
    if case .chore(let chore) = result.next { perform(chore) }
    return result.next
  }

  private func perform(_ chore: Chore) {
    switch chore {
    case .allocate(let wanted, let isSoon):
      if let file = try? files.create(wanted, isSoon: isSoon) {
        lock.withLock { _ in segments?.writer.add(wanted, file) }
      } else {
        spareResumesAt = MonotonicClock.now &+ Self.sparePause
      }
    case .remove(let covered):
      files.remove(covered)
      spareResumesAt = 0
      // There may be room now.
      inbox.withLock { $0.decidesRoom = true }
    }
    if let bytes = lock.withLock({ _ in segments?.writer.bytes }) { notices.post(.segments(bytes: bytes)) }
  }

  /// Removes and allocates segments, and decides about a batch without room.
  private func maintain(_ segments: Box, _ ending: Ending?) -> (Next, LogNotices.Notice?) {
    let (covered, decidesRoom) = inbox.withLock { inbox in
      defer { (inbox.covered, inbox.decidesRoom) = (nil, false) }
      return (inbox.covered, inbox.decidesRoom)
    }
    if let covered {
      if let segments = segments.writer.takeSegments(coveredThrough: covered) {
        return (.chore(.remove(segments)), nil)
      }
      inbox.withLock { $0.decidesRoom = true }
      return (.again, nil)
    }
    if decidesRoom, let batch = waiting {
      waiting = nil
      return (.again, store(batch, in: segments, mayWait: false))
    }
    if case .clean(let revision) = ending {
      segments.writer.close(revision: revision)
      self.segments = nil
      return (.end, nil)
    }
    guard segments.writer.needsSpare else { return (.wait, nil) }
    let now = MonotonicClock.now
    if now < spareResumesAt { return (.pause(spareResumesAt - now), nil) }
    segments.writer.reserve = reserve.load(ordering: .relaxed)
    guard let missing = segments.writer.missing else { return (.pause(Self.sparePause), nil) }
    // If the segments before were filled in a short time, this one will be, too.
    let isSoon = times.allocated.nanoseconds > 0 && times.stored.since(times.allocated) < Self.soon
    times.allocated = times.stored
    return (.chore(.allocate(missing, isSoon: isSoon)), nil)
  }

  /// Stores a batch, and returns what became of it.
  private func store(_ batch: LogBatch, in segments: Box, mayWait: Bool = true) -> LogNotices.Notice {
    segments.writer.reserve = reserve.load(ordering: .relaxed)
    times.stored = batch.at
    switch segments.writer.append(batch) {
    case .stored: return .stored(batch.number, batch: segments.writer.nextBatch - 1)
    case .refused(let error): return .failed(batch.number, error)
    case .noRoom(let error):
      guard mayWait else { return .failed(batch.number, error) }
      waiting = batch
      return .waitsForRoom(batch.number)
    case .unknown(let error):
      unsettled = (batch.number, error, Self.settlePauses.first)
      return .uncertain(error)
    }
  }

  private func settle(
    _ batch: (number: UInt64, error: StorageError, pause: UInt64), in segments: Box
  ) -> (Next, LogNotices.Notice?) {
    if segments.writer.settle() {
      unsettled = nil
      return (.again, .failed(batch.number, batch.error))
    }
    unsettled?.pause = min(batch.pause &* 2, Self.settlePauses.last)
    return (.pause(batch.pause), nil)
  }
}
