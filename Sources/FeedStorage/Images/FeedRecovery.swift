import FeedChange
import FeedJSON
import FeedModel
import FeedSQLite

/// Restores and verifies the feeds of one image, each after the feeds that it shows.
struct FeedRecovery {
  private let database: Database
  private let path: String
  private let catalog: Catalog
  private let note: (RecoveryProgress) -> Void
  /// Whether the image has checksums.
  private let isChecked: Bool

  /// - Parameter note: called after each feed, and after each part of its elements.
  init(_ database: Database, _ catalog: Catalog, isChecked: Bool, _ note: @escaping (RecoveryProgress) -> Void) {
    self.database = database
    path = database.path
    (self.catalog, self.note, self.isChecked) = (catalog, note, isChecked)
  }

  /// Restores all feeds of the image, and adds their checksums to `sum`.
  func read(image: Int64, into sum: inout Checksum, _ progress: inout RecoveryProgress) throws(StorageError) {
    let feeds = try database.reading(
      """
      SELECT id, definition, given, revision, bin_revisions, selection, history_bases, name\(isChecked ? ", checksum" : "")
      FROM image_feed WHERE image = ? ORDER BY id
      """, image)
    while try feeds.next(path) {
      let row = feeds.integer(0)
      let head = ImagePart.FeedHead(
        name: feeds.text(7), definition: feeds.text(1), given: feeds.text(2), revision: feeds.unsigned(3),
        bins: feeds.text(4), selection: feeds.text(5))
      let bases = feeds.type(of: 6) == .null ? nil : feeds.text(6)
      var checksum = FeedChecksum(head)
      let feed = try define(head)
      if let restorer = catalog.restorer(of: feed) { try fill(restorer, row, &checksum, &progress) }
      try readHistories(of: feed, row, bases: bases, &checksum)
      let value = checksum.value(historyBases: bases)
      guard !isChecked || (feeds.type(of: 8) == .integer && feeds.integer(8) == value) else {
        throw StorageError(
          .corrupt, path: path, reason: "feed \"\(head.name)\" of image \(image) does not match its checksum")
      }
      sum.add(value)
      if !feed.isList { progress.feeds += 1 }
      note(progress)
    }
  }

  private func define(_ head: ImagePart.FeedHead) throws(StorageError) -> Feed {
    let bins = list(head.bins, bin)
    let selection = list(head.selection) { path -> IndexPath? in
      guard let section = path.element(at: 0)?.int.flatMap(UInt32.init(exactly:)),
        let row = path.element(at: 1)?.int.flatMap(UInt32.init(exactly:))
      else { return nil }
      return IndexPath(section: section, row: row)
    }
    guard let bins, let selection else {
      let what = bins == nil ? "revisions of the bins" : "selection"
      throw StorageError(.corrupt, path: path, reason: "feed \"\(head.name)\": the \(what) cannot be read")
    }
    do {
      var scanner = JSONScanner()
      var other = JSONScanner()
      var (definition, given) = (head.definition, head.given)
      return try definition.withUTF8 { definition in
        try given.withUTF8 { given in
          try catalog.restore(
            definition: try scanner.scan(UnsafeRawBufferPointer(definition)),
            given: try other.scan(UnsafeRawBufferPointer(given)), revision: head.revision, selection: selection,
            bins: bins)
        }
      }
    } catch {
      throw StorageError(.corrupt, path: path, reason: "cannot define feed \"\(head.name)\" again: \(error)")
    }
  }

  /// Reads the revision of a bin, or an array of it and the selected rows.
  private func bin(_ stored: JSONView) -> StoredBin? {
    let revision = stored.kind == .array ? stored.element(at: 0) : stored
    guard let revision = revision?.int.flatMap(UInt64.init(exactly:)) else { return nil }
    var selection: [IndexPath] = []
    if stored.kind == .array {
      for row in stored.elements.dropFirst() {
        guard let row = row.int.flatMap(UInt32.init(exactly:)) else { return nil }
        selection.append(IndexPath(section: 0, row: row))
      }
    }
    return StoredBin(revision: revision, selection: selection)
  }

  /// Returns the items of a JSON array; nil if it is none, or if an item is not valid.
  private func list<Item>(_ text: String, _ item: (JSONView) -> Item?) -> [Item]? {
    var text = text
    return text.withUTF8 { bytes in
      var scanner = JSONScanner()
      guard let array = try? scanner.scan(UnsafeRawBufferPointer(bytes)), array.kind == .array else { return nil }
      var items: [Item] = []
      for element in array.elements {
        guard let item = item(element) else { return nil }
        items.append(item)
      }
      return items
    }
  }

  private func fill(
    _ restorer: Restorer, _ feed: Int64, _ checksum: inout FeedChecksum, _ progress: inout RecoveryProgress
  ) throws(StorageError) {
    let reader = try ImageElementReader(database, feed: feed, checksum)
    defer { reader.stop() }
    restorer.reserve(reader.count)
    while let part = try reader.next() {
      try part.forEach { text, coming, arrival, changedAt throws(StorageError) in
        try checked(
          restorer.addElement(text, coming: coming, arrival: arrival, changedAt: Instant(nanoseconds: changedAt)))
      }
      progress.elements += part.count
      note(progress)
    }
    reader.stop()
    checksum = reader.checksum
    try readRows(restorer, feed, &checksum)
    restorer.finish()
  }

  private func readRows(_ restorer: Restorer, _ feed: Int64, _ checksum: inout FeedChecksum) throws(StorageError) {
    let rows = try database.reading(
      "SELECT id, section, first, numbers FROM section_rows WHERE id BETWEEN ? AND ? ORDER BY id",
      Schema.base(of: feed), Schema.last(of: feed))
    var scanner = JSONScanner()
    var (expected, section, count) = (Schema.base(of: feed), Int64(0), 0)
    while try rows.next(path) {
      checksum.addRows(section: rows.integer(1), first: rows.integer(2), rows.textBytes(3))
      if rows.integer(1) != section { (section, count) = (rows.integer(1), 0) }
      guard rows.integer(0) == expected, rows.integer(2) == Int64(count),
        let numbers = try? scanner.scan(rows.textBytes(3)), numbers.kind == .array
      else { throw .missing("the rows of section \(section) from \(count) on", ofFeed: feed, path) }
      for number in numbers.elements {
        guard let element = number.int.flatMap(UInt32.init(exactly:)) else {
          throw .missing("the rows of section \(section) from \(count) on", ofFeed: feed, path)
        }
        try checked(restorer.appendRow(section: Int(section), element: element))
      }
      count += numbers.count
      expected += 1
    }
  }

  /// Restores the histories. Those of an image without checksums are ignored, so that no watcher gets a change that does not fit
  /// the feed: all start with a snapshot.
  private func readHistories(
    of feed: Feed, _ row: Int64, bases: String?, _ checksum: inout FeedChecksum
  ) throws(StorageError) {
    if !isChecked { return }
    var records: [Int: [HistoryDump.Record]] = [:]
    let read = try database.reading(
      "SELECT bin, records FROM history WHERE id BETWEEN ? AND ? ORDER BY id", Schema.base(of: row),
      Schema.last(of: row))
    while try read.next(path) {
      checksum.addHistory(bin: read.integer(0), read.blobBytes(1))
      guard let part = HistoryRecords.read(read.blobBytes(1)) else { continue }
      records[Int(clamping: read.integer(0)), default: []] += part
    }
    let found = list(bases ?? "[]") { base -> (bin: Int, base: UInt64)? in
      guard let bin = base.element(at: 0)?.int, let revision = base.element(at: 1)?.int.flatMap(UInt64.init(exactly:))
      else { return nil }
      return (bin, revision)
    }
    for (bin, base) in found ?? [] {
      let dump = HistoryDump(base: base, records: (records[bin] ?? []).filter { $0.to > base })
      _ = catalog.restoreHistory(dump, of: feed, bin: bin < 0 ? nil : bin)
    }
  }

  private func checked(_ body: @autoclosure () throws(RestoreError) -> Void) throws(StorageError) {
    do throws(RestoreError) { try body() } catch { throw StorageError(error, path: path) }
  }
}

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

  private func checksum(of head: ImagePart.FeedHead, _ feed: Int64, bases: String?) throws(StorageError) -> Int64 {
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
