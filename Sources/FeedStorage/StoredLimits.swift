import FeedJSON
import FeedModel
import FeedSQLite

/// Reads rows of the table `limits`. Caches the last one.
struct StoredLimits {
  private let database: Database
  private var row: Int64 = 0
  private var last: (json: String, checksum: Int64) = ("", 0)

  init(_ database: Database) {
    self.database = database
  }

  /// The text of a row and its checksum.
  mutating func text(of row: Int64) throws(StorageError) -> (json: String, checksum: Int64) {
    if row == self.row && row != 0 { return last }
    let found = try StorageError.naming(database.path) { () throws(SQLiteError) in
      let read = try database.prepare("SELECT json FROM limits WHERE id = ?", isKept: false)
      try read.bind(row, at: 1)
      return try read.step() ? read.text(0) : nil
    }
    guard let found else {
      throw StorageError(.corrupt, path: database.path, reason: "row \(row) of the table limits is missing")
    }
    self.row = row
    last = (found, Checksum.of(found))
    return last
  }
}

extension Limits {
  /// The limits as JSON, as the table `limits` and the headers of segments store them.
  var storedText: String {
    var text = ByteBuffer()
    text.append(UInt8(ascii: "{"))
    appendMembers(to: &text)
    text.append(UInt8(ascii: "}"))
    return String(decoding: text.bytes, as: UTF8.self)
  }

  /// Parses the text that `storedText` returns; nil if it is invalid.
  ///
  /// A journal written before one of `Limits.added` existed accepted requests without it, so they are replayed without it.
  init?(storedText: String) {
    var limits = Limits()
    for limit in Limits.added { limits[keyPath: limit] = .max }
    var scanner = JSONScanner()
    var text = storedText
    let isSound = text.withUTF8 { bytes in
      guard let object = try? scanner.scan(UnsafeRawBufferPointer(bytes)), object.kind == .object else { return false }
      return (try? limits.set(membersOf: object)) != nil
    }
    guard isSound else { return nil }
    self = limits
  }
}
