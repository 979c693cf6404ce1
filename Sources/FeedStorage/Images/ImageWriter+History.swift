import FeedJSON
import FeedModel
import FeedSQLite

extension ImageWriter {
  /// Words of changes that one part writes.
  private static let wordsPerPart = 16 << 10

  /// Writes further recent changes. Returns the last revision written; nil when there are no more.
  func writeHistory(of current: FeedImage, _ index: Int, after last: UInt64) throws(SQLiteError) -> UInt64? {
    let bin = current.remembering[index]
    let records = current.changes(of: bin, after: last, upTo: image.revision, maxWords: Self.wordsPerPart)
    guard let newest = records.last?.to else { return nil }
    var packed = ByteBuffer()
    for record in records { HistoryRecords.append(record, to: &packed) }
    try insertHistory.bind(Schema.base(of: feed) + historyChunks, at: 1)
    try insertHistory.bind(bin ?? -1, at: 2)
    try insertHistory.bind(lentBlob: packed.bytes, at: 3)
    try insertHistory.run()
    bytes += packed.count
    historyChunks += 1
    return newest
  }
}
