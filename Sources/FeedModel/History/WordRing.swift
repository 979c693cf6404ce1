import FeedChange
import FeedJSON

/// A growing ring of 32-bit words. The position of a word is the number of words written before it.
///
/// Invariant: `start` is at most `end`, and the ring holds at most `mask + 1` words.
struct WordRing: ~Copyable {
  private var storage: UnsafeMutablePointer<UInt32>
  private var mask: UInt64
  /// The position of the oldest word, and the position after the newest.
  private(set) var start: UInt64 = 0
  private(set) var end: UInt64 = 0

  init() {
    mask = 63
    storage = .allocate(capacity: 64)
    storage.initialize(repeating: 0, count: 64)
  }

  deinit {
    storage.deallocate()
  }

  var count: Int { Int(end &- start) }

  subscript(position: UInt64) -> UInt32 {
    assert(position >= start && position < end)
    return storage[Int(position & mask)]
  }

  mutating func append(_ word: UInt32) {
    if end &- start > mask { grow() }
    storage[Int(end & mask)] = word
    end &+= 1
  }

  /// Discards the words before `position`.
  mutating func trim(to position: UInt64) {
    assert(position >= start && position <= end)
    start = position
  }

  /// Makes room for so many words and touches their memory, so that appending them takes little time.
  mutating func prepare(_ more: Int, _ pace: Pace) {
    reserve(more, pace)
    for place in stride(from: 0, to: more, by: Self.wordsOfAPage) {
      storage[Int((end &+ UInt64(place)) & mask)] = 0
      pace.spend()
    }
  }

  /// The words of a page of memory.
  private static var wordsOfAPage: Int { 1024 }

  /// Makes room for so many words, in one step: growing moves all words.
  private mutating func reserve(_ more: Int, _ pace: Pace? = nil) {
    if end &- start &+ UInt64(more) > mask &+ 1 { grow(to: end &- start &+ UInt64(more), pace) }
  }

  /// Makes room for at least `count` words in all.
  private mutating func grow(to count: UInt64 = 0, _ pace: Pace? = nil) {
    var larger = (mask &+ 1) &* 2
    while larger < count { larger &*= 2 }
    // Unwritten words are never read, and initializing them would touch memory that may never be needed.
    let copy = UnsafeMutablePointer<UInt32>.allocate(capacity: Int(larger))
    var position = start
    while position < end {
      copy[Int(position & (larger &- 1))] = storage[Int(position & mask)]
      position &+= 1
      if position & 4095 == 0 { pace?.spend(Self.unitsPerStep) }
    }
    storage.deallocate()
    storage = copy
    mask = larger &- 1
  }
}

/// A change as words: a header of counts, then the lists.
extension WordRing {
  /// The bit of a move's second word for `Move.keepsElement`. A change never lists 2^31 rows.
  private static let keepsElement: UInt32 = 1 << 31

  /// The bit of the length of a name whose bytes are four in a word. In stored words each byte has a word.
  fileprivate static let packedName: UInt32 = 1 << 31
  /// The bit of the length of a name for a section by value.
  fileprivate static let namedByValue: UInt32 = 1 << 30

  /// The units of work to write 4096 words to memory that was not touched before.
  private static var unitsPerStep: Int { 16 }

  /// The number of words of a change that lists so many entries, without the names of sections.
  static func words(ofEntries entries: Int) -> Int { 6 &+ 2 &* entries }

  /// Appends a change with `shift` added to its sections. The change is not modified; `inout` avoids reference counting.
  ///
  /// - Parameter pace: lets the work stop; nothing may then read or change the ring.
  mutating func append(_ change: inout Change, shift: UInt32 = 0, _ pace: Pace? = nil) {
    if change.onlyUpdates && change.updated.count == 1 {
      return append(.updated(change.updated[0].shifted(by: shift)))
    }
    reserve(
      6 &+ 2 &* (change.deleted.count &+ change.added.count &+ change.updated.count &+ change.moves.count)
        &+ change.sectionsDeleted.count, pace)
    append(UInt32(truncatingIfNeeded: change.deleted.count))
    append(UInt32(truncatingIfNeeded: change.added.count))
    append(UInt32(truncatingIfNeeded: change.updated.count))
    append(UInt32(truncatingIfNeeded: change.moves.count))
    append(UInt32(truncatingIfNeeded: change.sectionsDeleted.count))
    append(UInt32(truncatingIfNeeded: change.sectionsAdded.count))
    append(change.deleted, shift, pace)
    append(change.added, shift, pace)
    append(change.updated, shift, pace)
    // Iterates by index: an iterator would count references.
    for index in change.moves.indices {
      append(change.moves[index].deleted)
      append(change.moves[index].added | (change.moves[index].keepsElement ? Self.keepsElement : 0))
      if index & 2047 == 2047 { pace?.spend(Self.unitsPerStep) }
    }
    for index in change.sectionsDeleted.indices { append(change.sectionsDeleted[index] &+ shift) }
    for index in change.sectionsAdded.indices {
      append(change.sectionsAdded[index].at &+ shift)
      let kind = change.sectionsAdded[index].isByValue ? Self.namedByValue : 0
      change.sectionsAdded[index].withNameBytes { append(name: $0, kind) }
    }
  }

  /// Whether the words are exactly one packed change, by its counts.
  static func isOneChange(_ words: [UInt32]) -> Bool {
    guard words.count >= 6 else { return false }
    let fixed = 6 + words[0..<4].reduce(0) { $0 + Int($1) * 2 } + Int(words[4])
    var place = fixed
    for _ in 0..<Int(words[5]) {
      guard place + 1 < words.count else { return false }
      place += 2 + Int(words[place + 1] & ~namedByValue)
    }
    return place == words.count
  }

  /// The paths that are appended between two stops.
  private static var pathsPerStep: Int { 2048 }

  /// Appends paths, for which there is room.
  private mutating func append(_ paths: [IndexPath], _ shift: UInt32, _ pace: Pace?) {
    var start = 0
    while start < paths.count {
      let next = min(start &+ Self.pathsPerStep, paths.count)
      append(paths, start..<next, shift)
      if next &- start == Self.pathsPerStep { pace?.spend(Self.unitsPerStep) }
      start = next
    }
  }

  @inline(__always)
  private mutating func append(_ paths: [IndexPath], _ range: Range<Int>, _ shift: UInt32) {
    let place = Int(end & mask)
    if place &+ 2 &* range.count <= Int(mask) &+ 1 {
      // The words do not wrap around. A loop over plain memory becomes vector instructions.
      let words = UnsafeMutableRawPointer(storage + place)
      paths.withUnsafeBufferPointer { paths in
        for index in range {
          let word = (paths[index].packed &>> 32 &+ UInt64(shift)) & UInt64(UInt32.max) | paths[index].packed &<< 32
          words.storeBytes(of: word.littleEndian, toByteOffset: (index &- range.lowerBound) &* 8, as: UInt64.self)
        }
      }
      end &+= UInt64(2 &* range.count)
    } else {
      for index in range {
        append(paths[index].section &+ shift)
        append(paths[index].row)
      }
    }
  }

  /// Appends the change of one row.
  mutating func append(_ row: ChangeOfOne) {
    switch row {
    case .deleted(let path): append(path, listedAt: 0)
    case .added(let path): append(path, listedAt: 1)
    case .updated(let path): append(path, listedAt: 2)
    case .moved(let from, let to):
      for place in 0..<6 { append(place == 2 || place > 3 ? 0 : 1) }
      append(from)
      append(to)
      // The only move pairs entry 0 of both lists.
      append(0)
      append(0)
    }
  }

  /// Appends a change with one path in one of the lists.
  @inline(__always)
  private mutating func append(_ path: IndexPath, listedAt list: Int) {
    reserve(8)
    let place = Int(end & mask)
    if place &+ 8 <= Int(mask) &+ 1 {
      // The words do not wrap around: four stores of two words.
      let words = UnsafeMutableRawPointer(storage + place)
      let counts: (UInt64, UInt64) = (list == 0 ? 1 : list == 1 ? 1 << 32 : 0, list == 2 ? 1 : 0)
      words.storeBytes(of: counts.0.littleEndian, as: UInt64.self)
      words.storeBytes(of: counts.1.littleEndian, toByteOffset: 8, as: UInt64.self)
      words.storeBytes(of: 0, toByteOffset: 16, as: UInt64.self)
      let pair = UInt64(path.section) | UInt64(path.row) &<< 32
      words.storeBytes(of: pair.littleEndian, toByteOffset: 24, as: UInt64.self)
      end &+= 8
    } else {
      for place in 0..<6 { append(place == list ? 1 : 0) }
      append(path)
    }
  }

  private mutating func append(_ path: IndexPath) {
    append(path.section)
    append(path.row)
  }

  private mutating func append(name: UnsafeRawBufferPointer, _ kind: UInt32) {
    let count = name.count
    reserve(1 &+ (count &+ 3) / 4)
    storage[Int(end & mask)] = UInt32(truncatingIfNeeded: count) | Self.packedName | kind
    end &+= 1
    var place = 0
    while place &+ 4 <= count {
      storage[Int(end & mask)] = UInt32(littleEndian: name.loadUnaligned(fromByteOffset: place, as: UInt32.self))
      end &+= 1
      place &+= 4
    }
    if place == count { return }
    var (word, shift) = (UInt32(0), UInt32(0))
    while place < count {
      word |= UInt32(name[place]) &<< shift
      shift &+= 8
      place &+= 1
    }
    storage[Int(end & mask)] = word
    end &+= 1
  }

  /// The number of words that are stored of the change at `start`, which ends before `end`. O(1) unless it adds sections.
  func storedCount(from start: UInt64, to end: UInt64) -> Int {
    if self[start &+ 5] == 0 { return Int(end &- start) }
    var count = 0
    forEachStored(from: start, to: end) { _ in count += 1 }
    return count
  }

  /// Appends the words that are stored of the change at `start`, which ends before `end`. There is room for them.
  func appendStored(from start: UInt64, to end: UInt64, to out: inout ByteBuffer) {
    guard self[start &+ 5] == 0, UInt32(1).littleEndian == 1 else {
      return forEachStored(from: start, to: end) { out.append(littleEndian: $0) }
    }
    // The words are stored as they are; they may begin again at the start of the ring.
    var place = start
    while place < end {
      let offset = place & mask
      let count = min(end &- place, mask &+ 1 &- offset)
      let bytes = UnsafeRawBufferPointer(start: storage + Int(offset), count: Int(count) &* MemoryLayout<UInt32>.stride)
      out.append(bytes)
      place &+= count
    }
  }

  /// Calls `body` with the words that are stored of the change at `start`, which ends before `end`.
  @inline(__always)
  func forEachStored(from start: UInt64, to end: UInt64, _ body: (UInt32) -> Void) {
    let additions = self[start &+ 5]
    var lists = start &+ 6 &+ UInt64(self[start &+ 4])
    for list in UInt64(0)..<4 { lists &+= 2 &* UInt64(self[start &+ list]) }
    for position in start..<(additions == 0 ? end : lists) { body(self[position]) }
    var reader = WordReader(position: lists)
    for _ in 0..<additions {
      body(reader.next(self))
      let (name, kind) = reader.name(self)
      body(UInt32(truncatingIfNeeded: name.count) | kind)
      for byte in name { body(UInt32(byte)) }
    }
  }

  /// Reads the change whose words begin at `position`.
  func change(at position: UInt64) -> Change {
    var reader = WordReader(position: position)
    let counts = (0..<6).map { _ in Int(reader.next(self)) }
    var change = Change()
    change.deleted = (0..<counts[0]).map { _ in reader.path(self) }
    change.added = (0..<counts[1]).map { _ in reader.path(self) }
    change.updated = (0..<counts[2]).map { _ in reader.path(self) }
    change.moves = (0..<counts[3]).map { _ in
      let (deleted, added) = (reader.next(self), reader.next(self))
      return Move(
        deleted: deleted, added: added & ~Self.keepsElement, keepsElement: added & Self.keepsElement != 0)
    }
    change.sectionsDeleted = (0..<counts[4]).map { _ in reader.next(self) }
    change.sectionsAdded = (0..<counts[5]).map { _ in reader.section(self) }
    return change
  }
}

private struct WordReader {
  var position: UInt64

  mutating func next(_ ring: borrowing WordRing) -> UInt32 {
    position &+= 1
    return ring[position &- 1]
  }

  mutating func path(_ ring: borrowing WordRing) -> IndexPath {
    let section = next(ring)
    return IndexPath(section: section, row: next(ring))
  }

  mutating func section(_ ring: borrowing WordRing) -> SectionAddition {
    let at = next(ring)
    let (bytes, kind) = name(ring)
    return bytes.withUnsafeBytes { SectionAddition(at: at, name: $0, isByValue: kind != 0) }
  }

  /// Reads the bytes of a name, and the bit that says whether the section is one by value.
  mutating func name(_ ring: borrowing WordRing) -> (bytes: [UInt8], kind: UInt32) {
    let head = next(ring)
    let kind = head & WordRing.namedByValue
    let count = Int(head & ~(WordRing.packedName | WordRing.namedByValue))
    guard head & WordRing.packedName != 0 else {
      return ((0..<count).map { _ in UInt8(truncatingIfNeeded: next(ring)) }, kind)
    }
    var word: UInt32 = 0
    let bytes = (0..<count).map { place in
      word = place & 3 == 0 ? next(ring) : word &>> 8
      return UInt8(truncatingIfNeeded: word)
    }
    return (bytes, kind)
  }
}
