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
    let statements = try ImageStatements(database)
    try statements.begin(head)
    self.statements = statements
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
        try statements.insertElement(Schema.base(of: feed) + counts.elements, arrival, changedAt, text)
        counts.elements += 1
      case .rows(let section, let first, let numbers):
        let numbers = part.bytes(numbers)
        feedChecksum?.addRows(section: Int64(section), first: Int64(first), numbers)
        try statements.insertRows(Schema.base(of: feed) + counts.chunks, section, first, numbers)
        counts.chunks += 1
      case .history(let bin, let records):
        let records = part.bytes(records)
        feedChecksum?.addHistory(bin: Int64(bin), records)
        try statements.insertHistory(Schema.base(of: feed) + counts.history, bin, records)
        counts.history += 1
      case .feedEnd(let bases): try end(historyBases: bases)
      }
    }
    bytes += part.byteCount
    if part.isLast {
      assert(feedChecksum == nil, "the last feed of an image has no end")
      checksum.add(Int64(bytes))
      try statements.complete(head.id, bytes: bytes, checksum: checksum.value)
    }
  }

  private mutating func begin(_ head: ImagePart.FeedHead) throws(SQLiteError) {
    assert(feedChecksum == nil, "a feed begins before the last one ended")
    feed += 1
    counts = Counts()
    feedChecksum = FeedChecksum(head)
    try statements.insertFeed(feed, image: self.head.id, head)
  }

  private mutating func end(historyBases: String?) throws(SQLiteError) {
    guard let value = feedChecksum?.value(historyBases: historyBases) else {
      preconditionFailure("a feed ends that did not begin")
    }
    feedChecksum = nil
    checksum.add(value)
    try statements.endFeed(feed, historyBases: historyBases, checksum: value)
  }
}

/// The statements that write an image.
private struct ImageStatements {
  private let database: Database
  private let feed: Statement
  private let element: Statement
  private let rows: Statement
  private let history: Statement
  private let feedEnd: Statement

  init(_ database: Database) throws(SQLiteError) {
    self.database = database
    feed = try database.prepare("INSERT INTO image_feed VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)")
    element = try database.prepare("INSERT INTO element VALUES (?, ?, ?, ?)")
    rows = try database.prepare("INSERT INTO section_rows VALUES (?, ?, ?, ?)")
    history = try database.prepare("INSERT INTO history VALUES (?, ?, ?)")
    feedEnd = try database.prepare("UPDATE image_feed SET history_bases = ?, checksum = ? WHERE id = ?")
  }

  func begin(_ head: ImageHead) throws(SQLiteError) {
    let insert = try database.prepare(
      "INSERT INTO image (id, revision, at, journal, limits) VALUES (?, ?, ?, ?, ?)", isKept: false)
    try insert.bind(head.id, at: 1)
    try insert.bind(head.revision, at: 2)
    try insert.bind(head.at, at: 3)
    try insert.bind(head.journal, at: 4)
    try insert.bind(head.limits, at: 5)
    try insert.run()
  }

  func complete(_ id: Int64, bytes: Int, checksum: Int64) throws(SQLiteError) {
    let update = try database.prepare(
      "UPDATE image SET complete = 1, bytes = ?, checksum = ? WHERE id = ?", isKept: false)
    try update.bind(bytes, at: 1)
    try update.bind(checksum, at: 2)
    try update.bind(id, at: 3)
    try update.run()
  }

  func insertFeed(_ id: Int64, image: Int64, _ head: ImagePart.FeedHead) throws(SQLiteError) {
    try feed.bind(id, at: 1)
    try feed.bind(image, at: 2)
    try feed.bind(head.name, at: 3)
    try feed.bind(head.definition, at: 4)
    try feed.bind(head.given, at: 5)
    try feed.bind(head.revision, at: 6)
    try feed.bind(head.bins, at: 7)
    try feed.bind(head.selection, at: 8)
    try feed.run()
  }

  func endFeed(_ id: Int64, historyBases: String?, checksum: Int64) throws(SQLiteError) {
    if let historyBases { try feedEnd.bind(historyBases, at: 1) } else { try feedEnd.bindNull(at: 1) }
    try feedEnd.bind(checksum, at: 2)
    try feedEnd.bind(id, at: 3)
    try feedEnd.run()
  }

  func insertElement(
    _ id: Int64, _ arrival: UInt64, _ changedAt: UInt64, _ text: UnsafeRawBufferPointer
  ) throws(SQLiteError) {
    try element.bind(id, at: 1)
    try element.bind(arrival, at: 2)
    try element.bind(changedAt, at: 3)
    try element.bind(lentText: text, at: 4)
    try element.run()
  }

  func insertRows(
    _ id: Int64, _ section: Int, _ first: Int, _ numbers: UnsafeRawBufferPointer
  ) throws(SQLiteError) {
    try rows.bind(id, at: 1)
    try rows.bind(section, at: 2)
    try rows.bind(first, at: 3)
    try rows.bind(lentText: numbers, at: 4)
    try rows.run()
  }

  func insertHistory(_ id: Int64, _ bin: Int, _ records: UnsafeRawBufferPointer) throws(SQLiteError) {
    try history.bind(id, at: 1)
    try history.bind(bin, at: 2)
    try history.bind(lentBlob: records, at: 3)
    try history.run()
  }
}
