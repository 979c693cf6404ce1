import FeedJSON
import FeedModel
import FeedSQLite

/// A part of an image on its way from the engine's thread to the thread that writes images: rows for the tables of an image, in
/// order.
///
/// Owns its bytes: at most about 64 KiB, unless one element or change is longer.
final class ImagePart: @unchecked Sendable {
  /// The number of bytes at which a part is sent.
  static let size = 64 << 10

  enum Item {
    case feed(FeedHead)
    /// The next element of the feed; elements are numbered from 0.
    case element(arrival: UInt64, changedAt: UInt64, text: Range<Int>)
    /// The numbers of the elements in consecutive rows of a section, as a JSON array.
    case rows(section: Int, first: Int, numbers: Range<Int>)
    /// Recorded changes of the feed, or of its bin.
    case history(bin: Int, records: Range<Int>)
    /// The end of the feed, with the base revisions of its histories.
    case feedEnd(historyBases: String?)
  }

  /// The columns of a row of the table `image_feed`, as text.
  struct FeedHead: Equatable {
    var name: String
    var definition: String
    var given: String
    var revision: UInt64
    /// For each bin its revision, or `[revision,row,…]` with its selected rows.
    var bins: String
    var selection: String
  }

  private(set) var items: [Item] = []
  private var buffer = ByteBuffer(capacity: ImagePart.size)
  /// Whether this is the last part of the image.
  var isLast = false

  /// The approximate number of bytes of the rows so far.
  private(set) var byteCount = 0

  var isFull: Bool { byteCount >= Self.size }

  /// The bytes of an item. Valid until the next `append`.
  func bytes(_ range: Range<Int>) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: buffer.bytes[range])
  }

  func append(_ head: FeedHead) {
    items.append(.feed(head))
    byteCount += 256 + head.definition.utf8.count + head.given.utf8.count
  }

  func append(element: ElementText) {
    let range = append { $0.append(element.text) }
    items.append(.element(arrival: element.arrival, changedAt: element.changedAt.nanoseconds, text: range))
    byteCount += range.count + 32
  }

  /// - Parameter numbers: a JSON array.
  func append(section: Int, first: Int, numbers: UnsafeRawBufferPointer) {
    let range = append { $0.append(numbers) }
    items.append(.rows(section: section, first: first, numbers: range))
    byteCount += range.count
  }

  /// Appends the changes that `pack` writes. Appends nothing if `pack` returns nil.
  func append<Result>(bin: Int, _ pack: (inout ByteBuffer) -> Result?) -> Result? {
    let start = buffer.count
    guard let result = pack(&buffer) else { return nil }
    items.append(.history(bin: bin, records: start..<buffer.count))
    byteCount += buffer.count - start
    return result
  }

  func appendFeedEnd(historyBases: String?) { items.append(.feedEnd(historyBases: historyBases)) }

  private func append(_ write: (inout ByteBuffer) -> Void) -> Range<Int> {
    let start = buffer.count
    write(&buffer)
    return start..<buffer.count
  }
}

/// The checksum of one feed of an image. It is the same for the writer, which processes elements and rows alternately,
/// and the reader, which processes one table after another.
struct FeedChecksum {
  private var head = Checksum()
  private var elements = Checksum()
  private var rows = Checksum()
  private var history = Checksum()
  private var counts: (elements: Int64, rows: Int64, history: Int64) = (0, 0, 0)

  init(_ head: ImagePart.FeedHead) {
    self.head.add(head.name)
    self.head.add(head.definition)
    self.head.add(head.given)
    self.head.add(head.revision)
    self.head.add(head.bins)
    self.head.add(head.selection)
  }

  mutating func addElement(arrival: UInt64, changedAt: UInt64, _ text: UnsafeRawBufferPointer) {
    elements.add(arrival)
    elements.add(changedAt)
    elements.add(text)
    counts.elements += 1
  }

  mutating func addRows(section: Int64, first: Int64, _ numbers: UnsafeRawBufferPointer) {
    rows.add(section)
    rows.add(first)
    rows.add(numbers)
    counts.rows += 1
  }

  mutating func addHistory(bin: Int64, _ records: UnsafeRawBufferPointer) {
    history.add(bin)
    history.add(records)
    counts.history += 1
  }

  /// The checksum of the whole feed.
  func value(historyBases: String?) -> Int64 {
    var all = head
    if let historyBases { all.add(historyBases) }
    for (checksum, count) in [(elements, counts.elements), (rows, counts.rows), (history, counts.history)] {
      all.add(checksum.value)
      all.add(count)
    }
    return all.value
  }
}

/// The columns of a row of the table `image`, and the checksum over the row and its feeds.
struct ImageHead: Equatable, Sendable {
  /// The row number in `image`.
  var id: Int64
  var revision: UInt64
  /// The time of the last step before the image, in nanoseconds.
  var at: UInt64
  /// The last batch of the log that the image covers.
  var journal: Int64
  /// The row of the table `limits` in use.
  var limits: Int64

  /// The checksum of the row. The checksums of the feeds are added to it in order.
  /// - Parameter text: the checksum of the limits' text.
  func checksum(limits text: Int64) -> Checksum {
    var checksum = Checksum()
    checksum.add(id)
    checksum.add(revision)
    checksum.add(at)
    checksum.add(journal)
    checksum.add(limits)
    checksum.add(text)
    return checksum
  }

  /// Reads the row of the newest complete image in a file of a schema version; nil if there is none.
  /// - Returns: also the size and the checksum in that row; no checksum for a row that was written without one.
  static func newest(
    in database: Database, version: Int64
  ) throws(StorageError) -> (head: ImageHead, bytes: Int64, checksum: Int64?)? {
    let checksum = version >= 2 ? "checksum" : "NULL"
    let row = try database.reading(
      "SELECT id, revision, at, journal, limits, bytes, \(checksum) FROM image WHERE complete ORDER BY id DESC LIMIT 1")
    guard try row.next(database.path) else { return nil }
    let head = ImageHead(
      id: row.integer(0), revision: row.unsigned(1), at: row.unsigned(2), journal: row.integer(3),
      limits: row.integer(4))
    return (head, row.integer(5), row.type(of: 6) == .null ? nil : row.integer(6))
  }
}
