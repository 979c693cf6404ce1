import FeedChange
import FeedJSON

extension SlotsLayout {
  /// Returns the change from this list to `new`, with as few rows as possible deleted, added and moved.
  ///
  /// - Parameters:
  ///   - new: the layout of the changed contents. Its rule may differ, but types must have the same indices.
  ///   - contents: for each type, the change of its content as one flat list; all paths are in section 0.
  ///
  /// The result is in section 0. A row that moved in its content but not in the list is listed as updated, unless the
  /// move keeps the element.
  ///
  /// O(c · (log c + p) + p · types) for c changed rows and places and a pattern of p types, independent of the lengths
  /// of the list and the contents.
  public func change(to new: SlotsLayout, contents: [Change]) -> Change {
    let blocks = SlotsDifference(from: self, to: new, contents: contents).blocks
    let byNewRow = blocks.indices.sorted { blocks[$0].new < blocks[$1].new }

    var change = Change()
    // For moved blocks, the indices of their first rows in `deleted` and in `added`.
    var placesInDeleted = [Int](repeating: 0, count: blocks.count)
    var placesInAdded = placesInDeleted
    var row = 0
    for (index, block) in blocks.enumerated() {
      change.deleted.append(rows: row..<block.old)
      placesInDeleted[index] = change.deleted.count
      if !block.stays { change.deleted.append(rows: block.old..<block.old + block.count) }
      row = block.old + block.count
    }
    change.deleted.append(rows: row..<count)
    row = 0
    for index in byNewRow {
      let block = blocks[index]
      change.added.append(rows: row..<block.new)
      placesInAdded[index] = change.added.count
      if !block.stays { change.added.append(rows: block.new..<block.new + block.count) }
      row = block.new + block.count
    }
    change.added.append(rows: row..<new.count)
    let replaced = new.replacedRows(contents)
    for (index, block) in blocks.enumerated() where !block.stays {
      for step in 0..<block.count {
        let place = replaced.indices.partitionPoint { replaced[$0] < block.new + step }
        change.moves.append(
          Move(
            deleted: UInt32(truncatingIfNeeded: placesInDeleted[index] + step),
            added: UInt32(truncatingIfNeeded: placesInAdded[index] + step),
            keepsElement: place == replaced.count || replaced[place] != block.new + step))
      }
    }
    let staying = byNewRow.map { blocks[$0] }.filter(\.stays)
    change.updated = replaced.filter { row in
      let place = staying.countOfPrefix { $0.new <= row } - 1
      return place >= 0 && row < staying[place].new + staying[place].count
    }.map { IndexPath(section: 0, row: UInt32(truncatingIfNeeded: $0)) }
    return change
  }

  /// The rows of this list, ascending, whose element may differ: updated rows of the contents, and moved rows unless
  /// the move keeps the element.
  private func replacedRows(_ contents: [Change]) -> [Int] {
    var rows: [Int] = []
    for (type, change) in contents.enumerated() {
      let moved = change.moves.lazy.filter { !$0.keepsElement }.map { change.added[Int($0.added)] }
      for path in change.updated + moved {
        if let row = row(of: SlotsItem(type: type, index: Int(path.row))) { rows.append(row) }
      }
    }
    return rows.sorted()
  }
}

extension Array where Element == IndexPath {
  fileprivate mutating func append(rows: Range<Int>) {
    for row in rows { append(IndexPath(section: 0, row: UInt32(truncatingIfNeeded: row))) }
  }
}
