import FeedJSON
import FeedModel
import FeedSQLite

/// Reads batches from the table `journal`, the log of schemas 1 and 2, and verifies each row.
struct JournalReader: ~Copyable {
  private let rows: Statement
  private let path: String
  /// Rows up to this one may be without a checksum.
  private let unchecked: Int64
  /// The rules by which all batches were executed.
  let rules: Int
  private var limits: StoredLimits
  /// The last row that was read.
  private(set) var last: Int64
  /// The bytes of a batch that has several rows.
  private var whole = ByteBuffer()

  /// - Parameters:
  ///   - last: the row before the first row to read.
  ///   - version: the version of the file's schema.
  init(
    _ database: Database, after last: Int64, version: Int64, _ facts: StateFacts
  ) throws(StorageError) {
    let checksum = version >= 2 ? "checksum" : "NULL"
    path = database.path
    rows = try database.reading(
      "SELECT seq, more, revision, at, limits, requests, \(checksum) FROM journal WHERE seq > ? ORDER BY seq", last)
    self.last = last
    unchecked = version >= 2 ? facts.unchecked : .max
    rules = Int(clamping: facts.rules)
    limits = StoredLimits(database)
  }

  /// Returns the next batch and the row of its limits; nil at the end. The batch is valid until the next call.
  mutating func next() throws(StorageError) -> (batch: LogBatch, limits: Int64)? {
    guard try nextRow() else { return nil }
    var more = rows.integer(1)
    if more == 0 { return (batch(rows.blobBytes(5)), rows.integer(4)) }
    whole.removeAll(keepingCapacity: true)
    whole.append(rows.blobBytes(5))
    while more > 0 {
      guard try nextRow(), rows.integer(1) == more - 1 else {
        throw StorageError(.doesNotFit, path: path, reason: "the batch with row \(last) of the journal has no end")
      }
      more -= 1
      whole.append(rows.blobBytes(5))
    }
    return (batch(whole.bytes), rows.integer(4))
  }

  private mutating func nextRow() throws(StorageError) -> Bool {
    guard try rows.next(path) else { return false }
    guard rows.integer(0) == last + 1 else {
      throw StorageError(
        .doesNotFit, path: path, reason: "row \(last + 1) of the journal is missing; row \(rows.integer(0)) follows")
    }
    last += 1
    try check()
    return true
  }

  private mutating func check() throws(StorageError) {
    if rows.type(of: 6) == .null && last <= unchecked { return }
    let row = JournalRow(
      row: last, more: rows.integer(1), revision: rows.unsigned(2), moment: rows.unsigned(3), limits: rows.integer(4))
    let computed = row.checksum(rows.blobBytes(5), limits: try limits.text(of: row.limits).checksum)
    guard rows.type(of: 6) == .integer, rows.integer(6) == computed else {
      throw StorageError(.corrupt, path: path, reason: "row \(last) of the journal does not match its checksum")
    }
  }

  private func batch(_ requests: UnsafeRawBufferPointer) -> LogBatch {
    LogBatch(
      number: UInt64(last), at: Instant(nanoseconds: rows.unsigned(3)), revision: rows.unsigned(2), frames: requests)
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

extension JournalReader {
  /// The last row of the journal, including rows that an image covers.
  static func lastRow(in database: Database) throws(SQLiteError) -> Int64 {
    max(
      try database.integer("SELECT max(seq) FROM journal") ?? 0,
      try database.integer("SELECT max(journal) FROM image") ?? 0)
  }
}
