import FeedChange
import FeedJSON

extension SlotsLayout {
  /// Returns the change from this list to `new`, with as few rows as possible deleted, added and moved.
  /// - Parameters:
  ///   - new: the layout of the changed contents. Its rule may differ, but types must have the same indices.
  ///   - contents: for each type, the change of its content.
  ///   - retyped: rows of the new list, ascending, that show another type.
  ///   - isReplaced: whether a row of the new list shows another element, if its content lists it so.
  ///
  /// The result is in section 0. A row that moved in its content only is updated, unless the move keeps the element.
  ///
  /// O(c · (log c + p) + p · types) for c changed rows, places and blocks and a pattern of p types, independent of the lengths
  /// of the list and the contents, and of the fixed rows that stay. A row has other neighbours than before, and is a block of its own, if
  /// a change shifts the rows of some types only: then there are as many blocks as rows.
  func change(
    to new: SlotsLayout, contents: [FlatChange], retyped: [Int] = [], _ pace: Pace? = nil,
    isReplaced: (Int) -> Bool = { _ in true }
  ) -> Change {
    let difference = SlotsDifference(from: self, to: new, contents: contents, pace)
    let blocks = difference.blocks
    let byNewRow = difference.byNewRow

    var change = Change()
    // For moved blocks, the indices of their first rows in `deleted` and in `added`.
    var placesInDeleted = [Int](repeating: 0, count: blocks.count)
    var placesInAdded = placesInDeleted
    var row = 0
    for (index, block) in blocks.enumerated() {
      if index & 31 == 31 { pace?.spend() }
      change.deleted.append(rows: row..<block.old)
      placesInDeleted[index] = change.deleted.count
      if !block.stays { change.deleted.append(rows: block.old..<block.old + block.count) }
      row = block.old + block.count
    }
    change.deleted.append(rows: row..<count)
    row = 0
    for index in byNewRow {
      if index & 31 == 31 { pace?.spend() }
      let block = blocks[index]
      change.added.append(rows: row..<block.new)
      placesInAdded[index] = change.added.count
      if !block.stays { change.added.append(rows: block.new..<block.new + block.count) }
      row = block.new + block.count
    }
    change.added.append(rows: row..<new.count)
    let replaced = mergeAscending(new.replacedRows(contents).filter(isReplaced), retyped)
    for (index, block) in blocks.enumerated() where !block.stays {
      for step in 0..<block.count {
        if (index + step) & 15 == 15 { pace?.spend() }
        let place = replaced.indices.partitionPoint { replaced[$0] < block.new + step }
        change.moves.append(
          Move(
            deleted: UInt32(truncatingIfNeeded: placesInDeleted[index] + step),
            added: UInt32(truncatingIfNeeded: placesInAdded[index] + step),
            keepsElement: place == replaced.count || replaced[place] != block.new + step))
      }
    }
    let staying = byNewRow.map { blocks[$0] }.filter(\.stays)
    var next = 0
    for (index, row) in replaced.enumerated() {
      if index & 31 == 31 { pace?.spend() }
      while next < staying.count, staying[next].new + staying[next].count <= row { next += 1 }
      if next < staying.count, staying[next].new <= row { change.updated.append(rows: row..<row + 1) }
    }
    return change
  }

  /// The rows of this list, ascending, whose element may differ: updated ones, and moved ones that do not keep it.
  private func replacedRows(_ contents: [FlatChange]) -> [Int] {
    var rows: [Int] = []
    for type in contents.indices {
      for index in contents[type].replaced {
        if let row = row(of: SlotsItem(type: type, index: index)) { rows.append(row) }
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

/// The algorithm of `SlotsLayout.change(to:contents:)`.
///
/// Rows in both lists form blocks, contiguous and in one order in both, whose length arithmetic gives. The heaviest
/// ascending chain of blocks stays, and the others move. Rows outside blocks were deleted or added.
struct SlotsDifference {
  /// Rows `old..<old + count` of the old list are rows `new..<new + count` of the new one.
  struct Block {
    var old: Int
    var new: Int
    var count: Int
    var stays = true
  }

  private let old: SlotsLayout
  private let new: SlotsLayout
  private let contents: [FlatChange]
  /// The positions at which the fixed rows of the lists differ, ascending; nil if the lists have different rules.
  private let fixedDifferences: [Int]?
  private(set) var blocks: [Block] = []
  /// The numbers of the blocks, by their new rows.
  private(set) var byNewRow: [Int] = []

  init(from old: SlotsLayout, to new: SlotsLayout, contents: [FlatChange], _ pace: Pace? = nil) {
    (self.old, self.new, self.contents) = (old, new, contents)
    fixedDifferences = old.fixed.differences(to: new.fixed, contents)
    findBlocks(pace)
    markMovedBlocks(pace)
  }

  /// The new row of an item of the old list; nil if it is no longer shown.
  private func newRow(of item: SlotsItem) -> Int? {
    guard let (index, _) = contents[item.type].map(item.index) else { return nil }
    return new.row(of: SlotsItem(type: item.type, index: index))
  }

  private mutating func findBlocks(_ pace: Pace?) {
    var row = 0
    while row < old.count {
      // A change that shifts the pattern may make a block of each row.
      pace?.spend()
      guard let target = newRow(of: old.item(at: row)) else {
        row += 1
        continue
      }
      let count = commonLength(row, target)
      blocks.append(Block(old: row, new: target, count: count))
      row += count
    }
  }

  /// A number of equal rows from `oldRow` of the old list and `newRow` of the new list on, at least 1, which are equal.
  private func commonLength(_ oldRow: Int, _ newRow: Int) -> Int {
    if oldRow == newRow, let fixedDifferences { return commonLength(at: oldRow, fixedDifferences) }
    if old.fixed.item(at: oldRow) != nil || new.fixed.item(at: newRow) != nil { return 1 }
    let most = min(
      (old.fixed.next(at: oldRow) ?? old.count) - oldRow, (new.fixed.next(at: newRow) ?? new.count) - newRow)
    return max(1, commonLength(base: old.base(of: oldRow), new.base(of: newRow), atMost: most))
  }

  /// The number of equal rows from `row` of both lists on. Fixed rows that stay cost nothing.
  private func commonLength(at row: Int, _ differences: [Int]) -> Int {
    let place = differences.indices.partitionPoint { differences[$0] < row }
    var edge = min(old.count, new.count)
    if place < differences.count { edge = min(edge, differences[place]) }
    let (oldBase, newBase) = (old.base(of: row), new.base(of: row))
    let most = old.base(of: edge) - oldBase
    let length = commonLength(base: oldBase, newBase, atMost: most)
    if length == most { return max(1, edge - row) }
    return max(1, min(old.row(ofBase: oldBase + length), new.row(ofBase: newBase + length)) - row)
  }

  /// The number of equal rows from two rows on, all counted without the fixed rows.
  private func commonLength(base oldBase: Int, _ newBase: Int, atMost most: Int) -> Int {
    var length = 0
    while length < most {
      let (oldIndex, oldOffset, oldCount) = old.stretch(atBase: oldBase + length)
      let (newIndex, newOffset, newCount) = new.stretch(atBase: newBase + length)
      let oldRun = old.run(oldIndex)
      let newRun = new.run(newIndex)
      let count = min(oldCount, newCount, most - length)
      // Two periodic sequences that agree for the sum of their periods agree forever.
      let tested = min(count, oldRun.emissions.count + newRun.emissions.count)
      for step in 0..<tested where !isSame(oldRun.item(at: oldOffset + step), newRun.item(at: newOffset + step)) {
        return length + step
      }
      let reach = tested < count ? reach(of: oldRun, from: oldOffset, base: oldBase + length) : count
      length += max(tested, min(count, reach))
    }
    return length
  }

  private func isSame(_ item: SlotsItem, _ newItem: SlotsItem) -> Bool {
    item.type == newItem.type && contents[item.type].map(item.index)?.index == newItem.index
  }

  /// The number of rows of the run in which the rows of every type shift by the same distance as its first.
  private func reach(of run: SlotsRun, from offset: Int, base: Int) -> Int {
    var reach = Int.max
    for step in 0..<run.emissions.count {
      let item = run.item(at: offset + step)
      guard let (_, end) = contents[item.type].map(item.index), end < Int.max,
        let end = old.base(of: SlotsItem(type: item.type, index: end)), end > base
      else { continue }
      reach = min(reach, end - base)
    }
    return reach
  }

  /// Finds the order of the new rows, and the blocks outside the heaviest ascending chain. O(blocks · log blocks).
  private mutating func markMovedBlocks(_ pace: Pace?) {
    var order = Array(blocks.indices)
    defer { byNewRow = order }
    if zip(blocks, blocks.dropFirst()).allSatisfy({ $0.new < $1.new }) { return }
    order.sort(pace) { blocks[$0].new < blocks[$1].new }
    // An entry behind all blocks tells which of several heaviest chains stays.
    var rank = [Int](repeating: blocks.count, count: blocks.count + 1)
    for (place, block) in order.enumerated() { rank[block] = place }
    for index in blocks.indices { blocks[index].stays = false }
    for block in heaviestIncreasing(rank, weights: blocks.map(\.count) + [1], pace ?? Pace()).dropFirst() {
      blocks[block].stays = true
    }
  }
}
