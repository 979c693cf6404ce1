import FeedModel
import FeedSystem

/// The commit log in an SQLite database, written by its own thread, with images of the state beside it.
///
///     let log = try SQLiteLog.open(path, durability: .process, freshEpoch: epoch, software: "1")
///     let found = try log.recover(into: target)
///     try log.start(limits)
///     log.append(batch)                          // returns at once
///     while let event = log.nextEvent() { … }    // after append, and when `descriptor` is readable
///
/// Used by the engine's thread. While one batch is stored, the next one collects requests (group commit). With
/// durability `process`, commits do not wait for the disk: `append` then stores the batch itself if the log's thread is
/// idle, which saves two thread switches. Invariant: at most one batch and at most two parts of an image are in flight.
public final class SQLiteLog: CommitLog, ImageStore {
  public let window = 1
  public let storesAtOnce = false
  /// The database file.
  public let path: String
  /// The name of the unbroken history of revisions in the file. It survives restarts.
  public let epoch: String
  /// Whether the history continues or a new epoch begins.
  public let beginning: StateBeginning
  /// The failures that a stored batch survives.
  public let durability: Durability
  /// Called with failures of background work (true) and their end (false), for the daemon's log.
  public var report: (_ isFailure: Bool, _ message: String) -> Void = { _, _ in }

  /// The bytes of the newest complete image and of the journal that it does not cover.
  public var storedBytes: Int { schedule.imageBytes + schedule.journalBytes }

  private let thread: LogThread
  /// The last row of the journal that may be without a checksum.
  private let unchecked: Int64
  private var batches: BatchesInFlight
  private var schedule: ImageSchedule
  private var image = ImageInFlight()

  /// Opens the file at `path`, or creates it with a new epoch.
  /// - Parameters:
  ///   - freshEpoch: a random name for a new history.
  ///   - skipped: the last row of a batch that recovery skips, as a last resort. A new epoch begins.
  ///   - boot: the identity of the current boot (`BootIdentity`).
  ///   - vfs: the SQLite VFS, for tests; nil for the default.
  public static func open(
    _ path: String, durability: Durability, freshEpoch: String, policy: ImagePolicy = ImagePolicy(), software: String,
    skipping skipped: Int64? = nil, boot: String = BootIdentity.current, vfs: String? = nil
  ) throws(StorageError) -> SQLiteLog {
    var opened = try StateFile.openToWrite(path, boot: boot, vfs: vfs)
    if let skipped { try opened.skip(skipped) }
    let facts = try StateFile.begin(opened, freshEpoch: freshEpoch, software: software)
    let database = try LogDatabase(
      opened, epoch: facts.epoch ?? freshEpoch, durability: durability, boot: boot, vfs: vfs)
    let batches = BatchesInFlight(after: database.sequence)
    do throws(SystemError) {
      return SQLiteLog(
        try LogThread(database, step: policy.step), batches, opened.beginning, facts, path: path,
        durability: durability, policy: policy)
    } catch {
      throw StorageError(.other, path: path, reason: "\(error)")
    }
  }

  private init(
    _ thread: LogThread, _ batches: BatchesInFlight, _ beginning: StateBeginning, _ facts: StateFacts, path: String,
    durability: Durability, policy: ImagePolicy
  ) {
    self.thread = thread
    self.batches = batches
    self.beginning = beginning
    self.path = path
    self.durability = durability
    epoch = facts.epoch ?? ""
    unchecked = facts.unchecked
    schedule = ImageSchedule(policy, now: MonotonicClock.now)
  }

  deinit { thread.abandon() }

  /// Restores the stored state into `target`. Called once, before `start`.
  public func recover(into target: any RecoveryTarget) throws(StorageError) -> RecoveryProgress {
    let unchecked = unchecked
    var skipped: Int64?
    if case .skipped(let row) = beginning { skipped = row }
    let (found, hasWaste) = try thread.withLog { log throws(StorageError) in
      let found = try log.recover(into: target, unchecked: unchecked, skipping: skipped)
      try log.findWaste(besides: found.image)
      return (found, log.hasWaste)
    }
    schedule.didRecover(found, hasWaste: hasWaste)
    return found.progress
  }

  /// Starts the log's thread. Called after recovery, before the first batch.
  /// - Parameter limits: the limits of all later batches.
  public func start(_ limits: Limits) throws(StorageError) {
    try thread.withLog { log throws(StorageError) in try log.use(limits) }
    do throws(SystemError) {
      try thread.start()
    } catch {
      throw StorageError(.other, path: path, reason: "\(error)")
    }
  }

  /// Starts without a thread; `step` does its work. For simulations, in which a seed determines every step.
  package func startStepwise(_ limits: Limits) throws(StorageError) {
    try thread.withLog { log throws(StorageError) in try log.use(limits) }
  }

  /// Does one step of work of the log's thread. Returns false if the thread would wait.
  package func step() -> Bool { thread.runOnce() }

  // MARK: Batches

  public var descriptor: Int32? { thread.descriptor }

  /// Longer batches are stored by the log's thread: copying them to the system's memory takes too long for the caller.
  private static let longBatch = 256 << 10

  public func append(_ batch: LogBatch) {
    batches.begin(batch)
    guard durability == .process, batch.frames.count <= Self.longBatch else { return thread.append(batch) }
    let (isTaken, notice) = thread.appendInPlace(batch)
    if let notice { handle(notice) }
    if !isTaken { thread.append(batch) }
  }

  public func nextEvent() -> LogEvent? {
    if !batches.hasEvent { handleNotices() }
    return batches.takeEvent()
  }

  /// Does nothing: an image, which covers only executed batches, shortens the journal.
  public func release(through number: UInt64) {}

  public func close(within nanoseconds: UInt64) {
    discardImage()
    let (end, isEndless) = MonotonicClock.now.addingReportingOverflow(nanoseconds)
    thread.close(until: isEndless ? .max : end)
    handleNotices()
  }

  /// The last row of the journal.
  var lastRow: Int64 { batches.row(of: .max) }

  private func handleNotices() {
    for notice in thread.takeNotices() { handle(notice) }
  }

  private func handle(_ notice: LogThread.Notice) {
    let now = MonotonicClock.now
    switch notice {
    case .stored(let number, let row):
      schedule.didAppend(bytes: batches.didStore(number, row: row), now: now)
    case .failed(let number, let error):
      batches.didFail(number, error.description)
    case .uncertain(let error):
      report(true, "\(error) (the request waits until it is certain that it was not stored)")
    case .partWritten(let image):
      if image == self.image.number { self.image.didWritePart() }
    case .imageComplete(let image, let bytes):
      guard image == self.image.number else { break }
      if schedule.didComplete(bytes: bytes, now: now) { report(false, "\(path): images are written again") }
    case .imageFailed(let image, let error):
      guard image == self.image.number else { break }
      self.image.discard()
      if schedule.didFail(now: now) {
        report(true, "\(error) (nothing is lost: the journal is kept until an image is written)")
      }
    case .wasteRemoved: schedule.didClean()
    case .wasteFailed(let error):
      if schedule.didFailToClean(now: now) {
        report(true, "\(error) (nothing is lost: what is no longer needed is deleted later)")
      }
    }
  }

  // MARK: Images

  public var imagePause: UInt64? {
    if image.isUnread { return image.maySend ? 0 : nil }
    return schedule.pause(now: MonotonicClock.now)
  }

  public func workOnImage(executed number: UInt64, steps: UInt64, isBusy: Bool, _ makeImage: () -> CatalogImage) {
    handleNotices()
    schedule.didExecute(steps: steps)
    var now = MonotonicClock.now
    if !image.isUnread && schedule.wantsImage(now: now) { beginImage(makeImage(), executed: number) }
    let deadline = now &+ schedule.policy.step
    while now < deadline, sendPart(), !isBusy { now = MonotonicClock.now }
  }

  /// Whether ``workOnImage(executed:steps:isBusy:_:)`` would begin an image.
  public var wantsImage: Bool { !image.isUnread && schedule.wantsImage(now: MonotonicClock.now) }

  private func beginImage(_ content: CatalogImage, executed number: UInt64) {
    schedule.didBegin()
    image.begin(content)
    thread.beginImage(
      image.number, revision: content.revision, at: content.at.nanoseconds, journal: batches.row(of: number))
  }

  /// Sends the next part of the current image. Returns false if there is none, or if enough parts are in flight.
  private func sendPart() -> Bool {
    guard let part = image.next() else { return false }
    thread.write(part, of: image.number)
    return true
  }

  private func discardImage() {
    image.discard()
    thread.discardImage()
  }

  /// Whether a start should write an image before the daemon serves: the journal is far too long, or should not be
  /// replayed again.
  public var isImageOverdue: Bool { schedule.isOverdue }

  /// Writes an image, replacing one that is being written, and waits for it. Does nothing if the newest image covers
  /// the journal.
  ///
  /// At a clean stop this lets the next start, perhaps of another version, replay nothing.
  /// - Parameters:
  ///   - number: the last executed batch; no batch may be in flight.
  ///   - makeImage: returns an image of the state after that batch.
  ///   - mayGoOn: called several times a second; if it returns false, the image is abandoned.
  /// - Returns: whether an image now covers the journal.
  @discardableResult
  public func writeImage(
    executed number: UInt64, _ makeImage: () -> CatalogImage, whileTrue mayGoOn: () -> Bool = { true }
  ) -> Bool {
    handleNotices()
    guard schedule.needsImage else { return true }
    discardImage()
    beginImage(makeImage(), executed: number)
    while schedule.isWriting {
      while sendPart() {}
      thread.waitForNotices(milliseconds: Self.longestWait)
      handleNotices()
      if schedule.isWriting && !mayGoOn() {
        discardImage()
        return false
      }
    }
    return !schedule.needsImage
  }

  private static let longestWait = 100
}

/// The image that is being written: its unread rest, and the parts on their way to the log's thread.
///
/// Invariant: at most two parts are in flight.
private struct ImageInFlight: ~Copyable {
  private static let partsInFlight = 2

  /// The number of the current or last image, counted from 1. Notices about other images are ignored.
  private(set) var number: UInt64 = 0
  private var cutter: ImageCutter?
  /// The number of parts that may be sent.
  private var partsLeft = 0

  /// Whether parts of the image have not been read yet.
  var isUnread: Bool { cutter != nil }
  /// Whether a part may be sent, if one is left.
  var maySend: Bool { partsLeft > 0 }

  mutating func begin(_ content: CatalogImage) {
    number += 1
    cutter = ImageCutter(content)
    partsLeft = Self.partsInFlight
  }

  /// Returns the next part, which is then in flight; nil if there is none, or if enough parts are in flight.
  mutating func next() -> ImagePart? {
    guard maySend, let part = cutter?.next() else { return nil }
    partsLeft -= 1
    if part.isLast { cutter = nil }
    return part
  }

  mutating func didWritePart() {
    partsLeft += 1
    assert(partsLeft <= Self.partsInFlight, "more parts were written than sent")
  }

  /// Forgets the unread rest. Parts in flight may still be reported.
  mutating func discard() { cutter = nil }
}

/// The batch in flight, the events about batches, and the last journal rows of batches.
///
/// Invariant: a batch in flight has no event yet, and its number is the last one that was begun.
struct BatchesInFlight {
  private var inFlight: (number: UInt64, bytes: Int)?
  /// Events that were not returned yet.
  private var events: [LogEvent] = []
  /// The last two stored batches. The first of them may be the last executed batch.
  private var stored: [(number: UInt64, row: Int64)] = []
  /// The last row before the first batch.
  private let firstRow: Int64

  init(after row: Int64) {
    firstRow = row
  }

  var hasEvent: Bool { !events.isEmpty }

  mutating func begin(_ batch: LogBatch) {
    precondition(inFlight == nil, "one batch may be in flight")
    assert(stored.last.map { batch.number > $0.number } ?? true, "numbers of batches only grow")
    inFlight = (batch.number, batch.frames.count)
  }

  /// Records that the batch is stored up to a row. Returns its bytes.
  mutating func didStore(_ number: UInt64, row: Int64) -> Int {
    assert(inFlight?.number == number && row > self.row(of: .max))
    let bytes = inFlight?.bytes ?? 0
    inFlight = nil
    if stored.count == 2 { stored.removeFirst() }
    stored.append((number, row))
    events.append(.stored(through: number))
    return bytes
  }

  mutating func didFail(_ number: UInt64, _ reason: String) {
    assert(inFlight?.number == number)
    inFlight = nil
    events.append(.failed(from: number, reason: reason))
  }

  mutating func takeEvent() -> LogEvent? { events.isEmpty ? nil : events.removeFirst() }

  /// The last row of a batch, or of the last batch before that number.
  func row(of number: UInt64) -> Int64 { stored.last { $0.number <= number }?.row ?? firstRow }
}
