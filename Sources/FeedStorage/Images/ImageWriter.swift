import FeedModel
import FeedSQLite

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

  /// Writes a part. After the last part the image is complete.
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

/// The statements that write an image.
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
