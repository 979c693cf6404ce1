import FeedModel
import FeedSQLite
import FeedSystem

/// Everything that touches the database while the daemon runs: the journal's end, images, waste, checkpoints and the mark.
///
/// Used by one thread at a time. Batches are stored in order, and the mark follows each before anybody is told.
/// Invariant: the mark never exceeds the journal, and at most one image is being written.
struct LogDatabase: ~Copyable {
  /// What became of a batch.
  enum Outcome {
    /// It is stored, as durably as chosen.
    case stored
    /// It is not stored, and no start will find it.
    case refused(StorageError)
    /// It may lie whole in the log, unsynced. `settle` must succeed before its requests are refused.
    case unknown(StorageError)
  }

  let path: String
  private let database: Database
  private let place: FilePlace
  private let mark: StateMarkFile
  private let checkpoints: Checkpoints
  private var journal: Journal
  private var waste: WasteRemover
  private var image: ImageWriter?
  /// What was found wrong with the log; nothing can be stored any more.
  private var damage: StorageError?

  init(
    _ opened: borrowing StateFile.Opened, epoch: String, durability: Durability, boot: String, vfs: String?
  ) throws(StorageError) {
    let database = opened.database
    let path = database.path
    let journal = try Journal.open(database, durability)
    let (pageSize, checkpoints) = try StorageError.naming(path) { () throws(SQLiteError) in
      (try database.integer("PRAGMA page_size") ?? 0, try Checkpoints(database, path: path, vfs: vfs))
    }
    mark = StateMarkFile(
      StateMark(epoch: epoch, boot: boot, isSynced: durability == .disk, sequence: journal.sequence), of: path)
    self.path = path
    self.database = database
    self.journal = journal
    self.checkpoints = checkpoints
    place = FilePlace(path, pageSize: Int(pageSize))
    waste = WasteRemover(database)
  }

  /// The last row of the journal.
  var sequence: Int64 { journal.sequence }
  /// Whether there is something to delete.
  var hasWaste: Bool { !waste.isEmpty }
  /// Whether an image is being written.
  var isWritingImage: Bool { image != nil }
  /// Whether work that can wait should wait: the log is about to begin anew.
  var wantsPause: Bool { checkpoints.wantsPause }
  /// Whether the next commit may wait for the disk although commits are not synced.
  var mayWaitForDisk: Bool { checkpoints.isLogAboutToBeginAnew }
  /// Whether `maintain` has something to do.
  var needsMaintenance: Bool { checkpoints.isDue }

  /// Stores a batch.
  /// - Parameters:
  ///   - revision: the daemon's revision before the batch.
  ///   - moment: at which it is executed, in nanoseconds.
  mutating func append(revision: UInt64, at moment: UInt64, requests: UnsafeRawBufferPointer) -> Outcome {
    if let problem = problem() { return .refused(problem) }
    do throws(SQLiteError) {
      try journal.append(revision: revision, at: moment, requests: requests)
    } catch {
      let outcome = refusal(error)
      guard error.isFullDisk, checkpoints.makeRoom() else { return outcome }
      journal.logWasEmptied()
      do throws(SQLiteError) {
        try journal.append(revision: revision, at: moment, requests: requests)
      } catch {
        return refusal(error)
      }
    }
    mark.advance(to: journal.sequence)
    checkpoints.didCommit()
    return .stored
  }

  /// Makes sure that no start finds a batch whose fate is unknown. Returns whether that is certain now.
  mutating func settle() -> Bool {
    guard journal.mayHoldFailedBatch else { return true }
    do throws(SQLiteError) {
      try journal.overwriteFailedBatch()
      return true
    } catch {
      return false
    }
  }

  private mutating func refusal(_ error: SQLiteError) -> Outcome {
    let reason = StorageError(error, path: path)
    return settle() || error.isBeforeCommit ? .refused(reason) : .unknown(reason)
  }

  /// What keeps batches from being stored safely; nil when all is well.
  private mutating func problem() -> StorageError? {
    if let damage { return damage }
    let pages = checkpoints.pages
    guard let problem = place.problem(pages: pages) else { return nil }
    if case .vanished(let reason) = problem { return StorageError(.vanished, path: path, reason: reason) }
    guard case .cut(let reason) = problem else { return nil }
    // Another program may have emptied the log by a checkpoint, which is harmless: then it is short after a commit as well.
    do throws(SQLiteError) {
      try journal.overwriteFailedBatch()
      if checkpoints.pages < pages { return nil }
    } catch {}
    damage = StorageError(.cutLog, path: path, reason: reason)
    return damage
  }

  /// Keeps the log short. Called after commits; may wait for the disk.
  mutating func maintain() { checkpoints.maintain() }

  /// Uses these limits for all batches from now on.
  mutating func use(_ limits: Limits) throws(StorageError) {
    do throws(SQLiteError) { try journal.use(limits: limits.storedText) } catch {
      throw StorageError(error, path: path)
    }
  }

  // MARK: Images

  /// Begins an image.
  /// - Parameter journal: the last row that it covers.
  mutating func beginImage(revision: UInt64, at moment: UInt64, journal row: Int64) throws(StorageError) {
    assert(image == nil && row <= journal.sequence)
    do throws(SQLiteError) {
      let id = try database.integer("SELECT ifnull(max(id), 0) FROM image")
      let head = ImageHead(
        id: (id ?? 0) + 1, revision: revision, at: moment, journal: row, limits: journal.limitsRow)
      let feed = try ImageWriter.nextFeed(in: database)
      var writer: ImageWriter?
      try journal.withoutSync { () throws(SQLiteError) in
        writer = try ImageWriter(head, firstFeed: feed, limits: journal.limitsChecksum, in: database)
      }
      image = writer
    } catch {
      throw StorageError(error, path: path)
    }
  }

  /// Writes a part of the image under way; ignored without one. Returns the image's bytes when it is complete.
  ///
  /// On an error the image is given up; the journal still holds everything.
  mutating func write(_ part: ImagePart) throws(StorageError) -> Int? {
    guard var writer = image.take() else { return nil }
    let id = writer.head.id
    do throws(SQLiteError) {
      try journal.withoutSync { () throws(SQLiteError) in try writer.write(part) }
      if part.isLast {
        try waste.find(besides: id, journalUpTo: writer.head.journal)
        return writer.bytes
      }
      image = consume writer
      return nil
    } catch {
      waste.add(image: id)
      throw StorageError(error, path: path)
    }
  }

  /// Gives up the image under way, if there is one.
  mutating func abandonImage() {
    if let writer = image.take() { waste.add(image: writer.head.id) }
  }

  /// Deletes pieces of what is no longer needed, in one transaction that ends soon after `deadline`.
  mutating func removeWaste(until deadline: UInt64) throws(StorageError) {
    do throws(SQLiteError) {
      var waste = waste
      try journal.withoutSync { () throws(SQLiteError) in
        repeat { try waste.removePiece() } while !waste.isEmpty && MonotonicClock.now < deadline
      }
      self.waste = waste
    } catch {
      throw StorageError(error, path: path)
    }
  }

  /// Finds what the recovered image makes superfluous.
  mutating func findWaste(besides image: Recovery.Image) throws(StorageError) {
    do throws(SQLiteError) {
      try waste.find(besides: image.id, journalUpTo: image.journal)
    } catch {
      throw StorageError(error, path: path)
    }
  }

  /// What recovery found.
  struct Recovered: Sendable {
    let progress: RecoveryProgress
    let image: Recovery.Image
    /// Whether an image should replace the journal at once: rows without checksums were taken, or a batch was skipped.
    let needsImage: Bool
  }

  /// Restores the state into `target`. Before the first batch.
  /// - Parameters:
  ///   - unchecked: rows of the journal up to this one may be without checksums.
  ///   - skipped: the last row of a batch that is not executed; nil for none.
  func recover(
    into target: any RecoveryTarget, unchecked: Int64, skipping skipped: Int64?
  ) throws(StorageError) -> Recovered {
    var recovery = Recovery(
      database, version: Schema.version, unchecked: unchecked, skipping: skipped, into: target)
    try recovery.run()
    return Recovered(
      progress: recovery.progress, image: recovery.image,
      needsImage: recovery.tookUnchecked || skipped != nil)
  }

  /// Moves the log into the database file, and records a clean stop. Nothing may follow.
  mutating func close() {
    image = nil
    checkpoints.stop()
    guard damage == nil, !journal.mayHoldFailedBatch,
      let progress = try? database.checkpoint(.truncate), progress.moved == progress.pages
    else { return }
    mark.end(at: journal.sequence)
  }

  /// Ends the thread of checkpoints, as at the sudden end of a process.
  mutating func stop() { checkpoints.stop() }
}

extension SQLiteError {
  /// Whether a statement failed before its commit could lie whole in the log. Errors of a sync, and of what follows it, come
  /// after that.
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
