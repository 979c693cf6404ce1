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
/// durability `process`, `append` itself writes the batch into space that is allocated: a copy to the system's memory,
/// unless such writes had to wait (``WriteTimes``). Everything that may wait for the disk is done by other threads.
/// Invariant: at most one batch and at most two parts of an image are in flight.
public final class FileLog: CommitLog, ImageStore {
  /// Whether the history continues or a new epoch begins.
  public let beginning: StateBeginning
  /// The failures that a stored batch survives.
  public let durability: Durability
  /// Called with failures of background work (true) and their end (false), for the daemon's log.
  public var report: (_ isFailure: Bool, _ message: String) -> Void = { _, _ in }
  public private(set) var sizes = StoredSizes()
  /// Whether the daemon must not serve before an image is written: it replaces what the state was read from.
  public private(set) var mustWriteImage = false

  private let place: ImageThread.Place
  private let notices: LogNotices
  private var origin: Origin?
  private var running: Running?
  private var batches = BatchesInFlight(after: 0)
  private var room = RoomForBatches()
  private var writeTimes = WriteTimes()
  private var schedule: ImageSchedule
  private var image = ImageInFlight()

  /// What the log continues; forgotten when it is started.
  private struct Origin {
    let state: StoredState
    let facts: SegmentWriter.Facts
    /// Where the stored log ends, from recovery on.
    var end = LogEnd()
  }

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
    var state = try StoredState(directory, files, access: .write, boot: boot, vfs: vfs, skipsDamaged: skipsDamaged)
    if let skipped { state.skip(skipped) }
    let epoch = state.beginning == .continued ? state.epoch ?? freshEpoch : freshEpoch
    let facts = SegmentWriter.Facts(
      epoch: epoch, previousEpoch: state.epoch ?? epoch, imageEpoch: state.facts.epoch, boot: boot,
      software: software, durability: durability)
    let place = ImageThread.Place(directory: directory, files: files, vfs: vfs, epoch: epoch, software: software)
    let notices = try StorageError.ofSystem(path: directory, try LogNotices())
    return FileLog(Origin(state: state, facts: facts), place, notices, policy)
  }

  private init(_ origin: Origin, _ place: ImageThread.Place, _ notices: LogNotices, _ policy: ImagePolicy) {
    (self.origin, self.place, self.notices) = (origin, place, notices)
    beginning = origin.state.beginning
    durability = origin.facts.durability
    schedule = ImageSchedule(policy, now: MonotonicClock.now)
  }

  deinit {
    running?.images.stop(until: .max)
    running?.log.abandon()
  }

  public var directory: String { place.directory }
  /// The name of the unbroken history of revisions. It survives restarts.
  public var epoch: String { place.epoch }
  public var window: Int { 1 }
  public var storesNothing: Bool { false }

  /// Restores the stored state into `target`. Called once, before `start`.
  /// - Parameter note: called before each batch is executed, and repeatedly while an image is read.
  public func recover(
    into target: any RecoveryTarget, _ note: @escaping (RecoveryProgress) -> Void = { _ in }
  ) throws(StorageError) -> RecoveryProgress {
    guard let state = origin?.state else { preconditionFailure("the log was started before") }
    var recovery = Recovery(state, into: target, note)
    try recovery.run()
    origin?.end = recovery.end
    schedule.didRecover(
      recovery.progress, imageBytes: recovery.image.bytes, needsImage: state.needsImage || state.database == nil)
    mustWriteImage = state.needsImage
    sizes.imageBytes = FilePath.size(of: state.path) ?? 0
    sizes.imagedAt = recovery.image.at
    return recovery.progress
  }

  /// Starts the threads of the log. Called after recovery, before the first batch.
  public func start(_ limits: Limits) throws(StorageError) {
    let running = try prepare(limits)
    try StorageError.ofSystem(path: directory, try running.log.start())
    try StorageError.ofSystem(path: directory, try running.images.start())
  }

  /// Starts without threads; `step` does their work. For simulations, in which a seed determines every step.
  package func startStepwise(_ limits: Limits) throws(StorageError) {
    writeTimes = WriteTimes(areIgnored: true)
    _ = try prepare(limits)
  }

  private func prepare(_ limits: Limits) throws(StorageError) -> Running {
    guard let origin else { preconditionFailure("the log was started before") }
    var writer = SegmentWriter(place.files, in: directory, after: origin.end, origin.facts)
    try writer.begin(limits, after: origin.end, mustBegin: mustWriteImage)
    if !writer.hasSegment { schedule.hold() }
    ImageFile.remove(place.files)
    batches = BatchesInFlight(after: origin.end.nextBatch - 1)
    sizes.segmentBytes = writer.bytes
    var place = place
    place.limits = limits.storedText
    self.origin = nil
    do throws(SystemError) {
      let running = Running(
        log: try LogThread(writer, SegmentFiles(place.files, durability), notices),
        images: try ImageThread(place, replacing: origin.state.journal, notices))
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

  public var shortage: String? {
    room.shortage {
      let free = place.files.freeBytes
      return schedule.hasRoomAgain(free: free)
        || SpareSegments.hasRoom(free: free, image: schedule.nextImageBytes, log: sizes.segmentBytes)
    }
  }

  /// Whether the batch in flight waits for room.
  var isAwaitingRoom: Bool { room.isAwaited }

  public func append(_ batch: LogBatch) {
    guard let running else { preconditionFailure("the log is not started") }
    batches.begin(batch)
    let areShort = writeTimes.begin(at: MonotonicClock.now)
    if areShort, durability == .process, batch.frames.count <= Self.longBatch,
      let notice = running.log.appendInPlace(batch)
    {
      let end = MonotonicClock.now
      handle(notice)
      writeTimes.didWrite(at: end)
      return
    }
    running.log.append(batch)
  }

  public func nextEvent() -> LogEvent? {
    if !batches.hasEvent { handleNotices() }
    return batches.takeEvent()
  }

  public func close(within nanoseconds: UInt64) {
    discardImage()
    let (end, isEndless) = MonotonicClock.now.addingReportingOverflow(nanoseconds)
    let deadline = isEndless ? UInt64.max : end
    running?.images.stop(until: deadline)
    // The revision is only a note.
    running?.log.close(revision: image.head.revision, until: deadline)
    handleNotices()
  }

  /// The number of the last batch of the log.
  var lastBatch: UInt64 { batches.place(of: .max) }

  private func handleNotices() {
    for notice in notices.take() { handle(notice) }
  }

  private func handle(_ notice: LogNotices.Notice) {
    let now = MonotonicClock.now
    switch notice {
    case .stored(let number, let place):
      writeTimes.didStore(at: now)
      schedule.didAppend(bytes: batches.didStore(number, as: place), now: now)
      room.didStore()
    case .failed(let number, let error):
      room.didFail(error, now: now)
      batches.didFail(number, error.description)
    case .uncertain(let error):
      report(true, "\(error) (the request waits until it is certain that it was not stored)")
    case .waitsForRoom:
      room.beginToWait()
      if !schedule.awaitRoom(free: place.files.freeBytes, now: now) { running?.log.decideRoom() }
    case .partWritten(let image):
      if image == self.image.number { self.image.didWritePart() }
    case .imageComplete(let image, let bytes, let fileBytes):
      guard image == self.image.number else { break }
      (sizes.imageBytes, sizes.imagedAt) = (fileBytes, WallClock.now)
      running?.log.removeSegments(coveredThrough: UInt64(self.image.head.journal))
      if schedule.didComplete(bytes: bytes, now: now) { report(false, "\(directory): images are written again") }
    case .imageFailed(let image, let error):
      guard image == self.image.number else { break }
      self.image.discard()
      running?.log.decideRoom()
      if schedule.didFail(free: place.files.freeBytes, now: now) {
        report(true, "\(error) (nothing is lost: the log is kept until an image is written)")
      }
    case .segments(let bytes):
      sizes.segmentBytes = bytes
      schedule.didMeasure(free: place.files.freeBytes)
    }
  }

  // MARK: Images

  public var imagePause: UInt64? {
    if image.isUnread { return image.maySend ? 0 : nil }
    return schedule.pause(now: MonotonicClock.now)
  }

  public func workOnImage(
    executed number: UInt64?, steps: UInt64, stateBytes: Int, isBusy: Bool, _ makeImage: () -> CatalogImage
  ) {
    handleNotices()
    // The turn takes events of batches when the descriptor is readable.
    if batches.hasEvent { notices.wake() }
    schedule.didExecute(steps: steps, stateBytes: stateBytes)
    running?.log.reserve.store(schedule.nextImageBytes, ordering: .relaxed)
    var now = MonotonicClock.now
    if let number, !image.isUnread, schedule.wantsImage(now: now) { beginImage(makeImage(), executed: number) }
    let deadline = now &+ schedule.policy.step
    while now < deadline, sendPart(), !isBusy { now = MonotonicClock.now }
  }

  /// Whether ``workOnImage(executed:steps:stateBytes:isBusy:_:)`` would begin an image now. It may begin one if not: notices of the
  /// threads come in between.
  public var wantsImage: Bool { !image.isUnread && schedule.wantsImage(now: MonotonicClock.now) }

  private func beginImage(_ content: CatalogImage, executed number: UInt64) {
    schedule.didBegin()
    image.begin(content, covering: batches.place(of: number))
    running?.images.begin(image.number, image.head)
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

  /// Lets an image be written soon, beside the requests of clients, unless ``writeImage(executed:_:whileTrue:)`` writes one before.
  /// Called if the state differs from that which a replay of the log leads to: the next start need not find the differences again.
  public func requestImage() { schedule.request() }

  /// Whether a start should write an image before the daemon serves: the log is far too long, or should not be replayed
  /// again.
  public var isImageOverdue: Bool { schedule.isOverdue }

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
    guard schedule.needsImage else { return !schedule.isHeld }
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

public struct StoredSizes: Sendable {
  public var imageBytes = 0
  /// The moment of the newest image, in nanoseconds since 1970; 0 before the first.
  public var imagedAt: UInt64 = 0
  public var segmentBytes = 0

  public init() {}
}
