import FeedSQLite

/// The failures that a stored commit survives.
public enum Durability: Sendable {
  /// The end of the process, for any reason: the kernel has the bytes.
  case process
  /// A failure of the machine: the disk has the bytes.
  case disk

  /// The statement that sets whether commits are synced.
  fileprivate var pragma: String { self == .disk ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL" }
}

/// Appends batches to the journal, in rows that fill one page each.
///
/// A row longer than a page needs a chain of overflow pages. For each of them SQLite searches its list of free pages,
/// which with thousands of free pages costs as much as the write. A row that fits takes the next page without a search.
///
/// Invariant: `sequence` is the last row in the file, or the last row that an image covers.
struct Journal: ~Copyable {
  /// The maximum bytes of requests in a row, so that the row fits in a page with its headers and six numbers.
  static let bytesOfRow = Schema.pageSize - 108

  /// The last row.
  private(set) var sequence: Int64
  private let database: Database
  private let durability: Durability
  private let insert: Statement
  private let begin: Statement
  private let commit: Statement
  /// The row of the limits under which batches are executed, and the checksum of its text.
  private var limits: (row: Int64, checksum: Int64) = (0, 0)
  /// Whether the WAL may still contain a batch that failed to be stored.
  private(set) var mayHoldFailedBatch = false

  /// Opens the journal of a database for appending.
  static func open(_ database: Database, _ durability: Durability) throws(StorageError) -> Journal {
    do throws(SQLiteError) {
      return try Journal(database, after: try lastRow(in: database), durability: durability)
    } catch {
      throw StorageError(error, path: database.path)
    }
  }

  private init(_ database: Database, after sequence: Int64, durability: Durability) throws(SQLiteError) {
    let insert = try database.prepare(
      "INSERT INTO journal (seq, more, revision, at, limits, requests, checksum) VALUES (?, ?, ?, ?, ?, ?, ?)")
    let begin = try database.prepare("BEGIN IMMEDIATE")
    let commit = try database.prepare("COMMIT")
    try database.execute(durability.pragma)
    (self.insert, self.begin, self.commit) = (insert, begin, commit)
    (self.database, self.durability, self.sequence) = (database, durability, sequence)
  }

  /// The row of the limits in use; 0 before the first.
  var limitsRow: Int64 { limits.row }
  /// The checksum of the limits in use.
  var limitsChecksum: Int64 { limits.checksum }

  /// Stores a batch in the rows after `sequence`, atomically.
  ///
  /// After an error the WAL may contain the whole batch, and a start would find it: a commit may be written but not
  /// synced. The batch must be overwritten before its requests are refused; see `overwriteFailedBatch`.
  /// - Parameters:
  ///   - revision: the daemon's revision before the batch.
  ///   - moment: the time at which it is executed, in nanoseconds.
  mutating func append(
    revision: UInt64, at moment: UInt64, requests: UnsafeRawBufferPointer
  ) throws(SQLiteError) {
    assert(limits.row != 0, "limits come before batches")
    if mayHoldFailedBatch { try overwriteFailedBatch() }
    do throws(SQLiteError) {
      sequence = try store(revision, moment, requests)
    } catch {
      database.rollBack()
      mayHoldFailedBatch = true
      throw error
    }
  }

  private mutating func store(
    _ revision: UInt64, _ moment: UInt64, _ requests: UnsafeRawBufferPointer
  ) throws(SQLiteError) -> Int64 {
    try insert.bind(revision, at: 3)
    try insert.bind(moment, at: 4)
    try insert.bind(limits.row, at: 5)
    let isAlone = requests.count <= Self.bytesOfRow
    if !isAlone { try begin.run() }
    var row = sequence + 1
    var more = Int64(isAlone ? 0 : (requests.count - 1) / Self.bytesOfRow)
    var written = 0
    while true {
      let piece = UnsafeRawBufferPointer(
        rebasing: requests[written..<min(written + Self.bytesOfRow, requests.count)])
      let entry = JournalRow(row: row, more: more, revision: revision, moment: moment, limits: limits.row)
      try insert.bind(row, at: 1)
      try insert.bind(more, at: 2)
      try insert.bind(lentBlob: piece, at: 6)
      try insert.bind(entry.checksum(piece, limits: limits.checksum), at: 7)
      try insert.run()
      written += piece.count
      if more == 0 { break }
      row += 1
      more -= 1
    }
    if !isAlone { try commit.run() }
    return row
  }

  /// Overwrites a batch that failed to be stored, so that no start finds it.
  mutating func overwriteFailedBatch() throws(SQLiteError) {
    // Without a sync, because the sync may be what failed. The write replaces the bytes of the batch anyway.
    try database.execute("PRAGMA synchronous = OFF")
    defer { try? applyDurability() }
    try database.execute("UPDATE meta SET value = value + 1 WHERE key = 'failures'")
    mayHoldFailedBatch = false
  }

  /// Commits a page with its former content, without a sync.
  func commitNothing() throws(SQLiteError) {
    try withoutSync { () throws(SQLiteError) in
      try database.execute("PRAGMA user_version = \(Schema.version)")
    }
  }

  /// Records that the WAL is empty and contains no failed batch.
  mutating func logWasEmptied() { mayHoldFailedBatch = false }

  /// Stores `json` as the limits of all later batches.
  mutating func use(limits json: String) throws(SQLiteError) {
    let insert = try database.prepare("INSERT OR IGNORE INTO limits (json) VALUES (?)", isKept: false)
    try insert.bind(json, at: 1)
    try insert.run()
    let find = try database.prepare("SELECT id FROM limits WHERE json = ?", isKept: false)
    try find.bind(json, at: 1)
    if try find.step() { limits = (find.integer(0), Checksum.of(json)) }
  }

  /// Sets whether commits are synced.
  func applyDurability() throws(SQLiteError) {
    try database.execute(durability.pragma)
  }

  /// Executes a transaction that need not be synced, because lost work is only repeated.
  func withoutSync(_ body: () throws(SQLiteError) -> Void) throws(SQLiteError) {
    if durability == .disk { try database.execute("PRAGMA synchronous = NORMAL") }
    defer { if durability == .disk { try? applyDurability() } }
    try database.transaction(body)
  }

  /// The last row of the journal, including rows that an image covers.
  static func lastRow(in database: Database) throws(SQLiteError) -> Int64 {
    max(
      try database.integer("SELECT max(seq) FROM journal") ?? 0,
      try database.integer("SELECT max(journal) FROM image") ?? 0)
  }
}

/// The columns of a journal row besides its requests.
struct JournalRow {
  /// Its number.
  let row: Int64
  /// The number of further rows of the same batch.
  let more: Int64
  /// The daemon's revision before the batch, which the previous batch led to.
  let revision: UInt64
  /// The time at which the batch is executed, in nanoseconds.
  let moment: UInt64
  /// The row of the limits under which it is executed.
  let limits: Int64

  /// - Parameter text: the checksum of the limits' text.
  func checksum(_ requests: UnsafeRawBufferPointer, limits text: Int64) -> Int64 {
    var checksum = Checksum()
    checksum.add(row)
    checksum.add(more)
    checksum.add(revision)
    checksum.add(moment)
    checksum.add(limits)
    checksum.add(text)
    checksum.add(requests)
    return checksum.value
  }
}
