import FeedJSON
import TestSupport
import Testing

@testable import FeedChange
@testable import FeedModel

/// The ring of words and the history of changes, compared with arrays.
struct HistoryTests {
  private static func change(_ random: inout SeededRandom) -> Change {
    func rows() -> [IndexPath] {
      let packed = (0..<Int.random(in: 0..<4, using: &random)).map { _ in
        IndexPath(section: UInt32.random(in: 0...(.max), using: &random), row: UInt32.random(in: 0..<9, using: &random))
      }
      let run = Int.random(in: 0..<4, using: &random) > 0 ? [] : (0..<20).map { IndexPath(section: 7, row: 50 + $0) }
      return Set(packed + run).sorted()
    }
    var change = Change(deleted: rows(), added: rows(), updated: rows())
    for place in 0..<min(change.deleted.count, change.added.count) {
      let keeps = Bool.random(using: &random)
      change.moves.append(Move(deleted: UInt32(place), added: UInt32(place), keepsElement: keeps))
    }
    if Int.random(in: 0..<5, using: &random) == 0 {
      change.sectionsDeleted = [0, .max]
      let names = ["", "inbox/urgent", "é😀", String(repeating: "é", count: 17)]
      change.sectionsAdded = names.enumerated().map { SectionAddition(at: UInt32($0), name: $1) }
    }
    return change
  }

  private static func plainWords(_ change: Change) -> Int {
    let rows = change.deleted.count + change.added.count + change.updated.count + change.moves.count
    let names = change.sectionsAdded.reduce(0) { $0 + 2 + ($1.name.utf8.count + 3) / 4 }
    return 6 + 2 * rows + change.sectionsDeleted.count + names
  }

  @Test(arguments: 1...4) func ringKeepsWordsUntilTrimmed(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var ring = WordRing()
    var words: [UInt32] = []
    var trimmed = 0
    for step in 0..<400 {
      for _ in 0..<Int.random(in: 0..<20, using: &random) {
        let word = UInt32.random(in: 0...(.max), using: &random)
        ring.append(word)
        words.append(word)
      }
      if step % 7 == 0 {
        trimmed = Int.random(in: trimmed...words.count, using: &random)
        ring.trim(to: UInt64(trimmed))
      }
      expectEqual(ring.count, words.count - trimmed)
      expect(ring.start == UInt64(trimmed) && ring.end == UInt64(words.count))
      expect((ring.start..<ring.end).map { ring[$0] } == Array(words[trimmed...]), "seed \(seed)")
    }
  }

  @Test func ringKeepsAChangeThatBeginsAnywhere() {
    let paths = (0..<40).map { IndexPath(section: .max - 2, row: .max - $0) }
    let shifted = paths.map { IndexPath(section: 4, row: $0.row) }
    for start in 0..<130 {
      var ring = WordRing()
      for word in 0..<start {
        ring.append(UInt32(word))
        ring.trim(to: ring.end)
      }
      for order in [paths, paths.reversed()] {
        var change = Change(deleted: order, updated: order)
        let (first, count) = (ring.end, ring.count)
        ring.append(&change, shift: 7)
        let second = ring.end
        ring.append(&change)
        let expected = order == paths ? shifted : shifted.reversed()
        expectEqual(ring.change(at: first), Change(deleted: expected, updated: expected))
        expectEqual(ring.change(at: second), change)
        expectEqual(ring.plainCount(from: first, to: second), 6 + 160)
        // In ascending order the rows are one run.
        expectEqual(ring.count - count, 2 * (order == paths ? 7 + 160 : 7 + 2 * 4))
      }
    }
  }

  @Test func changeOfOneRowIsRecordedLikeItsLists() {
    let (path, other) = (IndexPath(section: .max - 2, row: .max), IndexPath(section: 3, row: 0))
    let rows = [path, other].flatMap { [ChangeOfOne.updated($0), .added($0), .deleted($0)] }
    for row in rows + [.moved(from: path, to: other), .moved(from: other, to: path)] {
      for start in 0..<130 {
        var ring = WordRing()
        var lists = WordRing()
        for word in 0..<start {
          ring.append(UInt32(word))
          lists.append(UInt32(word))
          ring.trim(to: ring.end)
        }
        var change = Change(row)
        ring.append(row)
        lists.append(&change)
        expect(ring.change(at: UInt64(start)) == change && ring.end == lists.end)
        expect(ring.plainCount(from: UInt64(start), to: ring.end) == (row.size == 2 ? 12 : 8))
        expectEqual(ring.verifiedEndOfChange(at: UInt64(start)), ring.end)
        expect((UInt64(start)..<ring.end).map { ring[$0] } == (UInt64(start)..<lists.end).map { lists[$0] })
      }
    }
  }

  @Test(arguments: 1...8) func randomHistories(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let history = History(base: 10)
    var kept: [(change: Change, to: UInt64, at: UInt64)] = []
    var base: UInt64 = 10
    var revision: UInt64 = 10
    for step in 0..<400 {
      revision += UInt64.random(in: 1...3, using: &random)
      var change = Self.change(&random)
      history.append(&change, to: revision, at: Instant(nanoseconds: UInt64(step)))
      kept.append((change, revision, UInt64(step)))
      if Int.random(in: 0..<9, using: &random) == 0 {
        let most = Int.random(in: 0..<4000, using: &random)
        let moment = UInt64(max(0, step - Int.random(in: 0..<80, using: &random)))
        history.trim(bytes: most, before: Instant(nanoseconds: moment))
        _ = history.compact(moving: .max)
        // At most three times what the records need, and the least memory of a ring and of its marks.
        expect(history.memory <= 3 * (history.bytes + 5 * history.count) + 1024, "seed \(seed)")
        let count = history.count
        expect(history.bytes <= most || count == 0, "seed \(seed)")
        if kept.count > count { base = kept[kept.count - count - 1].to }
        kept.removeFirst(kept.count - count)
        expect(kept.allSatisfy { $0.at >= moment }, "seed \(seed)")
      }
      expect(history.base == base && history.end == revision)
      for most in [0, 10, 100, 1000] {
        let rows = kept.reduce(0) { $0 + Self.plainWords($1.change) } / 2
        expect(history.lists(moreThan: most, from: history.place(after: history.base)) == (rows > most), "seed \(seed)")
      }
      if step % 10 == 0 { check(history, kept, base, seed) }
      if step % 50 == 0 { try checkPacked(history, kept, most: Int.random(in: 0..<600, using: &random)) }
    }
  }

  private func check(
    _ history: History, _ kept: [(change: Change, to: UInt64, at: UInt64)], _ base: UInt64, _ seed: UInt64
  ) {
    expect(!history.reaches(base &- 1) && history.reaches(base))
    for revision in base...(history.end + 1) {
      let wanted = kept.filter { $0.to > revision }
      let place = history.place(after: revision)
      expectEqual(history.place(after: history.end) - place, wanted.count, "seed \(seed)")
      guard let first = wanted.first, let found = history.change(at: place) else { continue }
      expect(found.change == first.change && found.to == first.to, "seed \(seed)")
      expectEqual(found.change.moves.map(\.keepsElement), first.change.moves.map(\.keepsElement), "seed \(seed)")
    }
    expect(history.change(at: history.place(after: history.end)) == nil)
  }

  /// The changes are the same after they are packed in parts, read and appended to another history. Rows of the older form are
  /// read too.
  private func checkPacked(
    _ history: History, _ kept: [(change: Change, to: UInt64, at: UInt64)], most: Int
  ) throws {
    var records: [HistoryDump.Record] = []
    var last: UInt64 = 0
    var out = ByteBuffer()
    while let next = history.pack(after: last, upTo: .max, most: most, into: &out) {
      let piece = try require(HistoryRecords.read(out.bytes))
      expect(out.count <= most || piece.count == 1)
      expectEqual(piece.last?.to, next)
      records += piece
      last = next
      out.removeAll(keepingCapacity: true)
    }
    expectEqual(Self.plainRow(records).withUnsafeBytes { HistoryRecords.read($0) }, records)
    let again = try require(History(HistoryDump(base: history.base, records: records)))
    expectEqual(again.count, kept.count)
    for place in 0..<kept.count {
      let found = try require(again.change(at: place))
      expect(found.change == kept[place].change && found.to == kept[place].to)
      expectEqual(found.change.moves.map(\.keepsElement), kept[place].change.moves.map(\.keepsElement))
      expectEqual(records[place].at.nanoseconds, kept[place].at)
    }
  }

  /// A row as images of schema 3 have it.
  private static func plainRow(_ records: [HistoryDump.Record]) -> [UInt8] {
    func bytes(_ number: some FixedWidthInteger) -> [UInt8] { withUnsafeBytes(of: number.littleEndian) { Array($0) } }
    return records.flatMap { record in
      let words = storedWords(of: record.change)
      return bytes(record.to) + bytes(record.at.nanoseconds) + bytes(UInt32(words.count)) + words.flatMap(bytes)
    }
  }

  /// A change in the form of ``StoredChange``.
  private static func storedWords(of change: Change) -> [UInt32] {
    let paths = [change.deleted, change.added, change.updated]
    var words = paths.map { UInt32($0.count) }
    words += [change.moves.count, change.sectionsDeleted.count, change.sectionsAdded.count].map { UInt32($0) }
    for path in paths.joined() { words += [path.section, path.row] }
    for move in change.moves {
      words += [move.deleted, move.added | (move.keepsElement ? StoredChange.keepsElement : 0)]
    }
    words += change.sectionsDeleted
    for section in change.sectionsAdded {
      let name = Array(section.name.utf8)
      words += [section.at, UInt32(name.count) | (section.isByValue ? StoredChange.namedByValue : 0)]
      words += name.map { UInt32($0) }
    }
    return words
  }

  /// Packing ends at a revision, also between two marks.
  @Test func packingStopsAtARevision() throws {
    let history = History(base: 0)
    for step in 1...1000 {
      history.append(.updated(IndexPath(section: 0, row: 7)), to: UInt64(step), at: Instant(nanoseconds: UInt64(step)))
    }
    let cases = [(0, 1000, 100_000), (0, 64, 100_000), (63, 999, 100_000), (500, 501, 0), (3, 900, 900)]
    for (last, revision, most) in cases {
      var out = ByteBuffer()
      let newest = history.pack(after: UInt64(last), upTo: UInt64(revision), most: most, into: &out)
      // A record takes three words, and the head six.
      let count = min(revision - last, max(1, (most / 4 - 6) / 3))
      expect(newest == UInt64(last + count) && out.count == 24 + 12 * count)
      let records = try require(HistoryRecords.read(out.bytes))
      expect(records.map(\.to) == (1...count).map { UInt64(last + $0) })
    }
    var out = ByteBuffer()
    expect(history.pack(after: 1000, upTo: 2000, most: 100, into: &out) == nil && out.isEmpty)
  }

  /// Words that no daemon wrote are refused, or read as as many changes as they say.
  @Test func damagedRowsAreReadWithinTheirBounds() throws {
    var random = SeededRandom(seed: 11)
    var (whole, read) = (0, 0)
    for _ in 0..<300 {
      let history = History(base: 1)
      for step in 2..<Int.random(in: 3..<30, using: &random) {
        var change = Self.change(&random)
        history.append(&change, to: UInt64(step), at: Instant(nanoseconds: UInt64(step)))
      }
      var out = ByteBuffer()
      _ = history.pack(after: 1, upTo: .max, most: 10_000, into: &out)
      for _ in 0..<30 {
        var bytes = Array(out.bytes)
        for _ in 0..<Int.random(in: 1...3, using: &random) {
          let place = Int.random(in: 8..<bytes.count, using: &random)
          bytes[place] = Bool.random(using: &random) ? .random(in: 0...255, using: &random) : 0xff
        }
        if Bool.random(using: &random) { bytes.removeLast(Int.random(in: 0..<bytes.count - 8, using: &random)) }
        whole += 1
        guard let records = bytes.withUnsafeBytes({ HistoryRecords.read($0) }),
          let again = History(HistoryDump(base: 0, records: records))
        else { continue }
        read += 1
        expectEqual(again.count, records.count)
      }
    }
    expect(read > 0 && read < whole)
  }

  /// With many small changes and few bytes, trimming discards no more than necessary.
  @Test func trimmingDiscardsNoMoreThanNeeded() {
    let history = History(base: 0)
    for step in 1...5000 {
      var change = Change(added: [IndexPath(section: 0, row: UInt32(step))])
      history.append(&change, to: UInt64(step), at: Instant(nanoseconds: 0))
    }
    let each = history.bytes / 5000
    history.trim(bytes: each * 100, before: Instant(nanoseconds: 0))
    expect(history.count == 100 && history.base == 4900)
    expectEqual(history.compact(moving: 0), 0)
    let full = history.memory
    expect(history.compact(moving: .max) == 300 && history.memory < full / 20)
    expectEqual(history.change(at: history.place(after: 4950))?.to, 4951)
    history.trim(bytes: 0, before: Instant(nanoseconds: 0))
    expect(history.count == 0 && history.base == 5000 && history.reaches(5000) && !history.reaches(4999))
  }
}
