import FeedJSON

/// Recent changes as bytes, all numbers little-endian: the revision after the change and its moment in 8 bytes each, the
/// number of words in 4, the words in 4 each; then the next.
public enum HistoryRecords {
  static let headLength = 20

  /// Reads records until the bytes end; nil when they do not end with a record.
  public static func read(_ bytes: UnsafeRawBufferPointer) -> [HistoryDump.Record]? {
    var records: [HistoryDump.Record] = []
    var offset = 0
    while offset < bytes.count {
      guard bytes.count - offset >= headLength else { return nil }
      let to = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      let at = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self))
      let count = Int(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 16, as: UInt32.self)))
      offset += headLength
      guard (bytes.count - offset) / 4 >= count else { return nil }
      let words = (0..<count).map { place in
        UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + place * 4, as: UInt32.self))
      }
      offset += count * 4
      records.append(.init(to: to, at: Instant(nanoseconds: at), words: words))
    }
    return records
  }
}

extension History {
  /// Appends the records after one revision and up to another as bytes: at least one, if there is one, and no more than fit in
  /// `most` bytes. Returns the last one's revision; nil when there is none. O(log n + bytes), without allocation.
  func pack(after last: UInt64, upTo revision: UInt64, most: Int, into out: inout ByteBuffer) -> UInt64? {
    var place = max(self.place(after: last), first)
    let start = out.count
    var newest: UInt64?
    while place < records.count, records[place].to <= revision {
      let record = records[place]
      let end = place + 1 < records.count ? records[place + 1].start : words.end
      let size = HistoryRecords.headLength + Int(end &- record.start) * 4
      if newest != nil && out.count - start + size > most { break }
      Self.append(record.to, to: &out)
      Self.append(record.at.nanoseconds, to: &out)
      Self.append(UInt32(truncatingIfNeeded: end &- record.start), to: &out)
      for position in record.start..<end { Self.append(words[position], to: &out) }
      newest = record.to
      place += 1
    }
    return newest
  }

  private static func append(_ number: some FixedWidthInteger, to out: inout ByteBuffer) {
    withUnsafeBytes(of: number.littleEndian) { out.append($0) }
  }
}
