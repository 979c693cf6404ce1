import FeedChange
import FeedJSON
import FeedModel
import FeedSQLite

/// The layout of the file with the image (Protocol/storage.md).
///
/// Rows of one feed of an image are adjacent: the number of an `element`, `section_rows` or `history` row has the
/// number of its `image_feed` in the upper 32 bits and a counter in the lower 32 bits. So rows are appended to each
/// table and read as one range, without an index.
enum Schema {
  /// Stored in `user_version`. A file with a larger value was written by a newer program.
  ///
  /// 1 and 2: the log was a table of this file, `journal`; 1 without checksums. 3: the log is in segments. 4: recent
  /// changes are packed.
  static let version: Int64 = 4
  /// The last version whose log was a table.
  static let lastWithJournal: Int64 = 2
  /// Stored in `application_id`: "feed".
  static let applicationID: Int64 = 0x6665_6564
  static let pageSize = 8192

  static let tables = """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE limits (id INTEGER PRIMARY KEY, json TEXT NOT NULL UNIQUE);
    CREATE TABLE image (
      id INTEGER PRIMARY KEY, revision INTEGER NOT NULL, at INTEGER NOT NULL, journal INTEGER NOT NULL,
      limits INTEGER NOT NULL, bytes INTEGER NOT NULL DEFAULT 0, complete INTEGER NOT NULL DEFAULT 0, checksum INTEGER);
    CREATE TABLE image_feed (
      id INTEGER PRIMARY KEY, image INTEGER NOT NULL, name TEXT NOT NULL, definition TEXT NOT NULL, given TEXT NOT NULL,
      revision INTEGER NOT NULL, bin_revisions TEXT NOT NULL, selection TEXT NOT NULL, history_bases TEXT,
      checksum INTEGER);
    CREATE TABLE element (
      id INTEGER PRIMARY KEY, arrival INTEGER NOT NULL, changed_at INTEGER NOT NULL, text TEXT NOT NULL);
    CREATE TABLE section_rows (
      id INTEGER PRIMARY KEY, section INTEGER NOT NULL, first INTEGER NOT NULL, numbers TEXT NOT NULL);
    CREATE TABLE history (id INTEGER PRIMARY KEY, bin INTEGER NOT NULL, records BLOB NOT NULL);
    CREATE TABLE log (number INTEGER PRIMARY KEY, segment BLOB NOT NULL);
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
/// Invariant of a file of version 2 or later: the entry `checksum` matches the entries that it covers, and no entry is
/// unknown. `backup`, which may be written by an operator, and `failures`, which version 2 had, are not covered.
struct StateFacts: Equatable {
  var epoch: String?
  /// The version of the program that wrote the file.
  var software: String?
  /// The version of the rules by which the requests of a table `journal` were executed.
  var rules: Int64 = 1
  /// The last row of a table `journal` that was written without a checksum; 0 if there was none.
  var unchecked: Int64 = 0
  /// Whether the file is a backup that no daemon has opened since.
  var isBackup = false

  private static let covered = ["epoch", "rules", "software", "unchecked"]
  private static let others = ["backup", "checksum", "failures"]

  init() {}

  init(epoch: String, software: String) { (self.epoch, self.software) = (epoch, software) }

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
      guard isMatching || isEmpty && version <= Schema.lastWithJournal else {
        throw StorageError(.corrupt, path: path, reason: "the entries of table meta do not match their checksum")
      }
    }
    epoch = entries["epoch"]
    software = entries["software"]
    rules = entries["rules"].flatMap { Int64($0) } ?? 1
    unchecked = entries["unchecked"].flatMap { Int64($0) } ?? 0
    isBackup = entries["backup"] != nil
  }

  /// Writes the entries of a new file and their checksum.
  func write(to database: Database) throws(SQLiteError) {
    var entries: [String: String] = [:]
    entries["epoch"] = epoch
    entries["software"] = software
    entries["checksum"] = "\(Self.checksum(entries))"
    if isBackup { entries["backup"] = "1" }
    let insert = try database.prepare("INSERT OR REPLACE INTO meta VALUES (?, ?)", isKept: false)
    for (key, value) in entries.sorted(by: { $0.key < $1.key }) { try insert.run(key, value) }
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

/// Reads rows of the table `limits`. Caches the last one.
struct StoredLimits {
  private let database: Database
  private var row: Int64 = 0
  private var last: (json: String, checksum: Int64) = ("", 0)

  init(_ database: Database) { self.database = database }

  /// The text of a row and its checksum.
  mutating func text(of row: Int64) throws(StorageError) -> (json: String, checksum: Int64) {
    if row == self.row && row != 0 { return last }
    let read = try database.reading("SELECT json FROM limits WHERE id = ?", row)
    guard try read.next(database.path) else {
      throw StorageError(.corrupt, path: database.path, reason: "row \(row) of the table limits is missing")
    }
    self.row = row
    let json = read.text(0)
    last = (json, Checksum.of(json))
    return last
  }
}

extension Limits {
  /// The limits as JSON, as the table `limits` and the headers of segments store them.
  var storedText: String {
    ByteBuffer.text { out in
      out.append(UInt8(ascii: "{"))
      appendMembers(to: &out)
      out.append(UInt8(ascii: "}"))
    }
  }

  /// Parses the text that `storedText` returns; nil if it is invalid.
  ///
  /// A journal written before one of `Limits.added` existed accepted requests without it, so they are replayed without it.
  init?(storedText: String) {
    var limits = Limits()
    for limit in Limits.added { limits[keyPath: limit] = .max }
    var scanner = JSONScanner()
    var text = storedText
    let isSound = text.withUTF8 { bytes in
      guard let object = try? scanner.scan(UnsafeRawBufferPointer(bytes)), object.kind == .object else { return false }
      return (try? limits.set(membersOf: object)) != nil
    }
    guard isSound else { return nil }
    self = limits
  }
}
