import FeedChange

/// Taking many elements out at once.
extension CollectionState {
  /// Takes different elements out of all their bins and forgets them; leaves in `step` what that comes to.
  ///
  /// The rows are found in one pass over each bin, or one by one where they are few, and go from the back: so each is known by
  /// where it stood before, and no step has to be composed with another. O(bins · rows), or O(bins · m log n) for m of n.
  func remove(_ handles: [UInt32], _ log: UndoLog) {
    step.removeAll(keepingCapacity: true)
    for bin in bins.indices { removeRows(of: handles, section: bin, log) }
    for handle in handles { removeElement(handle, log) }
  }

  private func removeRows(of handles: [UInt32], section: Int, _ log: UndoLog) {
    let rows = bins[section].section.rows
    let isMany = handles.count > rows.count / 16
    let places = isMany ? rows.rows(ofAll: handles) : handles.compactMap { rows.row(of: $0) }.sorted()
    step.deleted.reserveCapacity(step.deleted.count + places.count)
    for row in places { step.deleted.append(IndexPath(section: UInt32(section), row: UInt32(row))) }
    if places.count > 1000 { log.reserve(places.count + handles.count) }
    guard places.count > rows.count / 4 else {
      for row in places.reversed() { removeRow(section: section, at: row, log) }
      return
    }
    for row in places.reversed() { noteRemoval(section: section, at: row, log) }
    rows.removeAll(at: places)
  }
}
