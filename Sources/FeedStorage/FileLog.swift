import FeedModel
import FeedSystem

/// The commit log in the segment files of a state directory, with images of the state beside it.
///
///     let log = try FileLog.open(directory, durability: .process, freshEpoch: epoch, software: "1")
///     let found = try log.recover(into: target)
///     try log.start(limits)
///     log.append(batch)                          // returns at once
///     while let event = log.nextEvent() { … }    // after append, and when `descriptor` is readable
///
/// Used by the engine's thread. While one batch is stored, the next one collects requests (group commit). With
/// durability `process`, `append` itself writes the batch into space that is allocated: a copy to the system's memory, unless such
/// writes had to wait (``WriteTimes``).
/// Everything that may wait for the disk is done by other threads. Invariant: at most one batch and at most two parts of an
/// image are in flight.
public final class FileLog: CommitLog, ImageStore {
  public let window = 1
  public let storesAtOnce = false
  /// The state directory.
  public let directory: String
  /// The name of the unbroken history of revisions. It survives restarts.
  public let epoch: String
  /// Whether the history continues or a new epoch begins.
  public let beginning: StateBeginning
  /// The failures that a stored batch survives.
  public let durability: Durability
  /// Called with failures of background work (true) and their end (false), for the daemon's log.
  public var report: (_ isFailure: Bool, _ message: String) -> Void = { _, _ in }
  /// The sizes of the stored state.
  public private(set) var sizes = StoredSizes()

  private let files: any LogDirectory
  private let facts: SegmentWriter.Facts
  private let vfs: String?
  private let notices: LogNotices
  /// What was found; nil once it was recovered.
  private var state: StoredState?
  private var running: Running?
  private var batches = BatchesInFlight(after: 0)
  private var schedule: ImageSchedule
  private var image = ImageInFlight()
  /// The last batch that the image being written covers.
  private var imageCovers: UInt64 = 0
  private var writeTimes = WriteTimes()
  /// Whether time must not decide anything.
  private var isStepwise = false
  /// The time when the batch in flight was appended.
  private var appendedAt: UInt64 = 0
  /// The reason why there was no room for a batch, and the time when to look again whether there is.
  private var lack: (reason: String, looksAgainAt: UInt64)?
  /// Whether the batch in flight waits for room.
  private(set) var isAwaitingRoom = false

  private struct Running {
    let log: LogThread
    let images: ImageThread
  }

  /// Reads the facts about a state directory; creates nothing.
  /// - Parameters:
  ///   - freshEpoch: a random name for a new history.
  ///   - skipped: the number of a batch that recovery skips, as a last resort. A new epoch begins.
  ///   - skipsDamaged: whether the log is cut where it does not verify. A new epoch begins.
  ///   - boot: the identity of the current boot (`BootIdentity`).
  ///   - files: the files of the log; tests replace them.
  ///   - vfs: the SQLite VFS of images, for tests; nil for the default.
  public static func open(
    _ directory: String, durability: Durability, freshEpoch: String, policy: ImagePolicy = ImagePolicy(),
    software: String, skipping skipped: Int64? = nil, skipsDamaged: Bool = false, boot: String = BootIdentity.current,
    files: (any LogDirectory)? = nil, vfs: String? = nil
  ) throws(StorageError) -> FileLog {
    let files = files ?? SystemDirectory(directory)
    var state = try StoredState(
      directory, files, access: .write, boot: boot, vfs: vfs, skipsDamaged: skipsDamaged)
    if let skipped { state.skip(skipped) }
    let epoch = state.beginning == .continued ? state.epoch ?? freshEpoch : freshEpoch
    let facts = SegmentWriter.Facts(
      epoch: epoch, previousEpoch: state.epoch ?? epoch, imageEpoch: state.facts.epoch, boot: boot,
      software: software, durability: durability)
    do throws(SystemError) {
      return FileLog(state, files, facts, try LogNotices(), policy, vfs: vfs)
    } catch {
      throw StorageError(.other, path: directory, reason: "\(error)")
    }
  }

  private init(
    _ state: StoredState, _ files: any LogDirectory, _ facts: SegmentWriter.Facts, _ notices: LogNotices,
    _ policy: ImagePolicy, vfs: String?
  ) {
    self.state = state
    self.files = files
    self.facts = facts
    self.notices = notices
    self.vfs = vfs
    directory = state.directory
    durability = facts.durability
    epoch = facts.epoch
    beginning = state.beginning
    schedule = ImageSchedule(policy, now: MonotonicClock.now)
  }

  deinit {
    running?.images.stop(until: .max)
    running?.log.abandon()
  }

  /// Where the stored log ends, from recovery until the start.
  private var end: LogEnd?

  /// Restores the stored state into `target`. Called once, before `start`.
  public func recover(into target: any RecoveryTarget) throws(StorageError) -> RecoveryProgress {
    guard let state else { preconditionFailure("the state was recovered before") }
    var recovery = Recovery(state, into: target)
    try recovery.run()
    end = recovery.end
    schedule.didRecover(
      recovery.progress, imageBytes: recovery.image.bytes, needsImage: state.needsImage || state.database == nil)
    mustWriteImage = state.needsImage
    sizes.imageBytes = FileSize.of(state.path) ?? 0
    sizes.imagedAt = recovery.image.at
    return recovery.progress
  }

  /// Starts the threads of the log. Called after recovery, before the first batch.
  /// - Parameter limits: the limits of all later batches.
  public func start(_ limits: Limits) throws(StorageError) {
    let running = try prepare(limits)
    do throws(SystemError) {
      try running.log.start()
      try running.images.start()
    } catch {
      throw StorageError(.other, path: directory, reason: "\(error)")
    }
  }

  /// Starts without threads; `step` does their work. For simulations, in which a seed determines every step.
  package func startStepwise(_ limits: Limits) throws(StorageError) {
    isStepwise = true
    _ = try prepare(limits)
  }

  private func prepare(_ limits: Limits) throws(StorageError) -> Running {
    let end = end ?? LogEnd()
    var writer = SegmentWriter(files, in: directory, after: end, facts)
    try writer.begin(limits, after: end, mustBegin: mustWriteImage)
    ImageFile.remove(files)
    batches = BatchesInFlight(after: end.nextBatch - 1)
    sizes.segmentBytes = writer.bytes
    var place = ImageThread.Place(
      directory: directory, files: files, vfs: vfs, epoch: epoch, software: facts.software)
    if case .journal(let former) = state?.image { place.former = former }
    place.limits = limits.storedText
    (state, self.end) = (nil, nil)
    do throws(SystemError) {
      let running = Running(
        log: try LogThread(writer, SegmentFiles(files, durability), notices), images: try ImageThread(place, notices))
      self.running = running
      return running
    } catch {
      throw StorageError(.other, path: directory, reason: "\(error)")
    }
  }

  /// Does one step of work of the log's threads. Returns false if they would wait.
  package func step() -> Bool {
    guard let running else { return false }
    return running.log.runOnce() || running.images.step()
  }

  // MARK: Batches

  public var descriptor: Int32? { notices.descriptor }

  /// Longer batches are stored by the log's thread: copying them to the system's memory takes too long for the caller.
  private static let longBatch = 256 << 10
  /// Nanoseconds between two looks at the free space.
  private static let roomPause: UInt64 = 20_000_000

  public var shortage: String? {
    guard let (reason, time) = lack else { return nil }
    let now = MonotonicClock.now
    if now < time { return reason }
    if SpareSegments.hasRoom(free: files.freeBytes, image: schedule.nextImageBytes, log: sizes.segmentBytes) {
      lack = nil
      return nil
    }
    lack = (reason, now &+ Self.roomPause)
    return reason
  }

  public func append(_ batch: LogBatch) {
    guard let running else { preconditionFailure("the log is not started") }
    batches.begin(batch)
    appendedAt = MonotonicClock.now
    if durability == .process, batch.frames.count <= Self.longBatch, writeTimes.areShort(now: appendedAt),
      let notice = running.log.appendInPlace(batch)
    {
      let end = MonotonicClock.now
      handle(notice)
      if !isStepwise { writeTimes.didWrite(from: appendedAt, to: end) }
      return
    }
    running.log.append(batch)
  }

  public func nextEvent() -> LogEvent? {
    if !batches.hasEvent { handleNotices() }
    return batches.takeEvent()
  }

  /// Does nothing: an image, which covers only executed batches, shortens the log.
  public func release(through number: UInt64) {}

  public func close(within nanoseconds: UInt64) {
    discardImage()
    let (end, isEndless) = MonotonicClock.now.addingReportingOverflow(nanoseconds)
    let deadline = isEndless ? UInt64.max : end
    running?.images.stop(until: deadline)
    running?.log.close(revision: revisionAtEnd, until: deadline)
    handleNotices()
  }

  /// The revision of the last image; only a note.
  private var revisionAtEnd: UInt64 = 0

  /// The number of the last batch of the log.
  var lastBatch: UInt64 { batches.place(of: .max) }

  private func handleNotices() {
    for notice in notices.take() { handle(notice) }
  }

  private func handle(_ notice: LogNotices.Notice) {
    let now = MonotonicClock.now
    switch notice {
    case .stored(let number, let place):
      writeTimes.threadDidWrite(from: appendedAt, to: now)
      schedule.didAppend(bytes: batches.didStore(number, as: place), now: now)
      isAwaitingRoom = false
    case .failed(let number, let error):
      if isAwaitingRoom { lack = (error.description, now &+ Self.roomPause) }
      isAwaitingRoom = false
      batches.didFail(number, error.description)
    case .uncertain(let error):
      report(true, "\(error) (the request waits until it is certain that it was not stored)")
    case .waitsForRoom:
      isAwaitingRoom = true
      if !schedule.awaitRoom(now: now) { running?.log.decideRoom() }
    case .partWritten(let image):
      if image == self.image.number { self.image.didWritePart() }
    case .imageComplete(let image, let bytes, let fileBytes):
      guard image == self.image.number else { break }
      (sizes.imageBytes, sizes.imagedAt) = (fileBytes, WallClock.now)
      running?.log.removeSegments(coveredThrough: imageCovers)
      if schedule.didComplete(bytes: bytes, now: now) { report(false, "\(directory): images are written again") }
    case .imageFailed(let image, let error):
      guard image == self.image.number else { break }
      self.image.discard()
      running?.log.decideRoom()
      if schedule.didFail(now: now) {
        report(true, "\(error) (nothing is lost: the log is kept until an image is written)")
      }
    case .segments(let bytes):
      sizes.segmentBytes = bytes
      schedule.didMeasure(free: files.freeBytes)
    }
  }

  // MARK: Images

  public var imagePause: UInt64? {
    if image.isUnread { return image.maySend ? 0 : nil }
    return schedule.pause(now: MonotonicClock.now)
  }

  public func workOnImage(
    executed number: UInt64, steps: UInt64, stateBytes: Int, isBusy: Bool, _ makeImage: () -> CatalogImage
  ) {
    handleNotices()
    // The turn takes events of batches when the descriptor is readable.
    if batches.hasEvent { notices.wake() }
    schedule.didExecute(steps: steps, stateBytes: stateBytes)
    running?.log.reserve.store(schedule.nextImageBytes, ordering: .relaxed)
    var now = MonotonicClock.now
    if !image.isUnread && schedule.wantsImage(now: now) { beginImage(makeImage(), executed: number) }
    let deadline = now &+ schedule.policy.step
    while now < deadline, sendPart(), !isBusy { now = MonotonicClock.now }
  }

  /// Whether ``workOnImage(executed:steps:stateBytes:isBusy:_:)`` would begin an image.
  public var wantsImage: Bool { !image.isUnread && schedule.wantsImage(now: MonotonicClock.now) }

  private func beginImage(_ content: CatalogImage, executed number: UInt64) {
    schedule.didBegin()
    image.begin(content)
    imageCovers = batches.place(of: number)
    revisionAtEnd = content.revision
    running?.images.begin(
      image.number,
      ImageHead(id: 1, revision: content.revision, at: content.at.nanoseconds, journal: Int64(imageCovers), limits: 0))
  }

  /// Sends the next part of the current image. Returns false if there is none, or if enough parts are in flight.
  private func sendPart() -> Bool {
    guard let part = image.next() else { return false }
    running?.images.write(part, of: image.number)
    return true
  }

  private func discardImage() {
    image.discard()
    running?.images.discard()
  }

  /// Whether a start should write an image before the daemon serves: the log is far too long, or should not be replayed
  /// again.
  public var isImageOverdue: Bool { schedule.isOverdue }

  /// Whether the daemon must not serve before an image is written: it replaces what the state was read from.
  public private(set) var mustWriteImage = false

  /// Writes an image, replacing one that is being written, and waits for it. Does nothing if the newest image covers
  /// the log.
  ///
  /// At a clean stop this lets the next start, perhaps of another version, replay nothing.
  /// - Parameters:
  ///   - number: the last executed batch; no batch may be in flight.
  ///   - makeImage: returns an image of the state after that batch.
  ///   - mayGoOn: called several times a second; if it returns false, the image is abandoned.
  /// - Returns: whether an image now covers the log.
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
      notices.wait(milliseconds: Self.longestWait)
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

/// The sizes of a stored state.
public struct StoredSizes: Sendable {
  /// The bytes of the file with the image.
  public var imageBytes = 0
  /// The moment of the newest image, in nanoseconds since 1970; 0 before the first.
  public var imagedAt: UInt64 = 0
  /// The bytes of all segments of the log.
  public var segmentBytes = 0

  public init() {}
}

/// The image that is being written: its unread rest, and the parts on their way to the thread that writes them.
///
/// Invariant: at most two parts are in flight.
struct ImageInFlight: ~Copyable {
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

/// The batch in flight, the events about batches, and the places of batches in the log.
///
/// Invariant: a batch in flight has no event yet, and its number is the last one that was begun.
struct BatchesInFlight {
  private var inFlight: (number: UInt64, bytes: Int)?
  /// Events that were not returned yet.
  private var events: [LogEvent] = []
  /// The last two stored batches, with their numbers in the log. The first of them may be the last executed batch.
  private var stored: [(number: UInt64, place: UInt64)] = []
  /// The last batch of the log before the first one.
  private let first: UInt64

  init(after place: UInt64) {
    first = place
  }

  var hasEvent: Bool { !events.isEmpty }

  mutating func begin(_ batch: LogBatch) {
    precondition(inFlight == nil, "one batch may be in flight")
    assert(stored.last.map { batch.number > $0.number } ?? true, "numbers of batches only grow")
    inFlight = (batch.number, batch.frames.count)
  }

  /// Records that the batch is stored as a batch of the log. Returns its bytes.
  mutating func didStore(_ number: UInt64, as place: UInt64) -> Int {
    assert(inFlight?.number == number && place > self.place(of: .max))
    let bytes = inFlight?.bytes ?? 0
    inFlight = nil
    if stored.count == 2 { stored.removeFirst() }
    stored.append((number, place))
    events.append(.stored(through: number))
    return bytes
  }

  mutating func didFail(_ number: UInt64, _ reason: String) {
    assert(inFlight?.number == number)
    inFlight = nil
    events.append(.failed(from: number, reason: reason))
  }

  mutating func takeEvent() -> LogEvent? { events.isEmpty ? nil : events.removeFirst() }

  /// The number in the log of a batch, or of the last batch before that number.
  func place(of number: UInt64) -> UInt64 { stored.last { $0.number <= number }?.place ?? first }
}
