import FeedSQLite

/// Compares the checksums of an image with its content, without restoring it.
///
///     try ImageCheck.verify(database, version: version)
///
/// Needs memory for one row at a time.
struct ImageCheck {
  private let database: Database
  private let path: String

  /// Verifies the newest image. Those of schemas whose log was a table are not verified.
  /// - Throws: `.corrupt` for an image that is not complete, and for the first feed that does not match.
  static func verify(_ database: Database, version: Int64) throws(StorageError) {
    guard version > Schema.lastWithJournal else { return }
    _ = try StoredState.covered(by: database)
    guard let (head, bytes, sum) = try ImageHead.newest(in: database, version: version) else { return }
    try ImageCheck(database: database, path: database.path).verify(head, bytes: bytes, checksum: sum)
  }

  /// - Parameters:
  ///   - bytes: the size in the row of the image.
  ///   - stored: the checksum in that row.
  private func verify(_ head: ImageHead, bytes: Int64, checksum stored: Int64?) throws(StorageError) {
    var limits = StoredLimits(database)
    var sum = head.checksum(limits: try limits.text(of: head.limits).checksum)
    let feeds = try database.reading(
      """
      SELECT id, definition, given, revision, bin_revisions, selection, history_bases, name, checksum
      FROM image_feed WHERE image = ? ORDER BY id
      """, head.id)
    while try feeds.next(path) {
      let row = ImagePart.FeedHead(
        name: feeds.text(7), definition: feeds.text(1), given: feeds.text(2), revision: feeds.unsigned(3),
        bins: feeds.text(4), selection: feeds.text(5))
      let value = try checksum(of: row, feeds.integer(0), bases: feeds.type(of: 6) == .null ? nil : feeds.text(6))
      guard feeds.type(of: 8) == .integer, feeds.integer(8) == value else {
        throw StorageError(
          .corrupt, path: path, reason: "feed \"\(row.name)\" of image \(head.id) does not match its checksum")
      }
      sum.add(value)
    }
    sum.add(bytes)
    guard stored == sum.value else {
      throw StorageError(.corrupt, path: path, reason: "image \(head.id) does not match its checksum")
    }
  }

  private func checksum(
    of head: ImagePart.FeedHead, _ feed: Int64, bases: String?
  ) throws(StorageError) -> Int64 {
    var checksum = FeedChecksum(head)
    try forEach("SELECT arrival, changed_at, text FROM element", feed) { row in
      checksum.addElement(arrival: row.unsigned(0), changedAt: row.unsigned(1), row.textBytes(2))
    }
    try forEach("SELECT section, first, numbers FROM section_rows", feed) { row in
      checksum.addRows(section: row.integer(0), first: row.integer(1), row.textBytes(2))
    }
    try forEach("SELECT bin, records FROM history", feed) { row in
      checksum.addHistory(bin: row.integer(0), row.blobBytes(1))
    }
    return checksum.value(historyBases: bases)
  }

  /// Calls `body` with each row of a feed in a table.
  private func forEach(_ select: String, _ feed: Int64, _ body: (Statement) -> Void) throws(StorageError) {
    let rows = try database.reading(
      "\(select) WHERE id BETWEEN ? AND ? ORDER BY id", Schema.base(of: feed), Schema.last(of: feed))
    while try rows.next(path) { body(rows) }
  }
}
