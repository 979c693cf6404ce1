import FeedSQLite

/// Deletes obsolete rows in small pieces: images that were replaced or never completed, and the journal that the newest
/// image covers.
///
/// The row that refers to the remaining rows is deleted last, so that a start finds the rest again.
struct WasteRemover {
  private enum Waste: Equatable {
    case image(Int64)
    /// Batches up to this row of the journal.
    case journal(upTo: Int64)
  }

  private let database: Database
  private var waste: [Waste] = []

  init(_ database: Database) {
    self.database = database
  }

  var isEmpty: Bool { waste.isEmpty }

  /// Adds an abandoned image.
  mutating func add(image: Int64) { waste.append(.image(image)) }

  /// Finds everything that the complete image `id`, which covers the journal up to `row`, makes obsolete.
  mutating func find(besides id: Int64, journalUpTo row: Int64) throws(SQLiteError) {
    let list = try database.prepare("SELECT id FROM image WHERE id <> ? ORDER BY id", isKept: false)
    try list.bind(id, at: 1)
    var found: [Waste] = []
    while try list.step() { found.append(.image(list.integer(0))) }
    if try database.integer("SELECT min(seq) FROM journal") ?? .max <= row { found.append(.journal(upTo: row)) }
    waste = found
  }

  /// Deletes a piece, in the open transaction.
  mutating func removePiece() throws(SQLiteError) {
    guard let first = waste.first else { return }
    if try !remove(first) { waste.removeFirst() }
  }

  /// Deletes a piece. Returns false if nothing is left of it.
  private func remove(_ waste: Waste) throws(SQLiteError) -> Bool {
    switch waste {
    case .journal(let last): return try removeJournal(upTo: last)
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

  /// Deletes the first rows of the journal. A range needs one pass over the table; a row-by-row deletion needs many
  /// searches.
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
