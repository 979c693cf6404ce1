import FeedSQLite
import FeedSystem

/// The database file of a state directory: opened, recognised, brought to the present schema.
public enum StateFile {
  /// Its name in the state directory.
  public static let name = "feedd.sqlite"

  /// Opens the file to write it, and makes it if there is none. A file that is not the program's own, or newer than it,
  /// stays as it is.
  static func openToWrite(
    _ path: String, _ mark: StateMark?, boot: String, vfs: String?
  ) throws(StorageError) -> Database {
    try refuseEmptied(path, mark, boot: boot)
    let database = try StorageError.naming(path) { () throws(SQLiteError) in
      try Database(path: path, access: .create, busyTimeout: Checkpoints.busyTimeout, vfs: vfs)
    }
    database.keepLogWhenClosing()
    let version = try recognise(database)
    if version == 0 { try refuseEmptied(path, "without content", mark, boot: boot) }
    try StorageError.naming(path) { () throws(SQLiteError) in
      try prepare(database)
      if version < Schema.version { try migrate(database, from: version) }
    }
    return database
  }

  /// Opens the file to read it; it may be in use.
  static func openToRead(_ path: String) throws(StorageError) -> Database {
    let (mark, boot) = (StateMarkFile.read(of: path), BootIdentity.current)
    try refuseEmptied(path, mark, boot: boot)
    guard FileSize.of(path) != nil else {
      throw StorageError(.absent, path: path, reason: "there is no state here")
    }
    let database = try StorageError.naming(path) { () throws(SQLiteError) in
      try Database(path: path, access: .readOnly, busyTimeout: 2000)
    }
    guard try recognise(database) > 0 else {
      try refuseEmptied(path, "without content", mark, boot: boot)
      throw StorageError(.absent, path: path, reason: "the database holds nothing")
    }
    return database
  }

  /// Refuses a database file without content beside a log or a mark that shows there was some: SQLite would begin anew and
  /// delete the log.
  private static func refuseEmptied(_ path: String, _ mark: StateMark?, boot: String) throws(StorageError) {
    guard FileSize.of(path) ?? 0 == 0 else { return }
    let what = FileSize.of(path) == nil ? "not there" : "empty"
    try refuseEmptied(path, what, mark, boot: boot)
    if FileSize.of(path + "-wal") ?? 0 > 0 {
      throw StorageError(.lost, path: path, reason: "the database is \(what), but its log \(path)-wal is not")
    }
  }

  /// Refuses a database that has nothing although a mark shows that it had.
  static func refuseEmptied(
    _ path: String, _ what: String, _ mark: StateMark?, boot: String
  ) throws(StorageError) {
    guard let mark, case .lost(let count) = StateMark.verdict(mark, epoch: mark.epoch, sequence: 0, boot: boot)
    else { return }
    throw StorageError(.lost, path: path, reason: "the database is \(what), but it had \(count) rows of journal")
  }

  /// The schema of the file; 0 when it is new.
  private static func recognise(_ database: Database) throws(StorageError) -> Int64 {
    let path = database.path
    let (application, schema, tables) = try StorageError.naming(path) { () throws(SQLiteError) in
      (
        try database.integer("PRAGMA application_id") ?? 0, try database.integer("PRAGMA user_version") ?? 0,
        try database.integer("SELECT count(*) FROM sqlite_schema") ?? 0
      )
    }
    if application == 0 && schema == 0 && tables == 0 { return 0 }
    guard application == Schema.applicationID else {
      throw StorageError(.foreign, path: path, reason: "the database is not one of feedd")
    }
    guard schema <= Schema.version else {
      throw StorageError(
        .newerVersion, path: path,
        reason: "it was written by a newer feedd (schema \(schema); this one knows \(Schema.version))")
    }
    return schema
  }

  /// Settings of the connection, and of the file while it is new.
  private static func prepare(_ database: Database) throws(SQLiteError) {
    try database.execute("PRAGMA page_size = \(Schema.pageSize)")
    _ = try database.text("PRAGMA journal_mode = WAL")
    // Deleted content need not be wiped: that would write every freed page once more.
    _ = try database.integer("PRAGMA secure_delete = OFF")
    try database.execute("PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY")
    database.disableAutomaticCheckpoints()
  }

  /// Brings an older schema to the present one, as one transaction.
  private static func migrate(_ database: Database, from version: Int64) throws(SQLiteError) {
    try database.execute("BEGIN IMMEDIATE")
    do throws(SQLiteError) {
      if version < 1 { try database.execute(Schema.tables + Schema.views) }
      try database.execute(
        "PRAGMA application_id = \(Schema.applicationID); PRAGMA user_version = \(Schema.version); COMMIT")
    } catch {
      database.rollBack()
      throw error
    }
    // From now on a file without tables is a damaged one.
    _ = try database.checkpoint(.truncate)
  }
}
