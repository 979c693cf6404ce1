import FeedSQLite

/// What a log that is elsewhere adds to an image: a text with its checksum, in a table that other images do not have.
enum ImageNote {
  static func write(_ note: String, to database: Database) throws(SQLiteError) {
    try database.execute("CREATE TABLE note (text TEXT NOT NULL, checksum INTEGER NOT NULL)")
    let insert = try database.prepare("INSERT INTO note VALUES (?, ?)", isKept: false)
    try insert.bind(note, at: 1)
    try insert.bind(Checksum.of(note), at: 2)
    try insert.run()
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
