import FeedModel
import FeedSystem

/// The log for an owner that stores batches on its own thread: the same parts as `SQLiteLog`, without a thread between.
public final class Store {
  public typealias Beginning = StateBeginning

  public let path: String
  public let epoch: String
  public let beginning: Beginning
  public private(set) var newestMoment: UInt64 = 0
  /// Receives failures of work in the background (true) and their end (false).
  public var report: (_ isFailure: Bool, _ message: String) -> Void = { _, _ in }

  private var log: LogThread
  private let unchecked: Int64
  private var schedule: ImageSchedule
  private var reader: ImageReader?

  /// See `SQLiteLog.open`.
  public static func open(
    _ path: String, durability: Durability, freshEpoch: String, policy: ImagePolicy = ImagePolicy(), software: String,
    boot: String = BootIdentity.current, vfs: String? = nil
  ) throws(StorageError) -> Store {
    let opened = try StateFile.openToWrite(path, boot: boot, vfs: vfs)
    let facts = try StateFile.begin(opened, freshEpoch: freshEpoch, software: software)
    let epoch = facts.epoch ?? freshEpoch
    let log = try LogThread(opened, epoch: epoch, durability: durability, boot: boot, vfs: vfs)
    return Store(log, path, epoch, opened.beginning, facts.unchecked, policy)
  }

  private init(
    _ log: consuming LogThread, _ path: String, _ epoch: String, _ beginning: Beginning, _ unchecked: Int64,
    _ policy: ImagePolicy
  ) {
    self.log = log
    self.path = path
    self.epoch = epoch
    self.beginning = beginning
    self.unchecked = unchecked
    schedule = ImageSchedule(policy, now: MonotonicClock.now)
  }

  deinit { log.stop() }

  var sequence: Int64 { log.sequence }
  public var journalBytes: Int { schedule.journalBytes }
  public var imageBytes: Int { schedule.imageBytes }

  public func recover(into target: any RecoveryTarget) throws(StorageError) -> RecoveryProgress {
    let found = try log.recover(into: target, unchecked: unchecked)
    try log.findWaste(besides: found.image)
    schedule.didRecover(found, hasWaste: log.hasWaste)
    newestMoment = found.progress.newestMoment
    return found.progress
  }

  public func use(_ limits: Limits) throws(StorageError) { try log.use(limits) }

  public func append(revision: UInt64, at moment: UInt64, requests: UnsafeRawBufferPointer) throws(StorageError) {
    switch log.append(revision: revision, at: moment, requests: requests) {
    case .stored: break
    case .refused(let error), .unknown(let error): throw error
    }
    schedule.didAppend(bytes: requests.count, now: MonotonicClock.now)
    newestMoment = max(newestMoment, moment)
    log.maintain()
  }

  public var wantsImage: Bool { schedule.wantsImage(now: MonotonicClock.now) }
  public var hasWork: Bool {
    (reader != nil || log.hasWaste) && !log.wantsPause && schedule.mayTry(now: MonotonicClock.now)
  }
  public var pauseLeft: UInt64? {
    if reader != nil || log.hasWaste {
      return log.wantsPause ? 5_000_000 : schedule.retryPauseLeft(now: MonotonicClock.now)
    }
    return schedule.pause(now: MonotonicClock.now)
  }

  /// Begins an image, which must be of the state after the last batch.
  public func beginImage(_ image: CatalogImage) {
    schedule.didBegin()
    attempt { () throws(StorageError) in
      try log.beginImage(revision: image.revision, at: image.at.nanoseconds, journal: log.sequence)
      reader = ImageReader(image)
    }
  }

  /// Does a small part of the work; `isBusy`: requests wait for the turn's end.
  public func work(isBusy: Bool) {
    let deadline = MonotonicClock.now &+ (isBusy ? schedule.policy.step / 4 : schedule.policy.step)
    attempt { () throws(StorageError) in
      if reader == nil {
        try log.removeWaste(until: deadline)
        if !log.hasWaste { schedule.didClean() }
        return
      }
      while let part = reader?.next() {
        if part.isLast { reader = nil }
        if let bytes = try log.write(part), schedule.didComplete(bytes: bytes, now: MonotonicClock.now) {
          report(false, "\(path): images are written again")
        }
        if MonotonicClock.now >= deadline { break }
      }
    }
    log.maintain()
  }

  public func writeOverdueImage(_ makeImage: () -> CatalogImage) {
    guard schedule.isOverdue else { return }
    beginImage(makeImage())
    while reader != nil { work(isBusy: false) }
  }

  /// Ends the store's work: writes an image if that is cheap, and moves the log into the database file.
  public func close(_ makeImage: () -> CatalogImage?) {
    if schedule.wantsLastImage(deadline: 0, now: 0), let image = makeImage() {
      reader = nil
      log.abandonImage()
      beginImage(image)
      while reader != nil { work(isBusy: false) }
    }
    reader = nil
    log.close()
  }

  private func attempt(_ body: () throws(StorageError) -> Void) {
    do throws(StorageError) {
      try body()
    } catch {
      reader = nil
      if schedule.didFail(now: MonotonicClock.now) {
        report(true, "\(error) (nothing is lost: the journal is kept until an image is written)")
      }
    }
  }
}
