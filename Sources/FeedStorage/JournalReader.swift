import FeedJSON
import FeedModel
import FeedSQLite

/// Reads batches from the rows of the journal, and verifies each row.
struct JournalReader: ~Copyable {
  private let rows: Statement
  private let path: String
  /// Rows up to this one may be without a checksum.
  private let unchecked: Int64
  private var limits: StoredLimits
  /// The last row that was read.
  private(set) var last: Int64
  /// The bytes of a batch that has several rows.
  private var whole = ByteBuffer()

  /// - Parameters:
  ///   - last: the row before the first row to read.
  ///   - version: the version of the file's schema.
  ///   - unchecked: the last row that may be without a checksum.
  init(
    _ database: Database, after last: Int64, version: Int64, unchecked: Int64
  ) throws(StorageError) {
    let checksum = version >= 2 ? "checksum" : "NULL"
    path = database.path
    rows = try StorageError.naming(path) { () throws(SQLiteError) in
      let rows = try database.prepare(
        "SELECT seq, more, revision, at, limits, requests, \(checksum) FROM journal WHERE seq > ? ORDER BY seq",
        isKept: false)
      try rows.bind(last, at: 1)
      return rows
    }
    self.last = last
    self.unchecked = version >= 2 ? unchecked : .max
    limits = StoredLimits(database)
  }

  /// Returns the next batch and the row of its limits; nil at the end. The batch is valid until the next call.
  mutating func next() throws(StorageError) -> (batch: StoredBatch, limits: Int64)? {
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
    let isThere = try StorageError.naming(path) { () throws(SQLiteError) in try rows.step() }
    guard isThere else { return false }
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

  private func batch(_ requests: UnsafeRawBufferPointer) -> StoredBatch {
    StoredBatch(sequence: last, revision: rows.unsigned(2), at: rows.unsigned(3), requests: requests)
  }
}

/// Reads rows of the table `limits`. Caches the last one.
struct StoredLimits {
  private let database: Database
  private var row: Int64 = 0
  private var last: (json: String, checksum: Int64) = ("", 0)

  init(_ database: Database) {
    self.database = database
  }

  /// The text of a row and its checksum.
  mutating func text(of row: Int64) throws(StorageError) -> (json: String, checksum: Int64) {
    if row == self.row && row != 0 { return last }
    let found = try StorageError.naming(database.path) { () throws(SQLiteError) in
      let read = try database.prepare("SELECT json FROM limits WHERE id = ?", isKept: false)
      try read.bind(row, at: 1)
      return try read.step() ? read.text(0) : nil
    }
    guard let found else {
      throw StorageError(.corrupt, path: database.path, reason: "row \(row) of the table limits is missing")
    }
    self.row = row
    last = (found, Checksum.of(found))
    return last
  }

  /// The limits of a row.
  mutating func limits(of row: Int64) throws(StorageError) -> Limits {
    let json = try text(of: row).json
    guard let limits = Limits(storedText: json) else {
      throw StorageError(
        .corrupt, path: database.path, reason: "cannot parse row \(row) of the table limits: \(json.prefix(200))")
    }
    return limits
  }
}

extension Limits {
  /// The limits as JSON, as a row of the table `limits` stores them.
  var storedText: String {
    var text = ByteBuffer()
    text.append(UInt8(ascii: "{"))
    appendMembers(to: &text)
    text.append(UInt8(ascii: "}"))
    return String(decoding: text.bytes, as: UTF8.self)
  }

  /// Parses the text that `storedText` returns; nil if it is invalid.
  ///
  /// A journal written before one of `Limits.added` existed accepted requests without it, so they are replayed without it.
  init?(storedText: String) {
    var limits = Limits()
    for limit in Limits.added { limits[keyPath: limit] = .max }
    var scanner = JSONScanner()
    var text = storedText
    let isSound = text.withUTF8 { bytes in
      guard let object = try? scanner.scan(UnsafeRawBufferPointer(bytes)), object.kind == .object else { return false }
      return (try? limits.set(membersOf: object)) != nil
    }
    guard isSound else { return nil }
    self = limits
  }
}
