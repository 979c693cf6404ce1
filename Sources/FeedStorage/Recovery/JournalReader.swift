import FeedJSON
import FeedSQLite

/// Reads batches back from the rows of the journal.
struct JournalReader: ~Copyable {
  private let rows: Statement
  private let path: String
  /// The last row that was read.
  private var last: Int64
  /// The bytes of a batch of several rows.
  private var whole = ByteBuffer()

  /// - Parameter rows: what `query` selects after `last`.
  init(_ rows: Statement, after last: Int64, path: String) {
    self.rows = rows
    self.last = last
    self.path = path
  }

  /// The rows after one, in order.
  static let query = "SELECT seq, more, revision, at, limits, requests FROM journal WHERE seq > ? ORDER BY seq"

  /// The next batch and the row of its limits; nil when there is none. The batch is valid until the next call.
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
        .doesNotFit, path: path, reason: "the journal jumps from row \(last) to row \(rows.integer(0))")
    }
    last += 1
    return true
  }

  private func batch(_ requests: UnsafeRawBufferPointer) -> StoredBatch {
    StoredBatch(sequence: last, revision: rows.unsigned(2), at: rows.unsigned(3), requests: requests)
  }
}
