import FeedJSON
import FeedModel
import FeedSQLite
import FeedSystem

/// The journal.
extension Store {
  /// What a row costs besides its requests, for the question when an image is worth it.
  private static let rowOverhead = 64

  /// Stores a batch of requests as durably as chosen. When this returns, the batch may be executed; when it throws, it must
  /// not, and it will not appear after a restart.
  /// - Parameters:
  ///   - revision: the daemon's revision before the batch.
  ///   - at: the moment at which it is executed.
  public func append(revision: UInt64, at moment: UInt64, requests: UnsafeRawBufferPointer) throws(StorageError) {
    if let problem = place.problem { throw StorageError(.vanished, path: path, reason: problem) }
    try StorageError.naming(path) { () throws(SQLiteError) in
      if mayHoldFailedBatch { try overwriteFailedBatch() }
      let head = BatchHead(revision: revision, moment: moment, limits: limitsRow)
      do throws(SQLiteError) {
        sequence = try journal.append(after: sequence, head, requests)
      } catch {
        giveUpBatch()
        guard error.isFullDisk, checkpoints.makeRoom() else { throw error }
        mayHoldFailedBatch = false
        do throws(SQLiteError) {
          sequence = try journal.append(after: sequence, head, requests)
        } catch {
          giveUpBatch()
          throw error
        }
      }
    }
    appendedAt = MonotonicClock.now
    mark.advance(to: sequence)
    newestMoment = max(newestMoment, moment)
    journalBytes += requests.count + Self.rowOverhead
    checkpoints.didCommit()
  }

  /// A commit whose bytes were written but could not be synced lies whole in the log, where a restart would find it. It must
  /// not be found, because its requests are refused: something else is written over it.
  private func giveUpBatch() {
    database.rollBack()
    mayHoldFailedBatch = true
    try? overwriteFailedBatch()
  }

  private func overwriteFailedBatch() throws(SQLiteError) {
    // The sync is what failed, perhaps; without it the bytes are in the place of the others all the same.
    try database.execute("PRAGMA synchronous = OFF")
    defer { try? applyDurability() }
    try database.execute("UPDATE meta SET value = value + 1 WHERE key = 'failures'")
    mayHoldFailedBatch = false
  }

  /// Batches from now on are executed under these limits.
  public func use(_ limits: Limits) throws(StorageError) {
    var text = ByteBuffer()
    text.append(UInt8(ascii: "{"))
    limits.appendMembers(to: &text)
    text.append(UInt8(ascii: "}"))
    let json = String(decoding: text.bytes, as: UTF8.self)
    try StorageError.naming(path) { () throws(SQLiteError) in
      let insert = try database.prepare("INSERT OR IGNORE INTO limits (json) VALUES (?)", isKept: false)
      try insert.bind(json, at: 1)
      try insert.run()
      let find = try database.prepare("SELECT id FROM limits WHERE json = ?", isKept: false)
      try find.bind(json, at: 1)
      if try find.step() { limitsRow = find.integer(0) }
    }
  }
}
