import FeedChange
import FeedJSON

/// A change as words of a ring.
///
/// A change of one row takes two words, or four if the row moved: the head, which has the kind of the change in its lowest
/// bits and the section in the others, and the row. Any other change is a head, six counts and the lists. A list whose rows
/// are mostly neighbours is stored as runs: their number, then for each its section, first row and length. So an update
/// that adds many elements at the end of a bin takes a few words.
extension WordRing {
  private static let general: UInt32 = 0
  private static let deleted: UInt32 = 1
  private static let added: UInt32 = 2
  private static let updated: UInt32 = 3
  private static let moved: UInt32 = 4
  private static let kindBits: UInt32 = 3
  private static let kinds: UInt32 = 7

  /// The bit of a general head that says that list number `list` is stored as runs.
  private static func runs(_ list: Int) -> UInt32 { 1 &<< (kindBits &+ UInt32(list)) }

  /// The words of a general change before its lists.
  private static let wordsBeforeLists = 7

  /// The number of words that suffice for a change that lists so many entries, without the names of sections.
  static func words(ofEntries entries: Int) -> Int { wordsBeforeLists &+ 2 &* entries }

  // MARK: Writing

  /// Appends a change with `shift` added to its sections. The change is not modified; `inout` avoids reference counting.
  /// - Parameter pace: lets the work stop; nothing may then read or change the ring.
  mutating func append(_ change: inout Change, shift: UInt32 = 0, _ pace: Pace? = nil) {
    if let row = change.onlyRow(shift: shift), append(short: row) { return }
    let runs = (
      Self.runs(in: change.deleted, pace), Self.runs(in: change.added, pace), Self.runs(in: change.updated, pace)
    )
    reserve(
      Self.words(ofEntries: change.deleted.count &+ change.added.count &+ change.updated.count &+ change.moves.count)
        &+ change.sectionsDeleted.count, pace)
    var head = Self.general
    if runs.0 != nil { head |= Self.runs(0) }
    if runs.1 != nil { head |= Self.runs(1) }
    if runs.2 != nil { head |= Self.runs(2) }
    append(head)
    append(UInt32(truncatingIfNeeded: change.deleted.count))
    append(UInt32(truncatingIfNeeded: change.added.count))
    append(UInt32(truncatingIfNeeded: change.updated.count))
    append(UInt32(truncatingIfNeeded: change.moves.count))
    append(UInt32(truncatingIfNeeded: change.sectionsDeleted.count))
    append(UInt32(truncatingIfNeeded: change.sectionsAdded.count))
    append(change.deleted, runs.0, shift, pace)
    append(change.added, runs.1, shift, pace)
    append(change.updated, runs.2, shift, pace)
    // Iterates by index: an iterator would count references.
    for index in change.moves.indices {
      append(change.moves[index].deleted)
      append(change.moves[index].added | (change.moves[index].keepsElement ? StoredChange.keepsElement : 0))
      if index & 2047 == 2047 { pace?.spend(Self.unitsPerStep) }
    }
    for index in change.sectionsDeleted.indices { append(change.sectionsDeleted[index] &+ shift) }
    for index in change.sectionsAdded.indices {
      append(change.sectionsAdded[index].at &+ shift)
      let kind = change.sectionsAdded[index].isByValue ? StoredChange.namedByValue : 0
      change.sectionsAdded[index].withNameBytes { append(name: $0, kind) }
    }
  }

  /// The units of work to write 4096 words to memory that was not touched before.
  private static var unitsPerStep: Int { 16 }
  /// The paths that are appended between two stops.
  private static var pathsPerStep: Int { 2048 }

  /// The number of runs of neighbouring rows in a list; nil if they take more words than the rows.
  private static func runs(in paths: [IndexPath], _ pace: Pace?) -> Int? {
    if paths.count < 2 { return nil }
    let most = (2 &* paths.count &- 1) / 3
    var runs = 1
    for index in 1..<paths.count {
      if paths[index].section != paths[index &- 1].section || paths[index].row != paths[index &- 1].row &+ 1 {
        runs &+= 1
        if runs > most { return nil }
      }
      if index & 16_383 == 0 { pace?.spend(16) }
    }
    return runs
  }

  private mutating func append(_ paths: [IndexPath], _ runs: Int?, _ shift: UInt32, _ pace: Pace?) {
    if let runs { return append(paths, runs: runs, shift, pace) }
    var start = 0
    while start < paths.count {
      let next = min(start &+ Self.pathsPerStep, paths.count)
      append(paths, start..<next, shift)
      if next &- start == Self.pathsPerStep { pace?.spend(Self.unitsPerStep) }
      start = next
    }
  }

  private mutating func append(_ paths: [IndexPath], runs: Int, _ shift: UInt32, _ pace: Pace?) {
    append(UInt32(truncatingIfNeeded: runs))
    var start = 0
    for index in 1...paths.count {
      if index & 16_383 == 0 { pace?.spend(16) }
      if index < paths.count, paths[index].section == paths[start].section,
        paths[index].row == paths[index &- 1].row &+ 1
      {
        continue
      }
      append(paths[start].section &+ shift)
      append(paths[start].row)
      append(UInt32(truncatingIfNeeded: index &- start))
      start = index
    }
  }

  @inline(__always)
  private mutating func append(_ paths: [IndexPath], _ range: Range<Int>, _ shift: UInt32) {
    // A loop over plain memory becomes vector instructions.
    let isWritten = append(2 &* range.count) { words in
      paths.withUnsafeBufferPointer { paths in
        for index in range {
          let word = (paths[index].packed &>> 32 &+ UInt64(shift)) & UInt64(UInt32.max) | paths[index].packed &<< 32
          words.storeBytes(of: word.littleEndian, toByteOffset: (index &- range.lowerBound) &* 8, as: UInt64.self)
        }
      }
    }
    if isWritten { return }
    for index in range {
      append(paths[index].section &+ shift)
      append(paths[index].row)
    }
  }

  mutating func append(_ row: ChangeOfOne) {
    if append(short: row) { return }
    var change = Change(row)
    append(&change)
  }

  /// Appends a word and the change of one row in the short form of two words. Returns false, without any effect, if the change
  /// takes more, or if the words do not fit the ring as it is.
  @inline(__always)
  mutating func append(_ word: UInt32, short row: ChangeOfOne) -> Bool {
    if case .moved = row { return false }
    guard let head = Self.head(of: row) else { return false }
    return append(word, head.word, head.row)
  }

  /// Appends the change of one row in the short form. Returns false if the section is too large for it.
  @inline(__always)
  private mutating func append(short row: ChangeOfOne) -> Bool {
    guard let head = Self.head(of: row) else { return false }
    append(head.word)
    append(head.row)
    if case .moved(_, let to) = row {
      append(to.section)
      append(to.row)
    }
    return true
  }

  /// The first two words of the short form; nil if the section is too large for it.
  @inline(__always)
  private static func head(of row: ChangeOfOne) -> (word: UInt32, row: UInt32)? {
    let (path, kind): (IndexPath, UInt32)
    switch row {
    case .deleted(let place): (path, kind) = (place, deleted)
    case .added(let place): (path, kind) = (place, added)
    case .updated(let place): (path, kind) = (place, updated)
    case .moved(let from, _): (path, kind) = (from, moved)
    }
    return path.section <= UInt32.max &>> kindBits ? (path.section &<< kindBits | kind, path.row) : nil
  }

  private mutating func append(name: UnsafeRawBufferPointer, _ kind: UInt32) {
    let count = name.count
    reserve(1 &+ (count &+ 3) / 4)
    append(UInt32(truncatingIfNeeded: count) | kind)
    var place = 0
    while place &+ 4 <= count {
      append(UInt32(littleEndian: name.loadUnaligned(fromByteOffset: place, as: UInt32.self)))
      place &+= 4
    }
    if place == count { return }
    var (word, shift) = (UInt32(0), UInt32(0))
    while place < count {
      word |= UInt32(name[place]) &<< shift
      shift &+= 8
      place &+= 1
    }
    append(word)
  }

  // MARK: Reading

  /// The number of words of the change at `start`, which ends before `end`, if no list were stored as runs and it had no short
  /// form: six counts and the lists. O(1).
  func plainCount(from start: UInt64, to end: UInt64) -> Int {
    let head = self[start]
    switch head & Self.kinds {
    case Self.general: break
    case Self.moved: return 12
    default: return 8
    }
    var count = Int(end &- start) &- 1
    var list = start &+ UInt64(Self.wordsBeforeLists)
    for index in 0..<3 {
      let plain = 2 &* Int(self[start &+ 1 &+ UInt64(index)])
      var stored = plain
      if head & Self.runs(index) != 0 { stored = 1 &+ 3 &* Int(self[list]) }
      count &+= plain &- stored
      list &+= UInt64(stored)
    }
    return count
  }

  /// The position after the last word of the change at `start`. O(1) unless it adds sections.
  func endOfChange(at start: UInt64) -> UInt64 {
    let head = self[start]
    switch head & Self.kinds {
    case Self.general: break
    case Self.moved: return start &+ 4
    default: return start &+ 2
    }
    var end = start &+ UInt64(Self.wordsBeforeLists)
    for list in 0..<3 {
      end &+=
        head & Self.runs(list) != 0
        ? 1 &+ 3 &* UInt64(self[end]) : 2 &* UInt64(self[start &+ 1 &+ UInt64(list)])
    }
    end &+= 2 &* UInt64(self[start &+ 4]) &+ UInt64(self[start &+ 5])
    for _ in 0..<self[start &+ 6] {
      let length = self[end &+ 1] & ~StoredChange.namedByValue
      end &+= 2 &+ (UInt64(length) &+ 3) / 4
    }
    return end
  }

  /// The position after the change at `start`, whose words may be anything; nil if they are not a whole change.
  func verifiedEndOfChange(at start: UInt64) -> UInt64? {
    let left = end &- start
    guard left > 0 else { return nil }
    let head = self[start]
    switch head & Self.kinds {
    case Self.general: break
    case Self.deleted, Self.added, Self.updated: return left >= 2 ? start &+ 2 : nil
    case Self.moved: return left >= 4 ? start &+ 4 : nil
    default: return nil
    }
    guard left >= UInt64(Self.wordsBeforeLists) else { return nil }
    var place = start &+ UInt64(Self.wordsBeforeLists)
    for list in 0..<3 {
      let count = UInt64(self[start &+ 1 &+ UInt64(list)])
      guard count <= Self.mostEntries else { return nil }
      if head & Self.runs(list) == 0 {
        place &+= 2 &* count
      } else {
        guard place < end else { return nil }
        let after = place &+ 1 &+ 3 &* UInt64(self[place])
        guard after <= end else { return nil }
        var sum: UInt64 = 0
        while place &+ 1 < after {
          place &+= 3
          sum &+= UInt64(self[place])
        }
        guard sum == count else { return nil }
        place = after
      }
      guard place <= end else { return nil }
    }
    place &+= 2 &* UInt64(self[start &+ 4]) &+ UInt64(self[start &+ 5])
    for _ in 0..<self[start &+ 6] {
      guard place &+ 1 < end else { return nil }
      let length = self[place &+ 1] & ~StoredChange.namedByValue
      place &+= 2 &+ (UInt64(length) &+ 3) / 4
    }
    return place <= end ? place : nil
  }

  /// The most rows that a list of a stored change may have.
  private static var mostEntries: UInt64 { 1 << 26 }

  /// Reads the change whose words begin at `position`.
  func change(at position: UInt64) -> Change {
    var change = Change()
    var reader = Reader(position: position)
    let head = reader.next(self)
    let section = head &>> Self.kindBits
    switch head & Self.kinds {
    case Self.deleted: change.deleted = [IndexPath(section: section, row: reader.next(self))]
    case Self.added: change.added = [IndexPath(section: section, row: reader.next(self))]
    case Self.updated: change.updated = [IndexPath(section: section, row: reader.next(self))]
    case Self.moved:
      let from = IndexPath(section: section, row: reader.next(self))
      change = Change(.moved(from: from, to: reader.path(self)))
    default:
      let counts = (0..<6).map { _ in Int(reader.next(self)) }
      change.deleted = reader.paths(counts[0], inRuns: head & Self.runs(0) != 0, self)
      change.added = reader.paths(counts[1], inRuns: head & Self.runs(1) != 0, self)
      change.updated = reader.paths(counts[2], inRuns: head & Self.runs(2) != 0, self)
      change.moves = (0..<counts[3]).map { _ in
        let (deleted, added) = (reader.next(self), reader.next(self))
        return StoredChange.move(deleted, added)
      }
      change.sectionsDeleted = (0..<counts[4]).map { _ in reader.next(self) }
      change.sectionsAdded = (0..<counts[5]).map { _ in reader.section(self) }
    }
    return change
  }

  private struct Reader {
    var position: UInt64

    mutating func next(_ ring: borrowing WordRing) -> UInt32 {
      position &+= 1
      return ring[position &- 1]
    }

    mutating func path(_ ring: borrowing WordRing) -> IndexPath {
      let section = next(ring)
      return IndexPath(section: section, row: next(ring))
    }

    mutating func paths(_ count: Int, inRuns: Bool, _ ring: borrowing WordRing) -> [IndexPath] {
      if !inRuns { return (0..<count).map { _ in path(ring) } }
      var paths: [IndexPath] = []
      paths.reserveCapacity(count)
      for _ in 0..<next(ring) {
        let first = path(ring)
        for row in 0..<next(ring) { paths.append(IndexPath(section: first.section, row: first.row &+ row)) }
      }
      return paths
    }

    mutating func section(_ ring: borrowing WordRing) -> SectionAddition {
      let (at, head) = (next(ring), next(ring))
      let count = Int(head & ~StoredChange.namedByValue)
      var word: UInt32 = 0
      let bytes = (0..<count).map { place in
        word = place & 3 == 0 ? next(ring) : word &>> 8
        return UInt8(truncatingIfNeeded: word)
      }
      return bytes.withUnsafeBytes {
        SectionAddition(at: at, name: $0, isByValue: head & StoredChange.namedByValue != 0)
      }
    }
  }
}

extension Change {
  /// The change if it is that of one row, with `shift` added to its sections.
  @inline(__always)
  fileprivate func onlyRow(shift: UInt32) -> ChangeOfOne? {
    if size == 1 {
      if let path = updated.first { return .updated(path.shifted(by: shift)) }
      if let path = deleted.first { return .deleted(path.shifted(by: shift)) }
      return added.first.map { .added($0.shifted(by: shift)) }
    }
    guard size == 2, moves.count == 1, !moves[0].keepsElement, let from = deleted.first, let to = added.first else {
      return nil
    }
    return .moved(from: from.shifted(by: shift), to: to.shifted(by: shift))
  }
}
