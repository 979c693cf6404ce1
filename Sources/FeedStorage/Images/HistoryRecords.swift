import FeedJSON
import FeedModel

/// Recent changes as bytes, all numbers little-endian: the revision after the change and its moment in 8 bytes each, the
/// number of words in 4, the words in 4 each; then the next.
enum HistoryRecords {
  static func append(_ record: HistoryDump.Record, to out: inout ByteBuffer) {
    append(record.to, to: &out)
    append(record.at.nanoseconds, to: &out)
    append(UInt32(truncatingIfNeeded: record.words.count), to: &out)
    for word in record.words { append(word, to: &out) }
  }

  /// Reads records until the bytes end; nil when they do not end with a record.
  static func read(_ bytes: UnsafeRawBufferPointer) -> [HistoryDump.Record]? {
    var records: [HistoryDump.Record] = []
    var offset = 0
    while offset < bytes.count {
      guard bytes.count - offset >= 20 else { return nil }
      let to = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      let at = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self))
      let count = Int(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 16, as: UInt32.self)))
      offset += 20
      guard (bytes.count - offset) / 4 >= count else { return nil }
      let words = (0..<count).map { place in
        UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + place * 4, as: UInt32.self))
      }
      offset += count * 4
      records.append(.init(to: to, at: Instant(nanoseconds: at), words: words))
    }
    return records
  }

  private static func append(_ number: some FixedWidthInteger, to out: inout ByteBuffer) {
    withUnsafeBytes(of: number.littleEndian) { out.append($0) }
  }
}
