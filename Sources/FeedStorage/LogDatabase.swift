import FeedJSON
import FeedModel
import FeedSQLite
import FeedSystem

/// All work on the database while the daemon runs: the journal, images, deletion of obsolete rows, checkpoints and the
/// mark.
///
/// Used by one thread at a time. Batches are stored in order, and the mark is advanced after each one, before the
/// result is reported. Invariant: the mark never exceeds the journal, and at most one image is being written.
struct LogDatabase: ~Copyable {
  /// The result of storing a batch.
  enum Outcome {
    /// The batch is stored, with the configured durability.
    case stored
    /// The batch is not stored, and no start will find it.
    case refused(StorageError)
    /// The WAL may contain the whole batch, unsynced. `settle` must succeed before its requests are refused.
    case unknown(StorageError)
  }

  let path: String
  private let database: Database
  private var files: DatabaseFiles
  private let mark: StateMarkFile
  /// Whether batches are synced before they are reported as stored.
  private let isDurable: Bool
  private let checkpoints: Checkpoints
  private var journal: Journal
  private var waste: WasteRemover
  private var image: ImageWriter?
  /// Damage of the files by another program; nil if there is none. After damage nothing is stored, and nothing is moved
  /// from the WAL into the database file.
  private var damage: StorageError?
  /// The failure of a sync after which the WAL was not emptied, perhaps before this start. The system may have discarded what
  /// was written before it, the header of the WAL included, and later syncs succeed without that (fsync(2)).
  private var failedSync: StorageError?

  init(
    _ opened: borrowing StateFile.Opened, epoch: String, durability: Durability, boot: String, vfs: String?
  ) throws(StorageError) {
    let database = opened.database
    let path = database.path
    let journal = try Journal.open(database, durability)
    let (pageSize, checkpoints) = try StorageError.naming(path) { () throws(SQLiteError) in
      (try database.integer("PRAGMA page_size") ?? 0, try Checkpoints(database, path: path, vfs: vfs))
    }
    // A process that was killed may not have synced the end of its WAL. From now on clients see these batches.
    var unsynced: StorageError?
    if durability == .disk, FileSize.of(path + "-wal") ?? 0 > 0, !checkpoints.emptyLog() {
      unsynced = StorageError(
        .other, path: path,
        reason:
          "the log of the last run cannot be moved into the database; the disk fails, or another program reads it")
    }
    let mark = StateMarkFile(
      StateMark(epoch: epoch, boot: boot, isSynced: durability == .disk && unsynced == nil, sequence: journal.sequence),
      of: path)
    // The mark of the last run says that the disk has all batches. With it, a loss of power would go unnoticed.
    if unsynced != nil, !mark.sync() {
      throw StorageError(.inputOutput, path: path, reason: "neither the log of the last run nor the mark can be synced")
    }
    self.mark = mark
    failedSync = unsynced
    isDurable = durability == .disk
    self.path = path
    self.database = database
    self.journal = journal
    self.checkpoints = checkpoints
    files = DatabaseFiles(path, pageSize: Int(pageSize))
    waste = WasteRemover(database)
  }

  /// The last row of the journal.
  var sequence: Int64 { journal.sequence }
  /// Whether there are obsolete rows to delete.
  var hasWaste: Bool { !waste.isEmpty }
  /// Whether an image is being written.
  var isWritingImage: Bool { image != nil }
  /// Whether deferrable work should wait, because the WAL is about to restart.
  var wantsPause: Bool { checkpoints.wantsPause }
  /// Whether the next commit may wait for the disk even if commits are not synced.
  var mayWaitForDisk: Bool { checkpoints.isLogAboutToBeginAnew }
  /// Whether `maintain` has work to do.
  var needsMaintenance: Bool { damage == nil && checkpoints.isDue }

  /// Stores a batch.
  /// - Parameters:
  ///   - revision: the daemon's revision before the batch.
  ///   - moment: the time at which it is executed, in nanoseconds.
  mutating func append(revision: UInt64, at moment: UInt64, requests: UnsafeRawBufferPointer) -> Outcome {
    if let problem = problem() { return .refused(problem) }
    if let failedSync {
      // The batch must not depend on what may be lost.
      guard checkpoints.emptyLog() else { return .refused(failedSync) }
      logWasEmptied()
      self.failedSync = nil
      if isDurable { mark.didSync() }
    }
    do throws(SQLiteError) {
      try journal.append(revision: revision, at: moment, requests: requests)
    } catch {
      let outcome = refusal(error)
      guard error.isFullDisk, checkpoints.makeRoom() else { return outcome }
      logWasEmptied()
      do throws(SQLiteError) {
        try journal.append(revision: revision, at: moment, requests: requests)
      } catch {
        return refusal(error)
      }
    }
    if let damage = verifyCommit() { return .refused(damage) }
    mark.advance(to: journal.sequence)
    checkpoints.didCommit()
    return .stored
  }

  private mutating func logWasEmptied() {
    journal.logWasEmptied()
    files.logWasEmptied()
  }

  /// Overwrites a batch whose outcome is unknown, so that no start finds it. Returns whether there is no such batch
  /// now.
  mutating func settle() -> Bool {
    guard journal.mayHoldFailedBatch else { return true }
    do throws(SQLiteError) {
      try journal.overwriteFailedBatch()
      return true
    } catch {
      return false
    }
  }

  /// Records the failure of a sync.
  private mutating func note(_ error: SQLiteError) {
    if error.isSyncError { failedSync = StorageError(error, path: path) }
  }

  private mutating func refusal(_ error: SQLiteError) -> Outcome {
    let reason = StorageError(error, path: path)
    note(error)
    return settle() || error.isBeforeCommit ? .refused(reason) : .unknown(reason)
  }

  /// The reason why nothing can be stored safely; nil if it can.
  private mutating func problem() -> StorageError? {
    if let damage { return damage }
    switch files.problem() {
    case nil: return nil
    case .vanished(let reason): return StorageError(.vanished, path: path, reason: reason)
    case .shortenedDatabase(let size):
      // Another program may have vacuumed the database, and moved all pages into its file.
      let pages = try? database.integer("PRAGMA page_count")
      return files.acceptShorterDatabase(pages: pages, size: size)
        ? nil : recordDamage("the database file was cut to \(counted(size, "byte")) by another program")
    case .shortenedLog(let size):
      // Another program may have emptied the WAL by a checkpoint, which is harmless. SQLite reports its pages after a commit
      // of one page.
      if (try? journal.commitNothing()) != nil, files.hasRoom(for: checkpoints.pages - 1, inLogOf: size) {
        files.logWasEmptied()
        return verifyCommit()
      }
      return recordDamage("the database's log was cut to \(counted(size, "byte")) by another program")
    case .overwrittenLog: return damageOfLog()
    }
  }

  /// Checks after a commit that the WAL still has the commit before.
  private mutating func verifyCommit() -> StorageError? {
    files.didCommit(pages: checkpoints.pages) == nil ? nil : damageOfLog()
  }

  private mutating func damageOfLog() -> StorageError {
    recordDamage("the end of the database's log was overwritten by another program")
  }

  private mutating func recordDamage(_ reason: String) -> StorageError {
    let error = StorageError(.damaged, path: path, reason: reason)
    damage = error
    return error
  }

  /// Executes a transaction of background work. It need not be synced, because lost work is only repeated.
  private mutating func transaction(_ body: (Database) throws(SQLiteError) -> Void) throws(StorageError) {
    if let problem = problem() { throw problem }
    do throws(SQLiteError) {
      try journal.withoutSync { () throws(SQLiteError) in try body(database) }
    } catch {
      note(error)
      throw StorageError(error, path: path)
    }
    if let damage = verifyCommit() { throw damage }
  }

  /// Keeps the WAL short. Called after commits; may wait for the disk.
  mutating func maintain() { checkpoints.maintain() }

  /// Sets the limits of all later batches. Called before the first batch.
  mutating func use(_ limits: Limits) throws(StorageError) {
    if let problem = problem() { throw problem }
    do throws(SQLiteError) { try journal.use(limits: limits.storedText) } catch {
      throw StorageError(error, path: path)
    }
    // SQLite reports the length of the WAL only after a commit. From now on, a WAL that becomes shorter is noticed.
    try? journal.commitNothing()
    if let damage = verifyCommit() { throw damage }
  }

  // MARK: Images

  /// Begins an image.
  /// - Parameter journal: the last row that it covers.
  mutating func beginImage(revision: UInt64, at moment: UInt64, journal row: Int64) throws(StorageError) {
    assert(image == nil && row <= journal.sequence)
    var writer: ImageWriter?
    let (limits, checksum) = (journal.limitsRow, journal.limitsChecksum)
    try transaction { database throws(SQLiteError) in
      let id = try database.integer("SELECT ifnull(max(id), 0) FROM image")
      let head = ImageHead(id: (id ?? 0) + 1, revision: revision, at: moment, journal: row, limits: limits)
      let feed = try ImageWriter.nextFeed(in: database)
      writer = try ImageWriter(head, firstFeed: feed, limits: checksum, in: database)
    }
    image = writer
  }

  /// Writes a part of the current image; does nothing if there is none. Returns the size of the image when it is
  /// complete.
  ///
  /// On an error the image is abandoned. The journal still contains everything.
  mutating func write(_ part: ImagePart) throws(StorageError) -> Int? {
    guard var writer = image.take() else { return nil }
    let id = writer.head.id
    do throws(StorageError) {
      try transaction { _ throws(SQLiteError) in try writer.write(part) }
      if part.isLast {
        try StorageError.naming(path) { () throws(SQLiteError) in
          try waste.find(besides: id, journalUpTo: writer.head.journal)
        }
        return writer.bytes
      }
      image = consume writer
      return nil
    } catch {
      waste.add(image: id)
      throw error
    }
  }

  /// Abandons the current image, if there is one.
  mutating func abandonImage() {
    if let writer = image.take() { waste.add(image: writer.head.id) }
  }

  /// Deletes obsolete rows, in one transaction that ends soon after `deadline`.
  mutating func removeWaste(until deadline: UInt64) throws(StorageError) {
    var waste = waste
    try transaction { _ throws(SQLiteError) in
      repeat { try waste.removePiece() } while !waste.isEmpty && MonotonicClock.now < deadline
    }
    self.waste = waste
  }

  /// Finds the rows that the recovered image makes obsolete.
  mutating func findWaste(besides image: Recovery.Image) throws(StorageError) {
    do throws(SQLiteError) {
      try waste.find(besides: image.id, journalUpTo: image.journal)
    } catch {
      throw StorageError(error, path: path)
    }
  }

  /// The result of recovery.
  struct Recovered: Sendable {
    let progress: RecoveryProgress
    let image: Recovery.Image
    /// Whether an image should replace the journal immediately, because rows without checksums were read or a batch was
    /// skipped.
    let needsImage: Bool
  }

  /// Restores the state into `target`. Called before the first batch.
  /// - Parameters:
  ///   - unchecked: the last row of the journal that may be without a checksum.
  ///   - skipped: the last row of a batch that is not executed; nil for none.
  func recover(
    into target: any RecoveryTarget, unchecked: Int64, skipping skipped: Int64?
  ) throws(StorageError) -> Recovered {
    var recovery = Recovery(
      database, version: Schema.version, unchecked: unchecked, skipping: skipped, into: target)
    try recovery.run()
    return Recovered(
      progress: recovery.progress, image: recovery.image,
      needsImage: recovery.usedUnchecked || skipped != nil)
  }

  /// Moves the WAL into the database file, and records a clean stop. The last call.
  mutating func close() {
    image = nil
    checkpoints.stop()
    guard damage == nil, !journal.mayHoldFailedBatch,
      let progress = try? database.checkpoint(.truncate), progress.moved == progress.pages
    else { return }
    mark.end(at: journal.sequence)
  }

  /// Ends the checkpoint thread, as a sudden end of the process would.
  mutating func stop() { checkpoints.stop() }
}

extension SQLiteError {
  /// Whether a statement failed before the WAL could contain its whole commit. A sync, and everything after it, comes
  /// later than that.
  fileprivate var isBeforeCommit: Bool {
    switch code {
    case Self.inputOutput: isFullDisk || isWriteError
    case Self.full, Self.busy, Self.readOnly, Self.permission, Self.cannotOpen, Self.corrupt, Self.tooBig,
      Self.constraint:
      true
    default: false
    }
  }
}
