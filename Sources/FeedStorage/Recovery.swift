import FeedModel
import FeedSQLite

/// The target of recovery before the first client connects: the daemon's engine, or one that is created only for a
/// check.
public protocol RecoveryTarget: AnyObject {
  var catalog: Catalog { get }
  /// Sets the limits of the content and the batches that follow.
  func use(_ limits: Limits)
  /// Executes a batch again.
  func replay(_ batch: StoredBatch) throws(ReplayRefusal)
  /// Called before each batch is executed, and repeatedly while an image is read.
  func didRecover(_ progress: RecoveryProgress)
}

/// A batch of the journal.
public struct StoredBatch {
  /// The last row of the batch.
  public let sequence: Int64
  /// The daemon's revision before the batch; nil if it must not be compared, because an earlier batch was skipped.
  public let revision: UInt64?
  /// The time at which it is executed, in nanoseconds.
  public let at: UInt64
  /// The framed requests as they were appended. Valid during the call only.
  public let requests: UnsafeRawBufferPointer
}

extension StoredBatch {
  /// The batch without its revision.
  fileprivate var onAnyRevision: StoredBatch {
    StoredBatch(sequence: sequence, revision: nil, at: at, requests: requests)
  }
}

/// The reason why a batch cannot be replayed.
public struct ReplayRefusal: Error, Equatable, Sendable {
  public let reason: String

  public init(_ reason: String) {
    self.reason = reason
  }
}

/// The progress of recovery, and its result at the end.
public struct RecoveryProgress: Equatable, Sendable {
  /// The revision of the image; 0 without one.
  public var imageRevision: UInt64 = 0
  /// The number of restored feeds.
  public var feeds = 0
  /// The number of restored elements.
  public var elements = 0
  /// The number of replayed batches.
  public var batches = 0
  /// The last row of the current batch; 0 before the first.
  public var row: Int64 = 0
  /// The bytes of the requests in replayed batches.
  public var batchBytes = 0
  /// The latest stored time.
  public var newestMoment: UInt64 = 0

  public init() {}
}

/// Restores the state: reads the newest complete image, then replays the batches after it. Every row is verified.
struct Recovery: ~Copyable {
  /// The image that was read; all zeros if there is none.
  struct Image {
    var id: Int64 = 0
    /// The last row of the journal that it covers.
    var journal: Int64 = 0
    var bytes = 0
  }

  private let database: Database
  private let path: String
  private let version: Int64
  private let unchecked: Int64
  /// The last row of the batch that is not executed.
  private let skipped: Int64?
  private let target: any RecoveryTarget
  private var limits: StoredLimits
  /// The row of the limits that the target uses.
  private var limitsRow: Int64 = 0
  private(set) var progress = RecoveryProgress()
  private(set) var image = Image()
  /// Whether rows without checksums were read. An image should replace them.
  private(set) var usedUnchecked = false

  init(_ opened: borrowing StateFile.Opened, into target: any RecoveryTarget) {
    self.init(opened.database, version: opened.version, unchecked: opened.facts.unchecked, into: target)
  }

  /// - Parameters:
  ///   - version: the version of the file's schema.
  ///   - unchecked: the last row of the journal that may be without a checksum. An image that covers no later row may
  ///     be without one, too.
  ///   - skipped: the last row of a batch that is not executed; nil for none.
  init(
    _ database: Database, version: Int64, unchecked: Int64, skipping skipped: Int64? = nil,
    into target: any RecoveryTarget
  ) {
    self.skipped = skipped
    self.database = database
    path = database.path
    self.version = version
    self.unchecked = unchecked
    self.target = target
    limits = StoredLimits(database)
  }

  mutating func run() throws(StorageError) {
    try readImage()
    let last = try replayJournal()
    // An image that is wrongly marked as incomplete would otherwise be ignored.
    let expected = try StorageError.naming(path) { () throws(SQLiteError) in try Journal.lastRow(in: database) }
    guard last >= expected else {
      throw StorageError(
        .corrupt, path: path, reason: "the image that covers the journal up to row \(expected) is not complete")
    }
  }

  private mutating func readImage() throws(StorageError) {
    let checksum = version >= 2 ? "checksum" : "NULL"
    let find = try database.reading(
      "SELECT id, revision, at, journal, limits, bytes, \(checksum) FROM image WHERE complete ORDER BY id DESC LIMIT 1")
    guard try find.next(path) else { return }
    let head = ImageHead(
      id: find.integer(0), revision: find.unsigned(1), at: find.unsigned(2), journal: find.integer(3),
      limits: find.integer(4))
    image = Image(id: head.id, journal: head.journal, bytes: Int(clamping: find.integer(5)))
    progress.imageRevision = head.revision
    progress.newestMoment = head.at
    try useLimits(ofRow: head.limits)
    let isChecked = find.type(of: 6) != .null || (version >= 2 && head.journal > unchecked)
    if !isChecked { usedUnchecked = true }
    let feeds = FeedRecovery(database, target: target, isChecked: isChecked)
    var sum = head.checksum(limits: try limits.text(of: head.limits).checksum)
    try feeds.read(image: head.id, into: &sum, &progress)
    sum.add(Int64(image.bytes))
    guard !isChecked || find.integer(6) == sum.value else {
      throw StorageError(.corrupt, path: path, reason: "image \(head.id) does not match its checksum")
    }
    do throws(RestoreError) {
      try target.catalog.finishRestoring(revision: head.revision, at: Instant(nanoseconds: head.at))
    } catch {
      throw StorageError(error, path: path)
    }
  }

  /// Replays the batches after the image. Returns the last row of the journal.
  private mutating func replayJournal() throws(StorageError) -> Int64 {
    var journal = try JournalReader(database, after: image.journal, version: version, unchecked: unchecked)
    var hasSkipped = false
    while let (stored, limits) = try journal.next() {
      var batch = stored
      if batch.sequence == skipped {
        hasSkipped = true
        continue
      }
      try useLimits(ofRow: limits)
      progress.row = batch.sequence
      target.didRecover(progress)
      if hasSkipped { batch = stored.onAnyRevision }
      do throws(ReplayRefusal) {
        try target.replay(batch)
      } catch {
        throw StorageError(
          .doesNotFit, path: path,
          reason: "cannot execute the batch that ends with row \(batch.sequence) of the journal: \(error.reason)")
      }
      progress.batches += 1
      progress.batchBytes += batch.requests.count
      progress.newestMoment = max(progress.newestMoment, batch.at)
      if batch.sequence <= unchecked || version < 2 { usedUnchecked = true }
    }
    assert(skipped == nil || hasSkipped, "the batch was found when the file was opened")
    return journal.last
  }

  /// Sets the target's limits to those of a row of `limits`.
  private mutating func useLimits(ofRow row: Int64) throws(StorageError) {
    if row == limitsRow { return }
    target.use(try limits.limits(of: row))
    limitsRow = row
  }
}

extension Database {
  /// Compiles a SELECT statement and binds its parameters.
  func reading(_ sql: String, _ values: Int64...) throws(StorageError) -> Statement {
    try StorageError.naming(path) { () throws(SQLiteError) in
      let statement = try prepare(sql, isKept: false)
      for (place, value) in values.enumerated() { try statement.bind(value, at: Int32(place + 1)) }
      return statement
    }
  }
}

extension Statement {
  /// Advances to the next row of the file at `path`. Returns false if there is none.
  func next(_ path: String) throws(StorageError) -> Bool {
    try StorageError.naming(path) { () throws(SQLiteError) in try step() }
  }
}
