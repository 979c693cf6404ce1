import FeedJSON
import FeedModel
import FeedSQLite

/// Writes one image into the database, part by part, while the feeds go on changing. Each part is a transaction of the store.
final class ImageWriter {
  /// The row of `image`.
  let id: Int64
  /// The last batch that the image covers.
  let journal: Int64
  let image: CatalogImage
  /// Bytes written so far, about.
  var bytes = 0

  /// What comes next.
  private var feedIndex = 0
  private var stage = Stage.feed
  /// The number of the present feed's `image_feed` row.
  var feed: Int64
  /// The numbers given to the present feed's elements, by owner; `none` for those not written yet.
  var numbers: [UInt32] = []
  /// How many there are.
  var elements: UInt32 = 0
  /// How many rows the present feed has in `section_rows`, and in `history`.
  var chunks: Int64 = 0
  var historyChunks: Int64 = 0
  /// The numbers of the present chunk of rows as the beginning of a JSON array, and the first row of it.
  var chunk = ByteBuffer()
  var chunkCount = 0
  var chunkStart = 0
  /// Recent changes on their way into a row.
  var packed = ByteBuffer()

  let insertFeed: Statement
  let insertElement: Statement
  let insertRows: Statement
  let insertHistory: Statement
  let updateFeed: Statement
  private let database: Database

  static let none = UInt32.max

  private enum Stage {
    case feed
    case section(Int)
    /// Which of `FeedImage.remembering`, and the last revision that was written of it.
    case history(Int, after: UInt64)
  }

  /// - Parameter firstFeed: the number for the image's first `image_feed` row; none at or above it is taken.
  init(
    _ image: CatalogImage, id: Int64, journal: Int64, firstFeed: Int64, in database: Database
  ) throws(SQLiteError) {
    self.image = image
    self.id = id
    self.journal = journal
    self.database = database
    feed = firstFeed - 1
    insertFeed = try database.prepare("INSERT INTO image_feed VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)")
    insertElement = try database.prepare("INSERT INTO element VALUES (?, ?, ?, ?)")
    insertRows = try database.prepare("INSERT INTO section_rows VALUES (?, ?, ?, ?)")
    insertHistory = try database.prepare("INSERT INTO history VALUES (?, ?, ?)")
    updateFeed = try database.prepare("UPDATE image_feed SET history_bases = ? WHERE id = ?")
  }

  /// Writes the row of the image itself.
  func begin(limits: Int64) throws(SQLiteError) {
    let insert = try database.prepare(
      "INSERT INTO image (id, revision, at, journal, limits) VALUES (?, ?, ?, ?, ?)", isKept: false)
    try insert.bind(id, at: 1)
    try insert.bind(image.revision, at: 2)
    try insert.bind(image.at.nanoseconds, at: 3)
    try insert.bind(journal, at: 4)
    try insert.bind(limits, at: 5)
    try insert.run()
  }

  /// Writes a further small part. Returns false when there is nothing left.
  func writePart() throws(SQLiteError) -> Bool {
    guard feedIndex < image.feeds.count else { return false }
    let current = image.feeds[feedIndex]
    switch stage {
    case .feed:
      try beginFeed(current)
      stage = .section(0)
    case .section(let index) where index < current.sections.count:
      if try !writeRows(of: current.sections[index], index) { stage = .section(index + 1) }
    case .section:
      stage = .history(0, after: 0)
    case .history(let index, let last) where index < current.remembering.count:
      let next = try writeHistory(of: current, index, after: last)
      stage = next.map { .history(index, after: $0) } ?? .history(index + 1, after: 0)
    case .history:
      try endFeed(current)
      feedIndex += 1
      stage = .feed
    }
    return true
  }

  /// Makes the image the one that counts.
  func complete() throws(SQLiteError) {
    let update = try database.prepare("UPDATE image SET complete = 1, bytes = ? WHERE id = ?", isKept: false)
    try update.bind(bytes, at: 1)
    try update.bind(id, at: 2)
    try update.run()
  }
}
