import FeedChange
import FeedJSON

/// The recorded changes of one feed, oldest first, for watches that fall behind or resume.
///
/// Only positions are recorded, as 32-bit words in a ring; elements are read from the feed when a change is sent.
/// Appending a change of one row takes a few words, and no allocation once the ring has grown.
///
/// Invariant: the revisions and the starts of the records ascend. `base` is the revision before the first record, or
/// the revision of that record if the commit that defined the feed also changed it. `end` is the revision of the last
/// record.
///
/// Not thread-safe.
public final class History {
  struct Record {
    /// The feed's revision after the change.
    let to: UInt64
    /// The position in the ring of the first word of the change.
    let start: UInt64
    let at: Instant
  }

  /// The revision before the first record. A watcher at an older revision needs a snapshot.
  public private(set) var base: UInt64
  /// The revision after the last change.
  public private(set) var end: UInt64
  private(set) var words = WordRing()
  private(set) var records: [Record] = []
  /// The index of the first record that was not discarded.
  private(set) var first = 0

  init(base: UInt64) {
    self.base = base
    end = base
  }

  /// The number of records.
  public var count: Int { records.count - first }
  /// The bytes of the records.
  public var bytes: Int { words.count * 4 + count * MemoryLayout<Record>.stride }

  /// Prepares to append a change of so many entries (`Change.size`), so that this takes little time then. O(entries).
  func prepare(for entries: Int, _ pace: Pace) { words.prepare(WordRing.words(ofEntries: entries), pace) }

  /// Appends a change with `shift` added to its sections. The change is not modified; `inout` avoids reference counting.
  ///
  /// - Parameter pace: lets the work stop; nothing may then read or trim the history.
  func append(_ change: inout Change, shift: UInt32 = 0, to revision: UInt64, at now: Instant, _ pace: Pace? = nil) {
    begin(revision, at: now)
    words.append(&change, shift: shift, pace)
  }

  /// Appends the change of one row.
  func append(_ row: ChangeOfOne, to revision: UInt64, at now: Instant) {
    begin(revision, at: now)
    words.append(row)
  }

  @inline(__always)
  private func begin(_ revision: UInt64, at now: Instant) {
    // The commit that defines a feed may also change it. The revision of that change equals `base`.
    assert(revision > end || revision == base && count == 0, "revisions of a history ascend")
    records.append(Record(to: revision, start: words.end, at: now))
    end = revision
  }

  /// Whether the records bring a watcher at `revision` up to date.
  public func reaches(_ revision: UInt64) -> Bool {
    revision >= base
  }

  /// The place of the first change after `revision`. A place is valid until `trim` or `compact`. O(log n).
  public func place(after revision: UInt64) -> Int {
    (first..<records.count).partitionPoint { records[$0].to <= revision }
  }

  /// At least the number of entries that the changes from a valid place on list, and some more for each change. O(1).
  public func size(from place: Int) -> Int {
    assert(place >= first)
    return place < records.count ? Int(words.end &- records[place].start) / 2 : 0
  }

  /// The change at a place and the revision after it; nil if there is none.
  public func change(at place: Int) -> (change: Change, to: UInt64)? {
    guard place >= first, place < records.count else { return nil }
    return (words.change(at: records[place].start), records[place].to)
  }

  /// Discards changes made before `moment`, and the oldest ones beyond `bytes`. Amortized O(1) for each change.
  public func trim(bytes most: Int, before moment: Instant) {
    while first < records.count, bytes > most || records[first].at < moment {
      base = records[first].to
      first += 1
      words.trim(to: first < records.count ? records[first].start : words.end)
    }
    #if CHECK_INVARIANTS
      checkInvariants()
    #endif
  }

  /// Frees the memory of discarded records once they are more than half. Invalidates places.
  public func compact() {
    guard first > 1024, first * 2 > records.count else { return }
    records.removeFirst(first)
    first = 0
  }

  /// Appends a packed change. Returns false if the words are not exactly one valid change.
  func append(words packed: [UInt32], to revision: UInt64, at now: Instant) -> Bool {
    guard WordRing.isOneChange(packed) else { return false }
    records.append(Record(to: revision, start: words.end, at: now))
    end = revision
    for word in packed { words.append(word) }
    return true
  }

  /// Discards all changes and restarts at `revision`.
  func restart(at revision: UInt64) {
    first = records.count
    words.trim(to: words.end)
    (base, end) = (revision, revision)
  }

  #if CHECK_INVARIANTS
    /// Checks the ends of the records and, of short histories, their order. O(1), or O(n) for at most 64 records.
    func checkInvariants() {
      precondition(first <= records.count && base <= end, "the ends of a history are wrong")
      guard first < records.count, let last = records.last else { return }
      // The revision of the change by the commit that defined the feed is `base`.
      precondition(records[first].to >= base && last.to == end, "the revisions of a history are wrong")
      precondition(records[first].start == words.start, "the words of a history do not begin with its first record")
      guard count <= 64 else { return }
      for place in (first + 1)..<max(records.count, first + 1) {
        let (former, record) = (records[place - 1], records[place])
        precondition(record.to > former.to && record.start > former.start, "the records of a history are not ascending")
      }
    }
  #endif
}

/// The stored form of a history. A record is the revision after the change and its time in 8 bytes each, the number of
/// words in 4 bytes, and the words in 4 bytes each, all little-endian.
public enum HistoryRecords {
  static let headLength = 20

  /// Reads all records; nil if the last one is incomplete.
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
  /// Appends the records after revision `last` up to `revision` to `out`: at least one, and at most `most` bytes.
  /// Returns the revision of the last record appended; nil if there is none. O(log n + bytes), without allocation.
  func pack(after last: UInt64, upTo revision: UInt64, most: Int, into out: inout ByteBuffer) -> UInt64? {
    var place = max(self.place(after: last), first)
    let start = out.count
    var newest: UInt64?
    while place < records.count, records[place].to <= revision {
      let record = records[place]
      let end = place + 1 < records.count ? records[place + 1].start : words.end
      let count = words.storedCount(from: record.start, to: end)
      let size = HistoryRecords.headLength + count * 4
      if newest != nil && out.count - start + size > most { break }
      out.reserve(size)
      out.append(littleEndian: record.to)
      out.append(littleEndian: record.at.nanoseconds)
      out.append(littleEndian: UInt32(truncatingIfNeeded: count))
      words.appendStored(from: record.start, to: end, to: &out)
      newest = record.to
      place += 1
    }
    return newest
  }
}

extension ByteBuffer {
  /// Appends a number for which there is room.
  @inline(__always)
  mutating func append(littleEndian number: some FixedWidthInteger) {
    let place = UnsafeMutableRawPointer(pointer) + count
    place.storeBytes(of: number.littleEndian, as: type(of: number.littleEndian))
    didWrite(MemoryLayout.size(ofValue: number))
  }
}
