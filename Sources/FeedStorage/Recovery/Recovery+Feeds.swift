import FeedChange
import FeedJSON
import FeedModel
import FeedSQLite

extension Recovery {
  /// Restores the image's feeds, each after those it shows.
  mutating func readFeeds() throws(StorageError) {
    let read = try prepare(
      """
      SELECT id, definition, given, revision, bin_revisions, selection, history_bases, name FROM image_feed
      WHERE image = ? ORDER BY id
      """)
    try bind(image.id, in: read)
    while try next(read) {
      let row = read.integer(0)
      let feed = try define(read)
      if let restorer = target.catalog.restorer(of: feed) { try fill(restorer, row) }
      try readHistories(of: feed, row, bases: read.text(6))
      progress.feeds += 1
      target.didRecover(progress)
    }
  }

  /// Defines the feed of a row again.
  private func define(_ row: Statement) throws(StorageError) -> Feed {
    var scanner = JSONScanner()
    var other = JSONScanner()
    do {
      let revisions = try scanner.scan(row.textBytes(4)).elements.map { UInt64(clamping: $0.int ?? 0) }
      let selection = try scanner.scan(row.textBytes(5)).elements.map { path in
        IndexPath(
          section: UInt32(clamping: path.element(at: 0)?.int ?? 0), row: UInt32(clamping: path.element(at: 1)?.int ?? 0)
        )
      }
      return try target.catalog.restore(
        definition: try scanner.scan(row.textBytes(1)), given: try other.scan(row.textBytes(2)),
        revision: row.unsigned(3), binRevisions: revisions, selection: selection)
    } catch {
      throw StorageError(.corrupt, path: path, reason: "the definition of feed \(row.text(7)) is refused: \(error)")
    }
  }

  private mutating func fill(_ restorer: Restorer, _ feed: Int64) throws(StorageError) {
    let elements = try prepare(
      "SELECT id, arrival, changed_at, text FROM element WHERE id BETWEEN ? AND ? ORDER BY id")
    try bind(Schema.base(of: feed), Schema.last(of: feed), in: elements)
    var expected = Schema.base(of: feed)
    while try next(elements) {
      guard elements.integer(0) == expected else { throw missing(feed, "element \(expected & 0xffff_ffff)") }
      try checked { () throws(RestoreError) in
        try restorer.addElement(
          elements.textBytes(3), arrival: elements.unsigned(1),
          changedAt: Instant(nanoseconds: elements.unsigned(2)))
      }
      expected += 1
      progress.elements += 1
      if progress.elements % 8192 == 0 { target.didRecover(progress) }
    }
    try readRows(restorer, feed)
    restorer.finish()
  }

  private func readRows(_ restorer: Restorer, _ feed: Int64) throws(StorageError) {
    let rows = try prepare("SELECT id, section, first, numbers FROM section_rows WHERE id BETWEEN ? AND ? ORDER BY id")
    try bind(Schema.base(of: feed), Schema.last(of: feed), in: rows)
    var scanner = JSONScanner()
    var (expected, section, count) = (Schema.base(of: feed), 0, 0)
    while try next(rows) {
      if Int(rows.integer(1)) != section { (section, count) = (Int(rows.integer(1)), 0) }
      guard rows.integer(0) == expected, Int(rows.integer(2)) == count,
        let numbers = try? scanner.scan(rows.textBytes(3)), numbers.kind == .array
      else { throw missing(feed, "the rows of section \(section) from \(count) on") }
      for number in numbers.elements {
        try checked { () throws(RestoreError) in
          try restorer.appendRow(section: section, element: UInt32(clamping: number.int ?? -1))
        }
      }
      count += numbers.count
      expected += 1
    }
  }

  /// Takes up the recent changes; without them watchers begin with a snapshot, so what does not hold together is left out.
  private func readHistories(of feed: Feed, _ row: Int64, bases: String) throws(StorageError) {
    if bases.isEmpty { return }
    var records: [Int: [HistoryDump.Record]] = [:]
    let read = try prepare("SELECT bin, records FROM history WHERE id BETWEEN ? AND ? ORDER BY id")
    try bind(Schema.base(of: row), Schema.last(of: row), in: read)
    while try next(read) {
      guard let part = HistoryRecords.read(read.blobBytes(1)) else { continue }
      records[Int(read.integer(0)), default: []] += part
    }
    var scanner = JSONScanner()
    var text = bases
    let found = text.withUTF8 { bytes -> [(bin: Int, base: UInt64)] in
      guard let list = try? scanner.scan(UnsafeRawBufferPointer(bytes)) else { return [] }
      return list.elements.map { ($0.element(at: 0)?.int ?? -1, UInt64(clamping: $0.element(at: 1)?.int ?? 0)) }
    }
    for (bin, base) in found {
      let dump = HistoryDump(base: base, records: (records[bin] ?? []).filter { $0.to > base })
      _ = target.catalog.restoreHistory(dump, of: feed, bin: bin < 0 ? nil : bin)
    }
  }

  private func checked(_ body: () throws(RestoreError) -> Void) throws(StorageError) {
    do throws(RestoreError) {
      try body()
    } catch {
      throw StorageError(.corrupt, path: path, reason: "feed \(error.feed): \(error.reason)")
    }
  }

  private func missing(_ feed: Int64, _ what: String) -> StorageError {
    StorageError(.corrupt, path: path, reason: "\(what) of the image's feed \(feed) is missing or out of place")
  }
}
