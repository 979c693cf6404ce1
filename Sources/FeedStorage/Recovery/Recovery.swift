import FeedModel
import FeedSQLite

/// Reads the state back: the newest complete image, then the batches after it, executed again.
struct Recovery {
  let database: Database
  let path: String
  let target: any RecoveryTarget
  var progress = RecoveryProgress()
  /// The row of the limits that the target has.
  private var limitsRow: Int64 = 0
  /// The image's number, its last batch and its size.
  private(set) var image: (id: Int64, journal: Int64, bytes: Int) = (0, 0, 0)

  init(_ database: Database, path: String, into target: any RecoveryTarget) {
    self.database = database
    self.path = path
    self.target = target
  }

  mutating func run() throws(StorageError) {
    try readImage()
    try replayJournal()
  }

  private mutating func readImage() throws(StorageError) {
    let find = try prepare(
      "SELECT id, revision, at, journal, limits, bytes FROM image WHERE complete ORDER BY id DESC LIMIT 1")
    guard try next(find) else { return }
    image = (find.integer(0), find.integer(3), Int(clamping: find.integer(5)))
    progress.imageRevision = find.unsigned(1)
    progress.newestMoment = find.unsigned(2)
    try adopt(find.integer(4))
    try readFeeds()
    target.catalog.finishRestoring(
      revision: progress.imageRevision, at: Instant(nanoseconds: progress.newestMoment))
  }

  private mutating func replayJournal() throws(StorageError) {
    let rows = try prepare(JournalReader.query)
    try bind(image.journal, in: rows)
    var journal = JournalReader(rows, after: image.journal, path: path)
    while let (batch, limits) = try journal.next() {
      try adopt(limits)
      do throws(ReplayRefusal) {
        try target.replay(batch)
      } catch {
        throw StorageError(
          .doesNotFit, path: path, reason: "batch \(batch.sequence) of the journal cannot be executed: \(error.reason)")
      }
      progress.batches += 1
      progress.batchBytes += batch.requests.count
      progress.newestMoment = max(progress.newestMoment, batch.at)
      if progress.batches % 64 == 0 { target.didRecover(progress) }
    }
  }

  /// Lets the target go on under the limits of a row of `limits`.
  private mutating func adopt(_ row: Int64) throws(StorageError) {
    if row == limitsRow { return }
    let read = try prepare("SELECT json FROM limits WHERE id = ?")
    try bind(row, in: read)
    guard try next(read) else {
      throw StorageError(.corrupt, path: path, reason: "the limits \(row) are missing")
    }
    let json = read.text(0)
    guard let limits = Limits(storedText: json) else {
      throw StorageError(.corrupt, path: path, reason: "the limits \(row) cannot be read: \(json.prefix(200))")
    }
    target.adopt(limits)
    limitsRow = row
  }
}

extension Recovery {
  func prepare(_ sql: String) throws(StorageError) -> Statement {
    try StorageError.naming(path) { () throws(SQLiteError) in try database.prepare(sql, isKept: false) }
  }

  func next(_ statement: Statement) throws(StorageError) -> Bool {
    try StorageError.naming(path) { () throws(SQLiteError) in try statement.step() }
  }

  func bind(_ values: Int64..., in statement: Statement) throws(StorageError) {
    try StorageError.naming(path) { () throws(SQLiteError) in
      for (place, value) in values.enumerated() { try statement.bind(value, at: Int32(place + 1)) }
    }
  }
}
