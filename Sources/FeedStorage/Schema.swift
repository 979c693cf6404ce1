import FeedChange
import FeedSQLite

/// The layout of the database file (Protocol/storage.md).
///
/// Rows of one feed of an image are adjacent: the number of an `element`, `section_rows` or `history` row has the
/// number of its `image_feed` in the upper 32 bits and a counter in the lower 32 bits. So rows are appended to each
/// table, read as one range and deleted in pieces, without an index.
enum Schema {
  /// Stored in `user_version`. A file with a larger value was written by a newer program.
  ///
  /// 1: journal rows and images without checksums. 2: with checksums, and `meta` protected by one.
  static let version: Int64 = 2
  /// The version of the rules by which stored requests are executed. Increment it when a change of the daemon makes a
  /// request that was accepted before lead to another state or revision.
  static let rules: Int64 = 1
  /// Stored in `application_id`: "feed".
  static let applicationID: Int64 = 0x6665_6564
  /// Bytes of a page. A journal row of one request takes one WAL page; hundreds of requests take little more than their
  /// bytes.
  static let pageSize = 8192

  static let tables = """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE limits (id INTEGER PRIMARY KEY, json TEXT NOT NULL UNIQUE);
    CREATE TABLE journal (
      seq INTEGER PRIMARY KEY, more INTEGER NOT NULL, revision INTEGER NOT NULL, at INTEGER NOT NULL,
      limits INTEGER NOT NULL, requests BLOB NOT NULL);
    CREATE TABLE image (
      id INTEGER PRIMARY KEY, revision INTEGER NOT NULL, at INTEGER NOT NULL, journal INTEGER NOT NULL,
      limits INTEGER NOT NULL, bytes INTEGER NOT NULL DEFAULT 0, complete INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE image_feed (
      id INTEGER PRIMARY KEY, image INTEGER NOT NULL, name TEXT NOT NULL, definition TEXT NOT NULL, given TEXT NOT NULL,
      revision INTEGER NOT NULL, bin_revisions TEXT NOT NULL, selection TEXT NOT NULL, history_bases TEXT);
    CREATE TABLE element (
      id INTEGER PRIMARY KEY, arrival INTEGER NOT NULL, changed_at INTEGER NOT NULL, text TEXT NOT NULL);
    CREATE TABLE section_rows (
      id INTEGER PRIMARY KEY, section INTEGER NOT NULL, first INTEGER NOT NULL, numbers TEXT NOT NULL);
    CREATE TABLE history (id INTEGER PRIMARY KEY, bin INTEGER NOT NULL, records BLOB NOT NULL);
    """

  /// The content of the newest complete image, for inspection with `sqlite3`.
  static let views = """
    CREATE VIEW feeds AS
      SELECT image_feed.id, name, definition, image_feed.revision FROM image_feed
      WHERE image = (SELECT max(id) FROM image WHERE complete);
    CREATE VIEW elements AS
      SELECT feeds.name AS feed, text, datetime(changed_at / 1000000000, 'unixepoch') AS changed
      FROM feeds JOIN element ON element.id BETWEEN feeds.id << 32 AND (feeds.id << 32) + 4294967295;
    CREATE VIEW rows AS
      SELECT feeds.name AS feed, section, first + json_each.key AS "row", text
      FROM feeds JOIN section_rows ON section_rows.id BETWEEN feeds.id << 32 AND (feeds.id << 32) + 4294967295
        JOIN json_each(numbers) JOIN element ON element.id = (feeds.id << 32) + json_each.value
      ORDER BY feeds.id, section_rows.id, json_each.key;
    """

  /// Version 2: a CRC-32 for each row of these tables; NULL in rows from version 1.
  static let checksums = """
    ALTER TABLE journal ADD COLUMN checksum INTEGER;
    ALTER TABLE image ADD COLUMN checksum INTEGER;
    ALTER TABLE image_feed ADD COLUMN checksum INTEGER;
    """

  /// The first row number of a feed.
  static func base(of feed: Int64) -> Int64 { feed << 32 }
  /// The last row number of a feed.
  static func last(of feed: Int64) -> Int64 { feed << 32 | 0xffff_ffff }
}

/// A CRC-32 over the values of a row in a fixed order. It detects any changed bit.
struct Checksum {
  private var crc = CRC32()

  /// The checksum as stored.
  var value: Int64 { Int64(crc.value) }

  mutating func add(_ value: Int64) {
    withUnsafeBytes(of: value.littleEndian) { crc.update($0) }
  }

  mutating func add(_ value: UInt64) { add(Int64(bitPattern: value)) }

  /// Adds the length too, so that bytes cannot move from one value to the next.
  mutating func add(_ bytes: UnsafeRawBufferPointer) {
    add(Int64(bytes.count))
    crc.update(bytes)
  }

  mutating func add(_ text: String) {
    var text = text
    text.withUTF8 { add(UnsafeRawBufferPointer($0)) }
  }

  static func of(_ text: String) -> Int64 {
    var checksum = Checksum()
    checksum.add(text)
    return checksum.value
  }
}

/// The entries of the table `meta`.
///
/// Invariant of a file of version 2: the entry `checksum` matches the entries that it covers, and no entry is unknown.
/// `failures` and `backup` are not covered: the first changes often, the second may be written by an operator.
struct StateFacts: Equatable {
  var epoch: String?
  /// The version of the program that last wrote the file.
  var software: String?
  /// The version of the rules by which the requests of the journal were executed.
  var rules: Int64 = 1
  /// The last journal row that was written without a checksum; 0 if there was none.
  var unchecked: Int64 = 0
  /// Whether the file is a backup that no daemon has opened since.
  var isBackup = false

  private static let covered = ["epoch", "rules", "software", "unchecked"]
  private static let others = ["backup", "checksum", "failures"]

  init() {}

  /// Reads the entries of a file with a schema version.
  /// - Throws: `.corrupt` if the entries do not match their checksum.
  init(_ database: Database, version: Int64) throws(StorageError) {
    let path = database.path
    let entries = try StorageError.naming(path) { () throws(SQLiteError) in
      var entries: [String: String] = [:]
      let read = try database.prepare("SELECT key, value FROM meta", isKept: false)
      while try read.step() { entries[read.text(0)] = read.text(1) }
      return entries
    }
    if version >= 2 {
      let unknown = entries.keys.filter { !Self.covered.contains($0) && !Self.others.contains($0) }.sorted()
      if let key = unknown.first {
        throw StorageError(.corrupt, path: path, reason: "table meta has an unknown entry \"\(key)\"")
      }
      let isMatching = entries["checksum"] == "\(Self.checksum(entries))"
      let isEmpty = Self.covered.allSatisfy { entries[$0] == nil } && entries["checksum"] == nil
      guard isMatching || isEmpty else {
        throw StorageError(.corrupt, path: path, reason: "the entries of table meta do not match their checksum")
      }
    }
    epoch = entries["epoch"]
    software = entries["software"]
    rules = entries["rules"].flatMap { Int64($0) } ?? 1
    unchecked = entries["unchecked"].flatMap { Int64($0) } ?? 0
    isBackup = entries["backup"] != nil
  }

  /// Writes the covered entries and their checksum, in the open transaction.
  func write(to database: Database) throws(SQLiteError) {
    var entries = ["rules": "\(rules)", "unchecked": "\(unchecked)"]
    entries["epoch"] = epoch
    entries["software"] = software
    entries["checksum"] = "\(Self.checksum(entries))"
    let insert = try database.prepare("INSERT OR REPLACE INTO meta VALUES (?, ?)", isKept: false)
    for (key, value) in entries.sorted(by: { $0.key < $1.key }) {
      try insert.bind(key, at: 1)
      try insert.bind(value, at: 2)
      try insert.run()
    }
    try database.execute("INSERT OR IGNORE INTO meta VALUES ('failures', 0)")
    if !isBackup { try database.execute("DELETE FROM meta WHERE key = 'backup'") }
  }

  private static func checksum(_ entries: [String: String]) -> Int64 {
    var checksum = Checksum()
    for key in covered {
      checksum.add(key)
      // Distinguishes a missing entry from an empty one.
      checksum.add(entries[key].map { "=\($0)" } ?? "")
    }
    return checksum.value
  }
}
