import FeedSQLite
import FeedSystem

/// Writes an image into a new file, which replaces the one before when it is complete and synced.
///
/// Until then nothing else depends on the file, so it is written without a journal and without syncs. A start ignores it.
final class ImageFile {
  private let directory: String
  private let files: any LogDirectory
  private let database: Database
  private var writer: ImageWriter

  /// Creates the file.
  /// - Parameters:
  ///   - head: the row of the image; `limits` is set here.
  ///   - limits: the limits in use, as JSON.
  ///   - note: what a log elsewhere adds to the image; nil for a log beside it.
  init(
    _ head: ImageHead, _ facts: StateFacts, limits: String, note: String?, in directory: String,
    _ files: any LogDirectory,
    vfs: String?
  ) throws(StorageError) {
    self.directory = directory
    self.files = files
    let path = "\(directory)/\(StateFile.freshName)"
    do throws(SystemError) {
      try files.remove(StateFile.freshName)
      // Only this user may read it.
      _ = try RecordFile(path)
    } catch {
      throw StorageError(error, path: path)
    }
    do throws(SQLiteError) {
      let database = try Database(path: path, access: .create, vfs: vfs)
      try Self.makeTables(database, facts)
      if let note { try ImageNote.write(note, to: database) }
      try database.prepare("INSERT INTO limits (id, json) VALUES (1, ?)", isKept: false).run(limits)
      var head = head
      head.limits = 1
      writer = try ImageWriter(head, limits: Checksum.of(limits), in: database)
      self.database = database
    } catch {
      throw StorageError(error, path: path)
    }
  }

  /// Makes the tables of an empty file, and begins a transaction that is never rolled back.
  static func makeTables(_ database: Database, _ facts: StateFacts) throws(SQLiteError) {
    try database.execute("PRAGMA page_size = \(Schema.pageSize)")
    _ = try database.text("PRAGMA locking_mode = EXCLUSIVE")
    _ = try database.text("PRAGMA journal_mode = OFF")
    try database.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -4096; PRAGMA temp_store = MEMORY; BEGIN")
    try database.execute(Schema.tables + Schema.views)
    try database.execute("PRAGMA application_id = \(Schema.applicationID); PRAGMA user_version = \(Schema.version)")
    try facts.write(to: database)
  }

  /// Writes a part. Returns the size of the image after its last part.
  func write(_ part: ImagePart) throws(StorageError) -> Int? {
    do throws(SQLiteError) {
      try writer.write(part)
      if !part.isLast { return nil }
      try database.execute("COMMIT")
      return writer.bytes
    } catch {
      throw StorageError(error, path: database.path)
    }
  }

  /// Syncs the complete file and gives it the name of the image.
  func finish() throws(StorageError) {
    let (files, path) = (files, database.path)
    guard database.syncFile() else {
      throw StorageError(.inputOutput, path: path, reason: "the image cannot be synced")
    }
    do throws(SystemError) {
      try files.rename(StateFile.freshName, to: StateFile.name)
      try files.sync()
    } catch {
      throw StorageError(error, path: path)
    }
  }

  /// Removes a file that was not completed.
  static func remove(_ files: any LogDirectory) { try? files.remove(StateFile.freshName) }
}

/// What a log that is elsewhere adds to an image: a text with its checksum, in a table that other images do not have.
enum ImageNote {
  static func write(_ note: String, to database: Database) throws(SQLiteError) {
    try database.execute("CREATE TABLE note (text TEXT NOT NULL, checksum INTEGER NOT NULL)")
    try database.prepare("INSERT INTO note VALUES (?, ?)", isKept: false).run(note, Checksum.of(note))
  }

  /// Whether an image has a note.
  static func exists(in database: Database) throws(SQLiteError) -> Bool {
    try database.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'note'") == 1
  }

  /// Removes the note from a copy of an image.
  static func remove(from database: Database) throws(SQLiteError) { try database.execute("DROP TABLE IF EXISTS note") }

  /// Returns the note of an image.
  static func read(_ database: Database) throws(StorageError) -> String {
    let path = database.path
    let (text, checksum) = try StorageError.naming(path) { () throws(SQLiteError) in
      guard try exists(in: database) else { return ("", Int64(-1)) }
      return (try database.text("SELECT text FROM note") ?? "", try database.integer("SELECT checksum FROM note") ?? -1)
    }
    guard Checksum.of(text) == checksum else {
      throw StorageError(.corrupt, path: path, reason: "the note of the image does not match its checksum")
    }
    return text
  }
}
