import FeedJSON
import FeedModel
import FeedSQLite

extension ImageWriter {
  /// Bytes of changes that one row has: they fit in a page (see `JournalWriter`).
  private static let bytesOfRow = Schema.pageSize - 64

  /// Writes further recent changes. Returns the last revision written; nil when there are no more.
  func writeHistory(of current: FeedImage, _ index: Int, after last: UInt64) throws(SQLiteError) -> UInt64? {
    let bin = current.remembering[index]
    packed.removeAll(keepingCapacity: packed.capacity <= Schema.pageSize * 2)
    let newest = current.packChanges(
      of: bin, after: last, upTo: image.revision, most: Self.bytesOfRow, into: &packed)
    guard let newest else { return nil }
    try insertHistory.bind(Schema.base(of: feed) + historyChunks, at: 1)
    try insertHistory.bind(bin ?? -1, at: 2)
    try insertHistory.bind(lentBlob: packed.bytes, at: 3)
    try insertHistory.run()
    bytes += packed.count
    historyChunks += 1
    return newest
  }
}
