import FeedSQLite

/// What a commit survives once it is stored.
public enum Durability: Sendable {
  /// The end of the process, however it comes: the system has the bytes.
  case process
  /// The end of the machine: the disk has them.
  case disk

  /// Sets whether commits are synced.
  fileprivate var pragma: String { self == .disk ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL" }
}

/// The journal's end: appends batches in rows that fill a page each.
///
/// A row longer than a page lies in a chain of pages, and for each of them SQLite searches its list of free pages, which at
/// thousands of free pages costs as much as the write. A row that fits takes the next page as it comes.
///
/// Invariant: `sequence` is the last row in the file, or the last that an image covers.
struct Journal: ~Copyable {
  /// Bytes of requests that fit in a page beside the rest of their row: headers and six numbers.
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
  /// Whether the log may still hold a batch whose storing failed.
  private(set) var mayHoldFailedBatch = false

  /// Opens the end of a database's journal.
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

  /// Stores a batch in the rows after `sequence`, all or none of them.
  ///
  /// After an error the batch may lie whole in the log, where a start would find it: a commit that was written but not synced
  /// does. It must be overwritten before its requests are refused: see `overwriteFailedBatch`.
  /// - Parameters:
  ///   - revision: the daemon's revision before the batch.
  ///   - moment: at which it is executed, in nanoseconds.
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

  /// Writes something else over a batch whose storing failed, so that no start finds it.
  mutating func overwriteFailedBatch() throws(SQLiteError) {
    // Without a sync, which may be what failed. The bytes take the place of the others all the same.
    try database.execute("PRAGMA synchronous = OFF")
    defer { try? applyDurability() }
    try database.execute("UPDATE meta SET value = value + 1 WHERE key = 'failures'")
    mayHoldFailedBatch = false
  }

  /// The log is empty, so that it does not hold a failed batch.
  mutating func logWasEmptied() { mayHoldFailedBatch = false }

  /// Stores `json` as the limits of all batches from now on.
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

  /// Makes one transaction that need not be synced: whatever is lost of it is only done again.
  func withoutSync(_ body: () throws(SQLiteError) -> Void) throws(SQLiteError) {
    if durability == .disk { try database.execute("PRAGMA synchronous = NORMAL") }
    defer { if durability == .disk { try? applyDurability() } }
    try database.transaction(body)
  }

  /// The last row of the journal, including those that an image covers.
  static func lastRow(in database: Database) throws(SQLiteError) -> Int64 {
    max(
      try database.integer("SELECT max(seq) FROM journal") ?? 0,
      try database.integer("SELECT max(journal) FROM image") ?? 0)
  }
}

/// What a row of the journal says besides its requests.
struct JournalRow {
  /// Its number.
  let row: Int64
  /// Rows of the same batch that follow.
  let more: Int64
  /// The daemon's revision before the batch, which is the revision that the batch before it led to.
  let revision: UInt64
  /// The moment at which the batch is executed, in nanoseconds.
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
