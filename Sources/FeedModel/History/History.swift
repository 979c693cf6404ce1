import FeedChange
import FeedJSON

/// The recorded changes of one feed, oldest first, for watches that fall behind or resume.
///
/// Only positions are recorded, as 32-bit words in a ring; elements are read from the feed when a change is sent. A record is
/// a stamp and a change; see ``WordRing``. The stamp tells how much later the revision and the time are than those of the
/// record before, in one word if that is little. So a commit of one row takes three words, and no allocation once the ring has
/// grown. Marks, one for 64 records, allow to find a record without reading all before it.
///
/// Invariant: the revisions ascend. `base` is the revision before the first record, or the revision of that record if the
/// commit that defined the feed also changed it. `end` is the revision of the last record. Marks are at the ordinals that are
/// multiples of 64.
///
/// Not thread-safe.
public final class History {
  /// A place between two records.
  private struct Cursor {
    /// The number of records that were ever before the place, those that were discarded included.
    var ordinal = 0
    /// The position in the ring of the record after the place.
    var position: UInt64 = 0
    /// The revision and the time of the record before the place.
    var to: UInt64
    var at: UInt64 = 0
  }

  /// The revision before the first record. A watcher at an older revision needs a snapshot.
  public private(set) var base: UInt64
  /// The revision after the last change.
  public private(set) var end: UInt64
  public private(set) var count = 0
  /// The bytes of the records in plain form, more than in memory, which limit what is kept: 24 each, and their changes.
  public private(set) var bytes = 0
  private var words = WordRing()
  private var marks: [Cursor] = []
  /// The place before the first record.
  private var first: Cursor
  /// The place after the record that was read last. Records are mostly read in order.
  private var hint: Cursor
  /// The time of the last record.
  private var time: UInt64 = 0
  /// Whether ``prepare(for:_:)`` has begun and not ended. It may stop between two steps; the ring must stay as it is until it goes on.
  private var isPreparing = false

  private static let recordsPerMark = 64
  /// The bytes with which a record counts besides its change.
  private static let bytesOfRecord = 24

  init(base: UInt64) {
    (self.base, end) = (base, base)
    first = Cursor(to: base)
    hint = first
  }

  /// The bytes of the memory of the records.
  public var memory: Int { words.capacity * 4 + marks.count * MemoryLayout<Cursor>.stride }

  /// Prepares to append a change of so many entries (`Change.size`), so that this takes little time then. O(entries).
  /// - Parameter pace: lets the work stop. Others may read the history meanwhile; what they want to discard stays until later.
  func prepare(for entries: Int, _ pace: Pace) {
    isPreparing = true
    words.prepare(Self.longStamp &+ WordRing.words(ofEntries: entries), pace)
    isPreparing = false
  }

  /// Appends a change with `shift` added to its sections. The change is not modified; `inout` avoids reference counting.
  /// - Parameter pace: lets the work stop; nothing may then read or trim the history.
  func append(_ change: inout Change, shift: UInt32 = 0, to revision: UInt64, at moment: Instant, _ pace: Pace? = nil) {
    begin(revision, at: moment)
    let start = words.end
    words.append(&change, shift: shift, pace)
    finish(plainWords: words.plainCount(from: start, to: words.end))
  }

  @inline(__always)
  func append(_ row: ChangeOfOne, to revision: UInt64, at moment: Instant) {
    if !appendShort(row, to: revision, at: moment) { appendLong(row, to: revision, at: moment) }
    finish(plainWords: 4 &+ 4 &* row.size)
  }

  @inline(never)
  private func appendLong(_ row: ChangeOfOne, to revision: UInt64, at moment: Instant) {
    begin(revision, at: moment)
    words.append(row)
  }

  /// Appends a record of three words, as most are, without the count. Returns false, without any effect, if the record is longer,
  /// begins at a mark or does not fit the ring as it is.
  @inline(__always)
  private func appendShort(_ row: ChangeOfOne, to revision: UInt64, at moment: Instant) -> Bool {
    guard !isAtMark, let stamp = stamp(revision, moment), words.append(stamp, short: row) else { return false }
    (end, time) = (revision, moment.nanoseconds)
    return true
  }

  // MARK: Stamps

  /// The bits of a stamp for the difference of the revisions; 0 in a long stamp, which has the revision and the time itself.
  private static let revisionBits: UInt32 = 4
  private static let revisions: UInt32 = 15
  private static let longStamp = 5

  @inline(__always)
  private func begin(_ revision: UInt64, at moment: Instant) {
    // The commit that defines a feed may also change it. The revision of that change equals `base`.
    assert(revision > end || revision == base && count == 0, "revisions of a history ascend")
    if isAtMark { marks.append(Cursor(ordinal: first.ordinal &+ count, position: words.end, to: end, at: time)) }
    if let stamp = stamp(revision, moment) {
      words.append(stamp)
    } else {
      words.append(0)
      for number in [revision, moment.nanoseconds] {
        words.append(UInt32(truncatingIfNeeded: number))
        words.append(UInt32(truncatingIfNeeded: number &>> 32))
      }
    }
    (end, time) = (revision, moment.nanoseconds)
  }

  @inline(__always)
  private var isAtMark: Bool { (first.ordinal &+ count) % Self.recordsPerMark == 0 }

  /// The stamp of the next record; nil if it takes a long one.
  @inline(__always)
  private func stamp(_ revision: UInt64, _ moment: Instant) -> UInt32? {
    let (more, later) = (revision &- end, moment.nanoseconds &- time)
    guard more > 0, more <= Self.revisions, later <= UInt64(UInt32.max &>> Self.revisionBits) else { return nil }
    return UInt32(truncatingIfNeeded: later) &<< Self.revisionBits | UInt32(truncatingIfNeeded: more)
  }

  @inline(__always)
  private func finish(plainWords: Int) {
    count &+= 1
    bytes &+= Self.bytesOfRecord &+ 4 &* plainWords
  }

  private struct Record {
    let to: UInt64
    let at: UInt64
    /// The positions of the first word of the change and after its last one.
    let start: UInt64
    let end: UInt64
  }

  /// Reads the record after a cursor, and moves the cursor behind it. O(1) unless the change adds sections.
  private func next(_ cursor: inout Cursor) -> Record {
    Self.readStamp(in: words, &cursor)
    let start = cursor.position
    cursor.position = words.endOfChange(at: start)
    cursor.ordinal &+= 1
    return Record(to: cursor.to, at: cursor.at, start: start, end: cursor.position)
  }

  /// Reads the stamp at a cursor, all of which is there, and moves the cursor behind it.
  @inline(__always)
  private static func readStamp(in words: borrowing WordRing, _ cursor: inout Cursor) {
    let (start, stamp) = (cursor.position, words[cursor.position])
    if stamp & revisions != 0 {
      cursor.to &+= UInt64(stamp & revisions)
      cursor.at &+= UInt64(stamp &>> revisionBits)
      cursor.position &+= 1
    } else {
      cursor.to = UInt64(words[start &+ 1]) | UInt64(words[start &+ 2]) &<< 32
      cursor.at = UInt64(words[start &+ 3]) | UInt64(words[start &+ 4]) &<< 32
      cursor.position &+= UInt64(longStamp)
    }
  }

  // MARK: Reading

  /// Whether the records bring a watcher at `revision` up to date.
  public func reaches(_ revision: UInt64) -> Bool { revision >= base }

  /// The place of the first change after `revision`. A place is valid until `trim`. O(log n).
  public func place(after revision: UInt64) -> Int { cursor(after: revision).ordinal }

  private func cursor(after revision: UInt64) -> Cursor {
    if hint.to == revision && isValid(hint) { return hint }
    let last = marks.indices.partitionPoint { marks[$0].to <= revision } - 1
    var cursor = last >= 0 && marks[last].ordinal > first.ordinal ? marks[last] : first
    while cursor.ordinal < first.ordinal &+ count {
      var after = cursor
      if next(&after).to > revision { break }
      cursor = after
    }
    return cursor
  }

  /// The cursor before the record at a valid place. O(1).
  private func cursor(at place: Int) -> Cursor {
    if hint.ordinal == place && isValid(hint) { return hint }
    var cursor = first
    if let newest = marks.first {
      let index = min((place &- newest.ordinal) / Self.recordsPerMark, marks.count &- 1)
      if place >= newest.ordinal, marks[index].ordinal > cursor.ordinal { cursor = marks[index] }
    }
    while cursor.ordinal < place { _ = next(&cursor) }
    return cursor
  }

  private func isValid(_ cursor: Cursor) -> Bool { cursor.ordinal > first.ordinal }

  /// Whether the changes from a valid place on list more than `most` rows, counting some more for each change. O(most).
  public func lists(moreThan most: Int, from place: Int) -> Bool {
    assert(place >= first.ordinal && place <= first.ordinal + count)
    var cursor = cursor(at: place)
    var plain = 0
    while cursor.ordinal < first.ordinal &+ count {
      let record = next(&cursor)
      plain &+= words.plainCount(from: record.start, to: record.end)
      if plain / 2 > most { return true }
    }
    return false
  }

  /// The change at a place and the revision after it; nil if there is none. O(change).
  public func change(at place: Int) -> (change: Change, to: UInt64)? {
    guard place >= first.ordinal, place < first.ordinal + count else { return nil }
    var cursor = cursor(at: place)
    let record = next(&cursor)
    hint = cursor
    return (words.change(at: record.start), record.to)
  }

  // MARK: Discarding

  /// Discards changes made before `moment`, and the oldest ones beyond `bytes`; none during ``prepare(for:_:)``. Amortized O(1) for
  /// each change.
  public func trim(bytes most: Int, before moment: Instant) {
    if isPreparing { return }
    while count > 0 {
      var after = first
      let record = next(&after)
      if bytes <= most && record.at >= moment.nanoseconds { break }
      bytes &-= Self.bytesOfRecord &+ 4 &* words.plainCount(from: record.start, to: record.end)
      count &-= 1
      base = record.to
      first = after
      words.trim(to: first.position)
    }
    #if CHECK_INVARIANTS
      checkInvariants()
    #endif
  }

  /// Frees much memory of discarded changes, but not during ``prepare(for:_:)``. Moves at most `most` words of the others, and returns
  /// how many it moved.
  func compact(moving most: Int) -> Int {
    if isPreparing { return 0 }
    let discarded = marks.indices.partitionPoint { marks[$0].ordinal < first.ordinal }
    if discarded * 8 > marks.count { marks.removeFirst(discarded) }
    return words.shrink(moving: most)
  }

  /// Discards all changes and restarts at `revision`.
  func restart(at revision: UInt64) {
    first = Cursor(ordinal: first.ordinal + count, position: words.end, to: revision, at: time)
    words.trim(to: words.end)
    marks.removeAll()
    (count, bytes) = (0, 0)
    (base, end) = (revision, revision)
  }

  #if CHECK_INVARIANTS
    /// Checks the ends of the records and, of short histories, all records. O(1), or O(n) for at most 64 records.
    func checkInvariants() {
      precondition(first.position == words.start && base <= end, "the ends of a history are wrong")
      guard count <= 64 else { return }
      var (cursor, plain) = (first, 0)
      for _ in 0..<count {
        let former = cursor
        let record = next(&cursor)
        // The revision of the change by the commit that defined the feed is `base`.
        precondition(
          record.to > former.to || record.to == base && former.ordinal == first.ordinal, "revisions do not ascend")
        plain += Self.bytesOfRecord + 4 * words.plainCount(from: record.start, to: record.end)
      }
      precondition(cursor.position == words.end && cursor.to == (count > 0 ? end : cursor.to), "a record is wrong")
      precondition(plain == bytes, "the bytes of a history are wrong")
    }
  #endif

  /// Appends the records after revision `last` up to `revision` to `out`, in the form of ``HistoryRecords``: at least one, and
  /// at most `most` bytes. Returns the revision of the last record appended; nil if there is none.
  ///
  /// O(log n + bytes); most bytes are copied 64 records at a time.
  func pack(after last: UInt64, upTo revision: UInt64, most: Int, into out: inout ByteBuffer) -> UInt64? {
    let start = cursor(after: last)
    var end = start
    let mostWords = UInt64(max(0, most - HistoryRecords.headLength) / 4)
    while end.ordinal < first.ordinal &+ count {
      if let mark = mark(after: end), mark.to <= revision, mark.position &- start.position <= mostWords {
        end = mark
        continue
      }
      var after = end
      let record = next(&after)
      if record.to > revision || end.ordinal > start.ordinal && record.end &- start.position > mostWords { break }
      end = after
    }
    if end.ordinal == start.ordinal { return nil }
    out.reserve(HistoryRecords.headLength + Int(end.position &- start.position) * 4)
    HistoryRecords.appendHead(revision: start.to, at: start.at, to: &out)
    words.copy(from: start.position, to: end.position, to: &out)
    return end.to
  }

  /// The mark after a cursor, if there is one.
  private func mark(after cursor: Cursor) -> Cursor? {
    guard let oldest = marks.first else { return nil }
    let index = (cursor.ordinal &- oldest.ordinal) / Self.recordsPerMark &+ 1
    return index < marks.count ? marks[index] : nil
  }

  /// Reads the records whose words, which may be anything, are in a ring. Returns nil if they are not whole records.
  /// - Parameters:
  ///   - revision: the revision before the first record.
  ///   - time: the time of the record before, in nanoseconds.
  static func records(in words: borrowing WordRing, after revision: UInt64, at time: UInt64) -> [HistoryDump.Record]? {
    var records: [HistoryDump.Record] = []
    var cursor = Cursor(position: words.start, to: revision, at: time)
    while cursor.position < words.end {
      let isShort = words[cursor.position] & Self.revisions != 0
      guard isShort || words.end &- cursor.position >= UInt64(Self.longStamp) else { return nil }
      Self.readStamp(in: words, &cursor)
      guard let end = words.verifiedEndOfChange(at: cursor.position) else { return nil }
      let change = words.change(at: cursor.position)
      records.append(.init(to: cursor.to, at: Instant(nanoseconds: cursor.at), change: change))
      cursor.position = end
    }
    return records
  }
}
