import FeedChange

extension SlotsLayout {
  /// What happens to the list when it becomes `new`: as few rows as possible deleted, added and moved.
  ///
  /// - Parameters:
  ///   - new: the layout of the changed contents. Its rule may be another one; types must have the same indexes.
  ///   - contents: for each type the change of its content, whose rows are counted in one flat list: all paths are of section 0.
  ///
  /// The result is of section 0. A row that moved within its content but stands where it stood in the list is listed as updated.
  ///
  /// O(c · (log c + p) + p · types) for c rows and places that change in the list and a pattern of p types, whatever the lengths of
  /// the list and the contents.
  public func change(to new: SlotsLayout, contents: [Change]) -> Change {
    let blocks = SlotsDifference(from: self, to: new, contents: contents).blocks
    let byNewRow = blocks.indices.sorted { blocks[$0].new < blocks[$1].new }

    var change = Change()
    // For moved blocks, where their rows begin in `deleted` and in `added`.
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
    for (index, block) in blocks.enumerated() where !block.stays {
      for step in 0..<block.count {
        change.moves.append(
          Move(
            deleted: UInt32(truncatingIfNeeded: placesInDeleted[index] + step),
            added: UInt32(truncatingIfNeeded: placesInAdded[index] + step)))
      }
    }
    change.updated = new.updatedRows(contents, staying: byNewRow.map { blocks[$0] }.filter(\.stays))
    return change
  }

  /// The rows of this list, ascending, that show updated rows of the contents, or moved ones, and did not come or move in the list.
  private func updatedRows(_ contents: [Change], staying blocks: [SlotsDifference.Block]) -> [IndexPath] {
    var rows: [Int] = []
    for (type, change) in contents.enumerated() {
      let moved = change.moves.map { change.added[Int($0.added)] }
      for path in change.updated + moved {
        guard let row = row(of: SlotsItem(type: type, index: Int(path.row))) else { continue }
        let place = blocks.countOfPrefix { $0.new <= row } - 1
        if place >= 0 && row < blocks[place].new + blocks[place].count { rows.append(row) }
      }
    }
    return rows.sorted().map { IndexPath(section: 0, row: UInt32(truncatingIfNeeded: $0)) }
  }
}

extension Array where Element == IndexPath {
  fileprivate mutating func append(rows: Range<Int>) {
    for row in rows { append(IndexPath(section: 0, row: UInt32(truncatingIfNeeded: row))) }
  }
}
