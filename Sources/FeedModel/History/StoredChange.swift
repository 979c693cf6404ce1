import FeedChange

/// A change in plain form, as images of older schemas store it, as 32-bit words: the numbers of deleted, added and updated rows, of moves, and of
/// deleted and added sections; then these lists. A row is its section and its row; a move is the indexes of its two rows; an
/// added section is its index, the bytes of its name and each of these.
enum StoredChange {
  /// The bit of a move's second word for `Move.keepsElement`. A change never lists 2^31 rows.
  static let keepsElement: UInt32 = 1 << 31
  /// The bit of the length of a name for a section by value.
  static let namedByValue: UInt32 = 1 << 30

  static func move(_ deleted: UInt32, _ added: UInt32) -> Move {
    Move(deleted: deleted, added: added & ~keepsElement, keepsElement: added & keepsElement != 0)
  }

  /// Reads a change; nil if the words are not exactly one, by its counts.
  static func change(_ words: [UInt32]) -> Change? {
    guard isOneChange(words) else { return nil }
    var place = 6
    func next() -> UInt32 {
      place += 1
      return words[place - 1]
    }
    func paths(_ count: UInt32) -> [IndexPath] {
      (0..<count).map { _ in
        let section = next()
        return IndexPath(section: section, row: next())
      }
    }
    var change = Change()
    change.deleted = paths(words[0])
    change.added = paths(words[1])
    change.updated = paths(words[2])
    change.moves = (0..<words[3]).map { _ in
      let deleted = next()
      return move(deleted, next())
    }
    change.sectionsDeleted = (0..<words[4]).map { _ in next() }
    change.sectionsAdded = (0..<words[5]).map { _ in
      let (at, head) = (next(), next())
      let name = (0..<head & ~namedByValue).map { _ in UInt8(truncatingIfNeeded: next()) }
      return name.withUnsafeBytes { SectionAddition(at: at, name: $0, isByValue: head & namedByValue != 0) }
    }
    return change
  }

  private static func isOneChange(_ words: [UInt32]) -> Bool {
    guard words.count >= 6 else { return false }
    var place = 6 + words[0..<4].reduce(0) { $0 + Int($1) * 2 } + Int(words[4])
    for _ in 0..<Int(words[5]) {
      guard place + 1 < words.count else { return false }
      place += 2 + Int(words[place + 1] & ~namedByValue)
    }
    return place == words.count
  }
}
