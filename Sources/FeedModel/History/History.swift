import FeedChange
import FeedJSON

/// The recent changes of one feed, oldest first, for watchers that fell behind or come back.
///
/// Only positions are kept, packed into 32-bit words in a ring: the elements of a composed change are read from the feed
/// as it is now. Appending a change of one row costs a few words and, once the ring has grown, no allocation.
/// Guarded by the engine's thread.
public final class History {
  struct Record {
    /// The feed's revision after the change.
    let to: UInt64
    /// Where the words of the change begin, counted from the first word ever written.
    let start: UInt64
    let at: Instant
  }

  /// The revision from which the kept changes lead on; an older watcher is out of reach.
  public private(set) var base: UInt64
  /// The revision to which they lead.
  public private(set) var end: UInt64
  private(set) var words = WordRing()
  private(set) var records: [Record] = []
  /// Records before this one are trimmed.
  private(set) var first = 0

  init(base: UInt64) {
    self.base = base
    end = base
  }

  /// How many changes are kept.
  public var count: Int { records.count - first }
  /// Bytes that the kept changes occupy.
  public var bytes: Int { words.count * 4 + count * MemoryLayout<Record>.stride }

  /// Appends a change with its sections shifted. It is only read; it is lent so that none of its lists is counted as used twice.
  func append(_ change: inout Change, shift: UInt32 = 0, to revision: UInt64, at now: Instant) {
    records.append(Record(to: revision, start: words.end, at: now))
    end = revision
    words.append(&change, shift: shift)
  }

  /// Whether a watcher at `revision` can be brought up to date from here.
  public func reaches(_ revision: UInt64) -> Bool {
    revision >= base
  }

  /// The place of the first change that a watcher at `revision` has not seen; places stay valid while not trimmed.
  public func place(after revision: UInt64) -> Int {
    (first..<records.count).partitionPoint { records[$0].to <= revision }
  }

  /// One past the place of the last change.
  public var endPlace: Int { records.count }

  /// The change at a place and the revision it leads to; nil when there is none.
  public func change(at place: Int) -> (change: Change, to: UInt64)? {
    guard place >= first, place < records.count else { return nil }
    return (words.change(at: records[place].start), records[place].to)
  }

  /// Lets go of the oldest changes beyond `bytes` and of those made before `moment`. Amortised O(1) a change.
  public func trim(bytes most: Int, before moment: Instant) {
    while first < records.count, bytes > most || records[first].at < moment {
      base = records[first].to
      first += 1
      words.trim(to: first < records.count ? records[first].start : words.end)
    }
  }

  /// Moves the kept records to the front of their array once more than half of it is trimmed; places change.
  public func compact() {
    guard first > 1024, first * 2 > records.count else { return }
    records.removeFirst(first)
    first = 0
  }

  /// Appends a change that was packed before; false when its words are not one change.
  func append(words packed: [UInt32], to revision: UInt64, at now: Instant) -> Bool {
    guard WordRing.isOneChange(packed) else { return false }
    records.append(Record(to: revision, start: words.end, at: now))
    end = revision
    for word in packed { words.append(word) }
    return true
  }

  /// Forgets everything: nobody can be brought up to date from before `revision`.
  func restart(at revision: UInt64) {
    first = records.count
    words.trim(to: words.end)
    (base, end) = (revision, revision)
  }
}

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
