/// The layout of the database file; `Protocol/storage.md` describes it for people.
///
/// Rows of an image's feed lie together: the number of an `element`, `section_rows` or `history` row is the number of its
/// `image_feed` in the upper 32 bits and counts up in the lower ones. So they are written at the end of each table, read in
/// one go and deleted piece by piece, without an index.
enum Schema {
  /// Kept in `user_version`. A larger one is a newer program's.
  static let version: Int64 = 1
  /// Kept in `application_id`: "feed".
  static let applicationID: Int64 = 0x6665_6564
  /// Bytes of a page: a journal entry of one request costs one page of log, one of hundreds hardly more than its bytes.
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

  /// For people with `sqlite3`: what the newest complete image holds.
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

  /// The first number of a feed's rows.
  static func base(of feed: Int64) -> Int64 { feed << 32 }
  /// The last number of a feed's rows.
  static func last(of feed: Int64) -> Int64 { feed << 32 | 0xffff_ffff }
}
