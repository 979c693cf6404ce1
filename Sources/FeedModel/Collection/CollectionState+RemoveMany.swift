import FeedChange

/// Bulk removal of elements.
extension CollectionState {
  /// Removes distinct elements from all their bins and deletes them. Leaves the change in `step`.
  ///
  /// Many rows are found in one pass over a bin, few one by one. They are removed in reverse, so every position is in
  /// the coordinates before the change and no steps need composition. O(bins · rows), or O(bins · m log n) for few of n
  /// rows.
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
