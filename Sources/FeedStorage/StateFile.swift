import FeedJSON
import FeedSQLite
import FeedSystem

/// Whether the stored history continues or a new epoch begins.
public enum StateBeginning: Equatable, Sendable {
  /// There was no stored history.
  case new
  /// All acknowledged changes are stored.
  case continued
  /// The last changes before a power failure may be missing: a new epoch begins.
  case cut
  /// The file is a restored backup: a new epoch begins.
  case backup
  /// A batch of the log is skipped, named by its number: a new epoch begins.
  case skipped(Int64)
  /// The log does not verify from some place on, and the rest of it is skipped: a new epoch begins.
  case damaged
}

/// The file of a state directory that holds the image.
public enum StateFile {
  /// The name of the file.
  public static let name = "feedd.sqlite"
  /// The name under which a new image is written.
  static let freshName = "feedd.sqlite.new"
  /// The maximum bytes of the path of a directory in which an image can be written, absolute and without symbolic links.
  public static var maxDirectoryBytes: Int { Database.maxPathBytes - freshName.utf8.count - 1 }

  public static func path(in directory: String) -> String { "\(directory)/\(name)" }

  /// Opens the file, and recognises what it is. Writes nothing.
  /// - Returns: nil if there is no file.
  static func open(_ path: String, vfs: String? = nil) throws(StorageError) -> (Database, version: Int64)? {
    guard let size = FileSize.of(path) else { return nil }
    // An immutable file is read without its log, which belongs to an older schema.
    guard size > 0 else { return nil }
    let database = try StorageError.naming(path) { () throws(SQLiteError) in
      try Database(path: path, access: .immutable, vfs: vfs)
    }
    return (database, try recognise(database))
  }

  /// Refuses a file with several names. Another daemon could use it by another name: the lock of a daemon is that of its
  /// directory.
  /// - Parameter what: the file, for the error.
  static func refuseLinked(_ path: String, _ what: String) throws(StorageError) {
    if FileIdentity(at: path)?.isSymbolicLink == true {
      throw StorageError(.redirected, path: path, reason: "\(what) is a symbolic link")
    }
    guard let count = FileNames.count(of: path), count > 1 else { return }
    throw StorageError(.linked, path: path, reason: "\(what) has \(count) names")
  }

  /// The schema version of the file; 0 if it is empty.
  static func recognise(_ database: Database) throws(StorageError) -> Int64 {
    let path = database.path
    let (application, schema, tables) = try StorageError.naming(path) { () throws(SQLiteError) in
      // Verifies pages when they are read, and does not let the file's own schema call functions.
      try database.execute("PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF")
      return (
        try database.integer("PRAGMA application_id") ?? 0, try database.integer("PRAGMA user_version") ?? 0,
        try database.integer("SELECT count(*) FROM sqlite_schema") ?? 0
      )
    }
    if application == 0 && schema == 0 && tables == 0 { return 0 }
    guard application == Schema.applicationID else {
      throw StorageError(.foreign, path: path, reason: "the database does not belong to feedd")
    }
    guard schema <= Schema.version else {
      throw StorageError(
        .newerVersion, path: path,
        reason: "it was written by a newer feedd (schema \(schema); this one knows \(Schema.version))")
    }
    guard schema >= 1, tables > 0 else {
      throw StorageError(.corrupt, path: path, reason: "the database has schema \(schema) and \(tables) tables")
    }
    let (triggers, checksums, logs) = try StorageError.naming(path) { () throws(SQLiteError) in
      (
        try database.integer("SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'") ?? 0,
        try database.integer("SELECT count(*) FROM pragma_table_info('image') WHERE name = 'checksum'") ?? 0,
        try database.integer("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'log'") ?? 0
      )
    }
    // They could change rows that others write.
    guard triggers == 0 else {
      throw StorageError(.corrupt, path: path, reason: "the database has \(triggers) triggers")
    }
    guard (checksums > 0) == (schema >= 2), (logs > 0) == (schema > Schema.lastWithJournal) else {
      throw StorageError(.corrupt, path: path, reason: "the database has schema \(schema), but the tables of another")
    }
    return schema
  }
}
