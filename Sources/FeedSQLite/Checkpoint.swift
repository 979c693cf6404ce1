import CSQLite

/// The write-ahead log.
extension Database {
  /// The progress of a checkpoint, in pages of the log.
  public struct CheckpointProgress: Equatable, Sendable {
    /// The pages in the log; -1 if there is no log.
    public let pages: Int
    /// The pages of the log that are in the database file.
    public let moved: Int
  }

  /// Whether a checkpoint waits for other connections.
  public enum CheckpointMode: Sendable {
    /// Moves as many pages as possible without waiting.
    case passive
    /// Waits for readers and writers, and truncates the log.
    case truncate
  }

  /// Moves pages of the log into the database file (a checkpoint).
  public func checkpoint(_ mode: CheckpointMode) throws(SQLiteError) -> CheckpointProgress {
    var pages: Int32 = 0
    var moved: Int32 = 0
    let number = mode == .passive ? SQLITE_CHECKPOINT_PASSIVE : SQLITE_CHECKPOINT_TRUNCATE
    let result = sqlite3_wal_checkpoint_v2(handle, nil, number, &pages, &moved)
    guard result == SQLITE_OK else { throw SQLiteError(handle, result: result, sql: "checkpoint") }
    return CheckpointProgress(pages: Int(pages), moved: Int(moved))
  }

  /// Syncs the database file. A checkpoint that moved only part of the log does not. Returns false on failure.
  @discardableResult
  public func syncFile() -> Bool {
    var file: UnsafeMutablePointer<sqlite3_file>?
    let result = withUnsafeMutablePointer(to: &file) { place in
      sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, place)
    }
    guard result == SQLITE_OK, let file, let sync = file.pointee.pMethods?.pointee.xSync else { return false }
    return sync(file, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY) == SQLITE_OK
  }

  /// Keeps the log when this connection, the last one, closes.
  public func keepLogWhenClosing() {
    csqlite_keep_log_when_closing(handle)
  }

  /// After each commit of this connection, writes the number of pages in the log to `pages`, which must stay valid until
  /// ``endReportingLog()``. Replaces automatic checkpoints.
  public func reportLog(to pages: UnsafeMutablePointer<Int32>) {
    sqlite3_wal_hook(
      handle,
      { context, _, _, count in
        context?.assumingMemoryBound(to: Int32.self).pointee = count
        return SQLITE_OK
      }, pages)
  }

  /// Reverts ``reportLog(to:)``.
  public func endReportingLog() {
    sqlite3_wal_hook(handle, nil, nil)
  }
}
