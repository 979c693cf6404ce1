import FeedSQLite
import FeedSystem

/// A copy of a database file while the daemon may be writing it.
public enum StateBackup {
  /// Copies the state at `path`, as of one moment, into a new file. The copy is marked: a daemon that is given it begins a new
  /// epoch, because watchers may know revisions that it does not.
  ///
  /// Needs to read the state directory; the new file is the caller's.
  /// - Throws: also when `copy` exists already.
  public static func copy(_ path: String, to copy: String) throws(StorageError) {
    guard FileSize.of(copy) == nil else {
      throw StorageError(.exists, path: copy, reason: "there is a file of this name already")
    }
    let source = try StateFile.openToRead(path)
    try StorageError.naming(copy) { () throws(SQLiteError) in
      let copying = try source.prepare("VACUUM INTO ?", isKept: false)
      try copying.bind(copy, at: 1)
      try copying.run()
      let made = try Database(path: copy, access: .readWrite)
      try made.execute("INSERT OR REPLACE INTO meta VALUES ('backup', 1)")
    }
  }
}
