extension Change {
  /// Puts into `part` what this change does to the rows of one section, as a change of a feed of that section alone.
  ///
  /// - Parameters:
  ///   - before: the section's index before the change.
  ///   - after: its index after it, where it must have stayed the same section.
  ///
  /// O(log size + what is found).
  package func extract(before: UInt32, after: UInt32, into part: inout Change) {
    part.removeAll(keepingCapacity: true)
    let deletedRange = deleted.range(of: before)
    let addedRange = added.range(of: after)
    for place in deletedRange { part.deleted.append(IndexPath(section: 0, row: deleted[place].row)) }
    for place in addedRange { part.added.append(IndexPath(section: 0, row: added[place].row)) }
    for place in updated.range(of: after) { part.updated.append(IndexPath(section: 0, row: updated[place].row)) }
    if deletedRange.isEmpty || addedRange.isEmpty { return }
    for move in moves where deletedRange.contains(Int(move.deleted)) && addedRange.contains(Int(move.added)) {
      part.moves.append(
        Move(
          deleted: move.deleted &- UInt32(deletedRange.lowerBound), added: move.added &- UInt32(addedRange.lowerBound)))
    }
  }
}

extension Change {
  /// Whether the section at `before` is, by this change, the one at `after`. O(sections listed).
  package func keepsSection(from before: Int, as after: Int) -> Bool {
    if sectionsDeleted.isEmpty && sectionsAdded.isEmpty { return before == after }
    if sectionsDeleted.contains(UInt32(before)) || sectionsAdded.contains(where: { $0.at == UInt32(after) }) {
      return false
    }
    let gone = sectionsDeleted.count { $0 < UInt32(before) }
    let come = sectionsAdded.count { $0.at < UInt32(after) }
    return before - gone == after - come
  }
}

extension Array where Element == IndexPath {
  /// The places of the paths in one section, of an ascending array. O(log n).
  package func range(of section: UInt32) -> Range<Int> {
    let start = firstIndex(atOrAfter: IndexPath(section: section, row: 0))
    return
      start..<Swift.max(
        start, section == .max ? count : firstIndex(atOrAfter: IndexPath(section: section &+ 1, row: 0)))
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
