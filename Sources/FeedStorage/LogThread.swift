import FeedJSON
import FeedModel
import FeedSystem
import Synchronization

/// The thread of a log: receives batches and parts of images from the engine's thread, and reports the results.
///
/// A batch takes precedence over everything else; deleting obsolete rows comes last. The thread that holds `lock` owns
/// the database. Invariant: every batch given to `append` is answered by exactly one notice.
final class LogThread: @unchecked Sendable {
  /// The result of storing a batch or of writing a part.
  enum Notice: Sendable {
    /// The batch is stored up to this row.
    case stored(UInt64, row: Int64)
    case failed(UInt64, StorageError)
    /// The WAL may contain the batch, unsynced. `failed` follows when it has been overwritten.
    case uncertain(StorageError)
    /// A part of this image was written. Another may be sent.
    case partWritten(UInt64)
    /// The last part of this image was written.
    case imageComplete(UInt64, bytes: Int)
    /// This image was abandoned.
    case imageFailed(UInt64, StorageError)
    /// All obsolete rows were deleted.
    case wasteRemoved
    case wasteFailed(StorageError)
  }

  private enum Task {
    case beginImage(UInt64, revision: UInt64, at: UInt64, journal: Int64)
    case write(ImagePart, of: UInt64)
  }

  private enum Ending {
    /// Stores the batch in flight and records a clean stop.
    case clean
    /// Ends like a killed process.
    case abandoned
  }

  private struct Inbox {
    var batch: LogBatch?
    var tasks: [Task] = []
    var ending: Ending?
  }

  private enum Next {
    case again
    case wait
    case pause(UInt64)
    case end
  }

  /// Nanoseconds between attempts to overwrite a failed batch: the first pause doubles up to the last.
  private static let settlePauses: (first: UInt64, last: UInt64) = (1_000_000, 128_000_000)
  /// Nanoseconds between checks whether a checkpoint pass has ended.
  private static let checkpointPause: UInt64 = 5_000_000
  /// Nanoseconds between a failed deletion and the next attempt.
  private static let wastePause: UInt64 = 10_000_000_000

  private let lock = Guarded<Void>(())
  /// The log; nil after the end. Guarded by `lock`.
  private var log: LogBox?
  /// A batch that failed to be stored and that a start might still find. Guarded by `lock`.
  private var unsettled: (number: UInt64, error: StorageError, pause: UInt64)?
  private let inbox = Guarded<Inbox>(Inbox())
  private let notices = Guarded<[Notice]>([])
  private let hasNotices = Atomic<Bool>(false)
  /// Wakes the engine's thread, the log's thread, and the thread that joins the log's thread.
  private let wakeUps: (notice: WakeUp, task: WakeUp, end: WakeUp)
  private let isRunning = Atomic<Bool>(false)
  /// Whether `close` timed out. The thread may then wait for the disk forever.
  private let isGivenUp = Atomic<Bool>(false)
  /// Nanoseconds of one transaction of deletions.
  private let step: UInt64
  /// Used only by the thread: the current image, and the time when deleting may be retried.
  private var currentImage: UInt64 = 0
  private var wasteResumesAt: UInt64 = 0

  private final class LogBox {
    var database: LogDatabase
    init(_ database: consuming LogDatabase) { self.database = database }
  }

  init(_ log: consuming LogDatabase, step: UInt64) throws(SystemError) {
    wakeUps = (try WakeUp(), try WakeUp(), try WakeUp())
    self.log = LogBox(log)
    self.step = step
  }

  /// Readable while there are notices.
  var descriptor: Int32 { wakeUps.notice.descriptor }

  // MARK: The engine's side

  /// Calls `body` with the database on the calling thread. Waits for the current work of the log's thread.
  func withLog<Result: Sendable>(
    _ body: (inout LogDatabase) throws(StorageError) -> Result
  ) throws(StorageError) -> Result {
    try lock.withLock { _ throws(StorageError) in
      guard let log else { preconditionFailure("the log is closed") }
      return try body(&log.database)
    }
  }

  func start() throws(SystemError) {
    isRunning.store(true, ordering: .relaxed)
    do throws(SystemError) {
      try Thread("log") { self.run() }
    } catch {
      isRunning.store(false, ordering: .relaxed)
      throw error
    }
  }

  /// Sends a batch to the thread, which stores it.
  func append(_ batch: LogBatch) {
    inbox.withLock { inbox in
      assert(inbox.batch == nil)
      inbox.batch = batch
    }
    wakeUps.task.signal()
  }

  /// Stores a batch on the calling thread if the log's thread is idle.
  /// - Returns: whether the batch was accepted, and its result.
  func appendInPlace(_ batch: LogBatch) -> (isTaken: Bool, notice: Notice?) {
    guard inbox.withLock({ $0.tasks.isEmpty && $0.ending == nil }) else { return (false, nil) }
    var needsThread = false
    let result = lock.withLockIfAvailable { _ -> (Bool, Notice?) in
      guard let log, unsettled == nil, !log.database.mayWaitForDisk else { return (false, nil) }
      let notice = store(batch, in: log)
      if case .uncertain = notice { needsThread = true } else { needsThread = log.database.needsMaintenance }
      return (true, notice)
    }
    if needsThread { wakeUps.task.signal() }
    return result ?? (false, nil)
  }

  /// Begins an image that covers the journal up to a row. Its parts follow.
  func beginImage(_ image: UInt64, revision: UInt64, at moment: UInt64, journal row: Int64) {
    inbox.withLock { $0.tasks.append(.beginImage(image, revision: revision, at: moment, journal: row)) }
    wakeUps.task.signal()
  }

  func write(_ part: ImagePart, of image: UInt64) {
    inbox.withLock { $0.tasks.append(.write(part, of: image)) }
    wakeUps.task.signal()
  }

  /// Discards the parts of an image that were sent and not written yet.
  func discardImage() { inbox.withLock { $0.tasks.removeAll() } }

  /// Removes and returns all notices, in order. O(1) if there are none.
  func takeNotices() -> [Notice] {
    guard hasNotices.load(ordering: .relaxed), hasNotices.exchange(false, ordering: .acquiring) else { return [] }
    wakeUps.notice.clear()
    return notices.withLock { notices in
      defer { notices.removeAll() }
      return notices
    }
  }

  /// Waits until there are notices, or until the timeout.
  func waitForNotices(milliseconds: Int) {
    _ = try? Readiness.readable.wait(on: wakeUps.notice.descriptor, timeout: .milliseconds(milliseconds))
  }

  /// Stores the batch in flight, records a clean stop and ends the thread. Times out at `deadline`, a time of
  /// `MonotonicClock`.
  func close(until deadline: UInt64) {
    guard isRunning.load(ordering: .relaxed) else { return closeHere() }
    inbox.withLock { $0.ending = .clean }
    wakeUps.task.signal()
    isRunning.store(false, ordering: .relaxed)
    if !Self.wait(for: wakeUps.end, until: deadline) { isGivenUp.store(true, ordering: .relaxed) }
  }

  private func closeHere() {
    lock.withLock { _ in
      log?.database.close()
      log = nil
    }
  }

  /// Ends the thread without recording a stop, like the end of a process, and closes the database.
  func abandon() {
    if isGivenUp.load(ordering: .relaxed) { return }
    if isRunning.exchange(false, ordering: .relaxed) {
      inbox.withLock { $0.ending = $0.ending ?? .abandoned }
      wakeUps.task.signal()
      wakeUps.end.wait()
    }
    lock.withLock { _ in
      log?.database.stop()
      log = nil
    }
  }

  // MARK: The thread

  private func run() {
    while true {
      switch next() {
      case .again: continue
      case .wait: wakeUps.task.wait()
      case .pause(let nanoseconds): _ = Self.wait(for: wakeUps.task, until: MonotonicClock.now &+ nanoseconds)
      case .end: return wakeUps.end.signal()
      }
    }
  }

  /// Waits for a signal until a time of `MonotonicClock`. Returns false on timeout.
  private static func wait(for wakeUp: WakeUp, until deadline: UInt64) -> Bool {
    let now = MonotonicClock.now
    let left = Duration.nanoseconds(Int64(clamping: deadline > now ? deadline - now : 0))
    let found = try? Readiness.readable.wait(on: wakeUp.descriptor, timeout: left)
    wakeUp.clear()
    return found?.isEmpty == false
  }

  /// Does one step of work in place of the thread, which was not started. Returns false if the thread would wait.
  func runOnce() -> Bool {
    assert(!isRunning.load(ordering: .relaxed))
    if case .again = next() { return true }
    return false
  }

  /// Does one step of work, the most urgent first.
  private func next() -> Next {
    let (batch, ending) = inbox.withLock { inbox in
      defer { inbox.batch = nil }
      return (inbox.batch, inbox.ending)
    }
    if ending == .abandoned { return .end }
    if let batch {
      // The notice is posted before maintenance, which may wait for the disk.
      if let notice = lock.withLock({ _ in log.flatMap { store(batch, in: $0) } }) { post(notice) }
      return .again
    }
    let result: (next: Next, notice: Notice?) = lock.withLock { _ in
      guard let log else { return (.end, nil) }
      if let unsettled { return settle(unsettled, in: log) }
      if log.database.needsMaintenance { log.database.maintain() }
      if log.database.wantsPause && ending == nil { return (.pause(Self.checkpointPause), nil) }
      if let task = inbox.withLock({ $0.tasks.isEmpty ? nil : $0.tasks.removeFirst() }) {
        return (.again, execute(task, in: log))
      }
      if ending == .clean {
        log.database.close()
        self.log = nil
        return (.end, nil)
      }
      return log.database.hasWaste ? removeWaste(in: log) : (.wait, nil)
    }
    if let notice = result.notice { post(notice) }
    return result.next
  }

  /// Stores a batch.
  private func store(_ batch: LogBatch, in log: LogBox) -> Notice {
    switch log.database.append(revision: batch.revision ?? 0, at: batch.at.nanoseconds, requests: batch.frames) {
    case .stored: return .stored(batch.number, row: log.database.sequence)
    case .refused(let error): return .failed(batch.number, error)
    case .unknown(let error):
      unsettled = (batch.number, error, Self.settlePauses.first)
      return .uncertain(error)
    }
  }

  private func settle(
    _ batch: (number: UInt64, error: StorageError, pause: UInt64), in log: LogBox
  ) -> (Next, Notice?) {
    if log.database.settle() {
      unsettled = nil
      return (.again, .failed(batch.number, batch.error))
    }
    unsettled?.pause = min(batch.pause &* 2, Self.settlePauses.last)
    return (.pause(batch.pause), nil)
  }

  private func execute(_ task: Task, in log: LogBox) -> Notice? {
    do throws(StorageError) {
      switch task {
      case .beginImage(let image, let revision, let moment, let row):
        currentImage = image
        log.database.abandonImage()
        try log.database.beginImage(revision: revision, at: moment, journal: row)
        return nil
      case .write(let part, let image):
        // Parts of an image that failed or was replaced are discarded.
        guard image == currentImage, log.database.isWritingImage else { return .partWritten(image) }
        if let bytes = try log.database.write(part) { return .imageComplete(image, bytes: bytes) }
        return .partWritten(image)
      }
    } catch {
      wasteResumesAt = MonotonicClock.now &+ Self.wastePause
      return .imageFailed(currentImage, error)
    }
  }

  private func removeWaste(in log: LogBox) -> (Next, Notice?) {
    let now = MonotonicClock.now
    guard now >= wasteResumesAt else { return (.pause(wasteResumesAt - now), nil) }
    do throws(StorageError) {
      try log.database.removeWaste(until: now &+ step)
      return (.again, log.database.hasWaste ? nil : .wasteRemoved)
    } catch {
      wasteResumesAt = now &+ Self.wastePause
      return (.again, .wasteFailed(error))
    }
  }

  private func post(_ notice: Notice) {
    notices.withLock { $0.append(notice) }
    hasNotices.store(true, ordering: .releasing)
    wakeUps.notice.signal()
  }
}
