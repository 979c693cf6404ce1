import FeedModel
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
    (self.directory, self.files) = (directory, files)
    let path = "\(directory)/\(StateFile.freshName)"
    try StorageError.ofFile(path, try files.remove(StateFile.freshName))
    // Only this user may read it.
    _ = try StorageError.ofFile(path, try RecordFile(path))
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
    try StorageError.naming(database.path) { () throws(SQLiteError) in
      try writer.write(part)
      if !part.isLast { return nil }
      try database.execute("COMMIT")
      return writer.bytes
    }
  }

  /// Syncs the complete file and gives it the name of the image.
  func finish() throws(StorageError) {
    let (files, path) = (files, database.path)
    guard database.syncFile() else {
      throw StorageError(.inputOutput, path: path, reason: "the image cannot be synced")
    }
    try StorageError.ofFile(path, try files.rename(StateFile.freshName, to: StateFile.name))
    try StorageError.ofFile(path, try files.sync())
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

/// Writes the parts of one image into the tables of a new file.
///
/// Invariant: rows are numbered within the current feed from 0, without gaps.
struct ImageWriter: ~Copyable {
  let head: ImageHead
  /// The approximate number of bytes written so far.
  private(set) var bytes = 0
  /// The number of the current `image_feed` row.
  private var feed: Int64
  /// The numbers of rows of the current feed in `element`, `section_rows` and `history`.
  private var counts = Counts()
  private var checksum: Checksum
  private var feedChecksum: FeedChecksum?
  private let statements: ImageStatements

  private struct Counts {
    var elements: Int64 = 0
    var chunks: Int64 = 0
    var history: Int64 = 0
  }

  /// Writes the row of the image itself.
  /// - Parameter limits: the checksum of the limits' text.
  init(_ head: ImageHead, limits: Int64, in database: Database) throws(SQLiteError) {
    try database.prepare("INSERT INTO image (id, revision, at, journal, limits) VALUES (?, ?, ?, ?, ?)", isKept: false)
      .run(head.id, head.revision, head.at, head.journal, head.limits)
    statements = try ImageStatements(database)
    self.head = head
    feed = 0
    checksum = head.checksum(limits: limits)
  }

  mutating func write(_ part: ImagePart) throws(SQLiteError) {
    for item in part.items {
      switch item {
      case .feed(let head): try begin(head)
      case .element(let arrival, let changedAt, let text):
        let text = part.bytes(text)
        feedChecksum?.addElement(arrival: arrival, changedAt: changedAt, text)
        try statements.element.run(Schema.base(of: feed) + counts.elements, arrival, changedAt, Lent.text(text))
        counts.elements += 1
      case .rows(let section, let first, let numbers):
        let numbers = part.bytes(numbers)
        feedChecksum?.addRows(section: Int64(section), first: Int64(first), numbers)
        try statements.rows.run(Schema.base(of: feed) + counts.chunks, section, first, Lent.text(numbers))
        counts.chunks += 1
      case .history(let bin, let records):
        let records = part.bytes(records)
        feedChecksum?.addHistory(bin: Int64(bin), records)
        try statements.history.run(Schema.base(of: feed) + counts.history, bin, Lent.blob(records))
        counts.history += 1
      case .feedEnd(let bases): try end(historyBases: bases)
      }
    }
    bytes += part.byteCount
    if part.isLast {
      assert(feedChecksum == nil, "the last feed of an image has no end")
      checksum.add(Int64(bytes))
      try statements.imageEnd.run(bytes, checksum.value, head.id)
    }
  }

  private mutating func begin(_ head: ImagePart.FeedHead) throws(SQLiteError) {
    assert(feedChecksum == nil, "a feed begins before the last one ended")
    feed += 1
    counts = Counts()
    feedChecksum = FeedChecksum(head)
    try statements.feed.run(
      feed, self.head.id, head.name, head.definition, head.given, head.revision, head.bins, head.selection)
  }

  private mutating func end(historyBases: String?) throws(SQLiteError) {
    guard let value = feedChecksum?.value(historyBases: historyBases) else {
      preconditionFailure("a feed ends that did not begin")
    }
    feedChecksum = nil
    checksum.add(value)
    try statements.feedEnd.run(historyBases, value, feed)
  }
}

private struct ImageStatements {
  let feed: Statement
  let element: Statement
  let rows: Statement
  let history: Statement
  let feedEnd: Statement
  let imageEnd: Statement

  init(_ database: Database) throws(SQLiteError) {
    feed = try database.prepare("INSERT INTO image_feed VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)")
    element = try database.prepare("INSERT INTO element VALUES (?, ?, ?, ?)")
    rows = try database.prepare("INSERT INTO section_rows VALUES (?, ?, ?, ?)")
    history = try database.prepare("INSERT INTO history VALUES (?, ?, ?)")
    feedEnd = try database.prepare("UPDATE image_feed SET history_bases = ?, checksum = ? WHERE id = ?")
    imageEnd = try database.prepare("UPDATE image SET complete = 1, bytes = ?, checksum = ? WHERE id = ?")
  }
}
