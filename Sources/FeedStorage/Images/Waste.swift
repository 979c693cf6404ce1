import FeedSQLite

/// Something that is no longer needed and is deleted piece by piece.
enum Waste: Equatable {
  /// An image that another one has replaced, or that was never completed.
  case image(Int64)
  /// The batches up to one that the newest image covers.
  case journal(upTo: Int64)
}

/// Deletes waste in small steps. The row that leads to what is left goes last, so that a restart finds the rest.
struct WasteRemover {
  private let database: Database

  init(_ database: Database) {
    self.database = database
  }

  /// Deletes a piece. Returns false when nothing of it is left.
  func removePiece(of waste: Waste) throws(SQLiteError) -> Bool {
    switch waste {
    case .journal(let last):
      return try removeJournal(upTo: last)
    case .image(let id):
      guard let feed = try firstFeed(of: id) else {
        _ = try delete("image", "?1", key: "id", id)
        return false
      }
      for table in ["element", "section_rows", "history"] where try remove(feed, from: table) > 0 { return true }
      _ = try delete("image_feed", "?1", key: "id", feed)
      return true
    }
  }

  /// Deletes the first rows of the journal. A range goes in one walk over the table, rows that are looked up one by one do not.
  private func removeJournal(upTo last: Int64) throws(SQLiteError) -> Bool {
    guard let first = try database.integer("SELECT min(seq) FROM journal"), first <= last else { return false }
    let statement = try database.prepare("DELETE FROM journal WHERE seq <= ?", isKept: false)
    try statement.bind(min(last, first + 31), at: 1)
    try statement.run()
    return true
  }

  private func firstFeed(of image: Int64) throws(SQLiteError) -> Int64? {
    let find = try database.prepare("SELECT min(id) FROM image_feed WHERE image = ?", isKept: false)
    try find.bind(image, at: 1)
    guard try find.step(), find.type(of: 0) != .null else { return nil }
    return find.integer(0)
  }

  private func remove(_ feed: Int64, from table: String) throws(SQLiteError) -> Int {
    try delete(
      table, "SELECT id FROM \(table) WHERE id BETWEEN ?1 AND ?2 LIMIT 256", key: "id", Schema.base(of: feed),
      Schema.last(of: feed))
  }

  private func delete(
    _ table: String, _ which: String, key: String, _ values: Int64...
  ) throws(SQLiteError) -> Int {
    let statement = try database.prepare("DELETE FROM \(table) WHERE \(key) IN (\(which))", isKept: false)
    for (place, value) in values.enumerated() { try statement.bind(value, at: Int32(place + 1)) }
    try statement.run()
    return database.changes
  }
}
