import FeedSQLite

/// Writes batches into the journal, in rows that fill a page each.
///
/// A row that is longer than a page lies in a chain of pages. For each of them SQLite looks through its list of free pages for
/// the nearest, which at thousands of free pages costs as much as writing it; a page for the next row of the table is taken
/// as it comes.
struct JournalWriter {
  /// Bytes of requests that fit in a page with the rest of their row: the page's and the row's headers and five numbers.
  static let bytesOfRow = Schema.pageSize - 96

  private let insert: Statement
  private let begin: Statement
  private let commit: Statement

  init(_ database: Database) throws(SQLiteError) {
    insert = try database.prepare(
      "INSERT INTO journal (seq, more, revision, at, limits, requests) VALUES (?, ?, ?, ?, ?, ?)")
    begin = try database.prepare("BEGIN IMMEDIATE")
    commit = try database.prepare("COMMIT")
  }

  /// Stores a batch in the rows after `sequence`, all or none of them, and returns the last row. After an error a transaction
  /// may be open.
  func append(
    after sequence: Int64, _ batch: BatchHead, _ requests: UnsafeRawBufferPointer
  ) throws(SQLiteError) -> Int64 {
    try insert.bind(batch.revision, at: 3)
    try insert.bind(batch.moment, at: 4)
    try insert.bind(batch.limits, at: 5)
    var row = sequence + 1
    if requests.count <= Self.bytesOfRow {
      try write(requests, row, more: 0)
      return row
    }
    try begin.run()
    var written = 0
    var more = (requests.count - 1) / Self.bytesOfRow
    while more >= 0 {
      let end = min(written + Self.bytesOfRow, requests.count)
      try write(UnsafeRawBufferPointer(rebasing: requests[written..<end]), row, more: more)
      written = end
      row += 1
      more -= 1
    }
    try commit.run()
    return row - 1
  }

  private func write(_ requests: UnsafeRawBufferPointer, _ row: Int64, more: Int) throws(SQLiteError) {
    try insert.bind(row, at: 1)
    try insert.bind(more, at: 2)
    try insert.bind(lentBlob: requests, at: 6)
    try insert.run()
  }
}
