import FeedJSON

/// Accepted rows of a source, collected to be sorted at once.
struct ViewEntries: ~Copyable {
  private struct Entry {
    let prefix: UInt64
    let start: Int
    let length: Int
    let row: UInt32
  }

  private var entries: [Entry] = []
  /// The long keys.
  private var keys = ByteBuffer()

  /// - Parameter most: the number of rows that may be added. An array that grows copies everything at once.
  init(most: Int) { entries.reserveCapacity(most) }

  /// Adds the row that `judge` accepted last. Rows must be added in the order of the source.
  mutating func append(_ row: UInt32, _ judge: ViewJudge) {
    let start = keys.count
    if judge.isLong { keys.append(judge.key) }
    entries.append(Entry(prefix: judge.prefix, start: start, length: keys.count - start, row: row))
  }

  /// The rows by sort key, then in the order of the source. O(n log n).
  mutating func sorted(_ pace: Pace = Pace()) -> [(row: UInt32, prefix: UInt64)] {
    let bytes = keys.bytes
    func key(_ entry: Entry) -> UnsafeRawBufferPointer {
      UnsafeRawBufferPointer(rebasing: bytes[entry.start..<(entry.start + entry.length)])
    }
    entries.sort(pace) { a, b in
      if a.prefix != b.prefix { return a.prefix < b.prefix }
      if a.length > 0 && b.length > 0 {
        let order = SortOrder.compare(key(a), key(b))
        if order != 0 { return order < 0 }
      }
      return a.row < b.row
    }
    var rows: [(row: UInt32, prefix: UInt64)] = []
    rows.reserveCapacity(entries.count)
    for entry in entries {
      rows.append((entry.row, entry.prefix))
      if rows.count & 31 == 0 { pace.spend() }
    }
    return rows
  }
}
