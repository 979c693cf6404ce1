import FeedSQLite
import FeedSystem

/// Why a database cannot be read, in words for the operator.
struct SourceFault: Error, Equatable {
  let reason: String

  init(_ reason: String) {
    self.reason = reason
  }

  init(_ error: SystemError) {
    reason = "\(error)"
  }

  /// - Parameter path: the database.
  init(_ error: SQLiteError, _ path: String) {
    reason =
      switch error.code {
      case SQLiteError.busy: "another program has locked \(path); it is read when the lock is gone"
      case SQLiteError.notADatabase: "\(path) is not an SQLite database, or it is encrypted"
      case SQLiteError.corrupt: "\(path) is damaged (\(error.message)); restore it or repair it with sqlite3's .recover"
      case SQLiteError.cannotOpen, SQLiteError.permission, SQLiteError.readOnly:
        "cannot open \(path) (\(error.message)); the daemon must be able to read it and, for a database in WAL mode, "
          + "the -wal and -shm files beside it"
      default: "\(path): \(error.message)"
      }
  }
}
