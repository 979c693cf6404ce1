import FeedChange

/// The change between two states of which all rows are known.
///
/// All rows are listed as deleted and added, and those of both states as moved. `normalizingMoves()` then chooses the rows that
/// stay: as many as possible.
extension Change {
  /// Returns the change between two states of a list.
  ///
  /// - Parameters:
  ///   - places: for each row before, its place after; negative if it is gone. No two are equal.
  ///   - count: the number of rows after.
  ///   - pace: lets the computation stop, because the lists can be long.
  ///   - keepsElement: whether the row at a place after shows the same element as before.
  ///
  /// O(n log n).
  static func between(_ places: [Int], _ count: Int, _ pace: Pace, keepsElement: (_ place: Int) -> Bool) -> Change {
    var change = Change()
    change.deleted.append(rows: places.count, of: 0, pace)
    change.added.append(rows: count, of: 0, pace)
    change.moves.reserveCapacity(min(places.count, count))
    for (row, place) in places.enumerated() {
      if row & 15 == 15 { pace.spend() }
      if place < 0 { continue }
      change.moves.append(Move(deleted: UInt32(row), added: UInt32(place), keepsElement: keepsElement(place)))
    }
    return change.normalizingMoves { pace.didCompareMoves() }
  }

  /// Sets whether moved rows keep their elements, of a change that was made before the elements.
  ///
  /// - Parameter isChanged: for each entry of `added`, whether it shows another element than before.
  mutating func markChanged(_ isChanged: [Bool], _ pace: Pace) {
    for index in moves.indices {
      moves[index].keepsElement = !isChanged[Int(moves[index].added)]
      if index & 127 == 127 { pace.spend() }
    }
    for index in transfers.indices { transfers[index].keepsElement = !isChanged[Int(transfers[index].added)] }
  }
}

extension [IndexPath] {
  /// Appends the paths of the first `count` rows of a section.
  mutating func append(rows count: Int, of section: Int, _ pace: Pace) {
    if isEmpty { reserveCapacity(count) }
    for row in 0..<count {
      append(IndexPath(section: UInt32(section), row: UInt32(row)))
      if row & 255 == 255 { pace.spend() }
    }
  }
}
