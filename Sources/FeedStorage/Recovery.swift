import FeedJSON
import FeedModel
import FeedSQLite
import FeedSystem

/// The target of recovery before the first client connects: the daemon's engine, or one that is created only for a
/// check.
public protocol RecoveryTarget: AnyObject {
  var catalog: Catalog { get }
  /// Sets the limits of the content and the batches that follow.
  func use(_ limits: Limits)
  /// Executes a batch again. Its frames are valid during the call only.
  /// - Parameter rules: those by which it was executed first (``ExecutionRules``).
  func replay(_ batch: LogBatch, rules: Int?) throws
}

public struct RecoveryProgress: Equatable, Sendable {
  /// The revision of the image; 0 without one.
  public var imageRevision: UInt64 = 0
  public var feeds = 0
  public var elements = 0
  public var batches = 0
  /// The number of the current batch; 0 before the first.
  public var row: Int64 = 0
  /// The bytes of the requests in replayed batches.
  public var batchBytes = 0
  /// The latest stored time.
  public var newestMoment: UInt64 = 0

  public init() {}
}

/// Restores the state: reads the newest complete image, then replays the batches after it. Every row and record is
/// verified.
struct Recovery: ~Copyable {
  /// The image that was read; all zeros if there is none.
  struct Image {
    var id: Int64 = 0
    /// The last batch that it covers.
    var journal: Int64 = 0
    var bytes = 0
    /// Its moment, in nanoseconds.
    var at: UInt64 = 0
  }

  private let state: StoredState
  /// The number of the batch that is not executed.
  private let skipped: Int64?
  private let target: any RecoveryTarget
  private let note: (RecoveryProgress) -> Void
  /// The limits that the target uses, as stored.
  private var limitsText = ""
  private var hasSkipped = false
  private(set) var progress = RecoveryProgress()
  private(set) var image = Image()
  /// Where the log ends.
  private(set) var end = LogEnd()

  /// - Parameter note: called before each batch is executed, and repeatedly while an image is read.
  init(
    _ state: StoredState, into target: any RecoveryTarget, _ note: @escaping (RecoveryProgress) -> Void = { _ in }
  ) {
    (self.state, self.target, self.note) = (state, target, note)
    if case .skipped(let batch) = state.beginning { skipped = batch } else { skipped = nil }
  }

  mutating func run() throws(StorageError) {
    var last: UInt64 = 0
    if let database = state.database {
      var limits = StoredLimits(database)
      try readImage(database, &limits)
      last = UInt64(image.journal)
      if let journal = state.journal { last = UInt64(try replay(journal, &limits)) }
    }
    try replayLog(after: last)
    if let skipped, !hasSkipped {
      throw StorageError(
        .noSuchBatch, path: state.directory,
        reason: "there is no batch \(skipped) of the log to execute; the last one is \(end.nextBatch - 1)")
    }
    end.revision = target.catalog.revision
  }

  private mutating func readImage(_ database: Database, _ limits: inout StoredLimits) throws(StorageError) {
    let path = database.path
    guard let (head, bytes, checksum) = try ImageHead.newest(in: database, version: state.schema) else { return }
    image = Image(id: head.id, journal: head.journal, bytes: Int(clamping: bytes), at: head.at)
    progress.imageRevision = head.revision
    progress.newestMoment = head.at
    let (json, checksumOfLimits) = try limits.text(of: head.limits)
    try use(json, path)
    let isChecked = checksum != nil || (state.schema >= 2 && head.journal > state.facts.unchecked)
    let feeds = FeedRecovery(database, target.catalog, isChecked: isChecked, note)
    var sum = head.checksum(limits: checksumOfLimits)
    try feeds.read(image: head.id, into: &sum, &progress)
    sum.add(bytes)
    guard !isChecked || checksum == sum.value else {
      throw StorageError(.corrupt, path: path, reason: "image \(head.id) does not match its checksum")
    }
    do throws(RestoreError) {
      try target.catalog.finishRestoring(revision: head.revision, at: Instant(nanoseconds: head.at))
    } catch {
      throw StorageError(error, path: path)
    }
  }

  /// Replays the rows of a table `journal`. Returns the last row.
  private mutating func replay(
    _ journal: JournalDatabase, _ limits: inout StoredLimits
  ) throws(StorageError) -> Int64 {
    let path = journal.database.path
    var rows = try JournalReader(journal.database, after: image.journal, version: journal.version, journal.facts)
    while let (batch, row) = try rows.next() {
      try use(try limits.text(of: row).json, path)
      try execute(batch, rules: rows.rules, path)
    }
    // An image that is wrongly marked as incomplete would otherwise be ignored.
    let expected = try JournalDatabase.lastRow(in: journal.database)
    guard rows.last >= expected else {
      throw StorageError(
        .corrupt, path: path, reason: "the image that covers the journal up to row \(expected) is not complete")
    }
    return rows.last
  }

  /// Replays the batches of the segments that follow a batch.
  private mutating func replayLog(after last: UInt64) throws(StorageError) {
    var chain = state.chain
    end.nextBatch = last + 1
    var place = 0
    while place < chain.segments.count {
      let segment = chain.segments[place]
      let path = "\(state.directory)/\(segment.name)"
      let next = place + 1 < chain.segments.count ? chain.segments[place + 1].header.firstBatch : nil
      let bytes = try StorageError.ofFile(path, try segment.load())
      var reader = SegmentReader(
        bytes.bytes, segment.header, checksum: segment.checksum, trust: chain.trust(of: segment, boot: state.boot))
      while reader.nextBatch != next, let batch = reader.next() {
        guard batch.header.number >= end.nextBatch else { continue }
        try replay(batch, segment.header, path)
      }
      end.segments.append((segment.header.number, segment.header.firstBatch, segment.header.fileBytes))
      if let problem = chain.problem(after: reader, at: place, wanting: end.nextBatch) {
        guard chain.mayBeCut else { throw problem }
        chain.cut(behind: place)
      }
      if place + 1 == chain.segments.count, reader.nextBatch == end.nextBatch {
        end.last = LogEnd.Last(segment: segment, offset: reader.offset, contentEnd: reader.endOfContent)
      }
      place += 1
    }
    end.leftovers = chain.leftovers
    end.isCut = chain.isCut
    end.highest = chain.isCut ? end.segments.last?.number ?? 0 : max(chain.highest, end.segments.last?.number ?? 0)
    if case .backup = state.beginning { (end.segments, end.last) = ([], nil) }
  }

  private mutating func replay(
    _ batch: SegmentReader.Batch, _ header: SegmentHeader, _ path: String
  ) throws(StorageError) {
    guard ExecutionRules.known.contains(Int(header.rules)) else {
      throw .otherRules(
        "batches from \(grouped(batch.header.number)) on", of: header.software, rules: Int64(header.rules), path: path)
    }
    end.nextBatch = batch.header.number + 1
    if Int64(clamping: batch.header.number) == skipped {
      hasSkipped = true
      return
    }
    try use(header.limits, path)
    let revision = hasSkipped || batch.header.revision == .max ? nil : batch.header.revision
    try execute(
      LogBatch(
        number: batch.header.number, at: Instant(nanoseconds: batch.header.moment), revision: revision,
        frames: batch.requests), rules: Int(header.rules), path)
  }

  private mutating func execute(_ batch: LogBatch, rules: Int, _ path: String) throws(StorageError) {
    progress.row = Int64(clamping: batch.number)
    note(progress)
    do {
      try target.replay(batch, rules: rules)
    } catch {
      throw StorageError(.doesNotFit, path: path, reason: "cannot execute batch \(progress.row) of the log: \(error)")
    }
    progress.batches += 1
    progress.batchBytes += batch.frames.count
    progress.newestMoment = max(progress.newestMoment, batch.at.nanoseconds)
  }

  /// Sets the target's limits to stored ones.
  private mutating func use(_ text: String, _ path: String) throws(StorageError) {
    if text == limitsText { return }
    guard let limits = Limits(storedText: text) else {
      throw StorageError(.corrupt, path: path, reason: "cannot parse the stored limits: \(text.prefix(200))")
    }
    target.use(limits)
    limitsText = text
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
