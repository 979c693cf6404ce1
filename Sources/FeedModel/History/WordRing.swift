/// A growing ring of 32-bit words addressed by how many were written before them.
struct WordRing: ~Copyable {
  private var storage: UnsafeMutablePointer<UInt32>
  private var mask: UInt64
  /// The oldest word still kept, and one past the newest.
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

  subscript(position: UInt64) -> UInt32 { storage[Int(position & mask)] }

  mutating func append(_ word: UInt32) {
    if end &- start > mask { grow() }
    storage[Int(end & mask)] = word
    end &+= 1
  }

  mutating func trim(to position: UInt64) {
    start = position
  }

  private mutating func grow() {
    let larger = (mask &+ 1) &* 2
    let copy = UnsafeMutablePointer<UInt32>.allocate(capacity: Int(larger))
    copy.initialize(repeating: 0, count: Int(larger))
    var position = start
    while position < end {
      copy[Int(position & (larger &- 1))] = storage[Int(position & mask)]
      position &+= 1
    }
    storage.deallocate()
    storage = copy
    mask = larger &- 1
  }
}

/// A change as words: a header of counts, then the lists.
extension WordRing {
  mutating func append(_ change: Change) {
    append(UInt32(truncatingIfNeeded: change.deleted.count))
    append(UInt32(truncatingIfNeeded: change.added.count))
    append(UInt32(truncatingIfNeeded: change.updated.count))
    append(UInt32(truncatingIfNeeded: change.moves.count))
    append(UInt32(truncatingIfNeeded: change.sectionsDeleted.count))
    append(UInt32(truncatingIfNeeded: change.sectionsAdded.count))
    append(change.deleted)
    append(change.added)
    append(change.updated)
    for move in change.moves {
      append(move.deleted)
      append(move.added)
    }
    for section in change.sectionsDeleted { append(section) }
    for section in change.sectionsAdded { append(section) }
  }

  /// Whether words are exactly one packed change: its counts add up to its length.
  static func isOneChange(_ words: [UInt32]) -> Bool {
    guard words.count >= 6 else { return false }
    let fixed = 6 + words[0..<4].reduce(0) { $0 + Int($1) * 2 } + Int(words[4])
    var place = fixed
    for _ in 0..<Int(words[5]) {
      guard place + 1 < words.count else { return false }
      place += 2 + Int(words[place + 1])
    }
    return place == words.count
  }

  private mutating func append(_ paths: [IndexPath]) {
    for path in paths {
      append(path.section)
      append(path.row)
    }
  }

  private mutating func append(_ section: SectionAddition) {
    append(section.at)
    append(UInt32(truncatingIfNeeded: section.name.utf8.count))
    for byte in section.name.utf8 { append(UInt32(byte)) }
  }

  /// Reads back the change whose words begin at `position`.
  func change(at position: UInt64) -> Change {
    var reader = WordReader(position: position)
    let counts = (0..<6).map { _ in Int(reader.next(self)) }
    var change = Change()
    change.deleted = (0..<counts[0]).map { _ in reader.path(self) }
    change.added = (0..<counts[1]).map { _ in reader.path(self) }
    change.updated = (0..<counts[2]).map { _ in reader.path(self) }
    change.moves = (0..<counts[3]).map { _ in Move(deleted: reader.next(self), added: reader.next(self)) }
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
    let bytes = (0..<Int(next(ring))).map { _ in UInt8(truncatingIfNeeded: next(ring)) }
    return SectionAddition(at: at, name: String(decoding: bytes, as: UTF8.self))
  }
}
