extension Change {
  /// Puts into `part` what this change does to the rows of one section, as a change of a feed of that section alone.
  ///
  /// For changes that leave the section structure alone. O(log size + what is found).
  func extract(section: UInt32, into part: inout Change) {
    part.removeAll(keepingCapacity: true)
    let deletedRange = deleted.range(of: section)
    let addedRange = added.range(of: section)
    for place in deletedRange { part.deleted.append(IndexPath(section: 0, row: deleted[place].row)) }
    for place in addedRange { part.added.append(IndexPath(section: 0, row: added[place].row)) }
    for place in updated.range(of: section) { part.updated.append(IndexPath(section: 0, row: updated[place].row)) }
    if deletedRange.isEmpty || addedRange.isEmpty { return }
    for move in moves where deletedRange.contains(Int(move.deleted)) && addedRange.contains(Int(move.added)) {
      part.moves.append(
        Move(
          deleted: move.deleted &- UInt32(deletedRange.lowerBound), added: move.added &- UInt32(addedRange.lowerBound)))
    }
  }
}

extension Array where Element == IndexPath {
  /// The places of the paths in one section, of an ascending array. O(log n).
  func range(of section: UInt32) -> Range<Int> {
    let start = firstIndex(atOrAfter: IndexPath(section: section, row: 0))
    return start..<Swift.max(start, section == .max ? count : firstIndex(atOrAfter: IndexPath(section: section &+ 1, row: 0)))
  }

  private func firstIndex(atOrAfter path: IndexPath) -> Int {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low &+ high) / 2
      if self[middle] < path { low = middle &+ 1 } else { high = middle }
    }
    return low
  }
}
