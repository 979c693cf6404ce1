import FeedChange

/// The algorithm of `SlotsLayout.change(to:contents:)`.
///
/// Rows in both lists form blocks: ranges that are contiguous and in the same order in both lists. A block ends only
/// where the list changed, and arithmetic gives its length. The heaviest ascending chain of blocks stays, and the other
/// blocks move. Rows outside blocks were deleted or added.
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
  private let maps: [SlotsContentMap]
  private(set) var blocks: [Block] = []

  init(from old: SlotsLayout, to new: SlotsLayout, contents: [Change]) {
    self.old = old
    self.new = new
    maps = contents.map(SlotsContentMap.init)
    findBlocks()
    markMovedBlocks()
  }

  /// The new row of an item of the old list; nil if it is no longer shown.
  private func newRow(of item: SlotsItem) -> Int? {
    guard let (index, _) = maps[item.type].map(item.index) else { return nil }
    return new.row(of: SlotsItem(type: item.type, index: index))
  }

  private mutating func findBlocks() {
    var row = 0
    while row < old.count {
      guard let target = newRow(of: old.item(at: row)) else {
        row += 1
        continue
      }
      let count = commonLength(row, target)
      blocks.append(Block(old: row, new: target, count: count))
      row += count
    }
  }

  /// The number of equal rows from `oldRow` of the old list and `newRow` of the new list on.
  private func commonLength(_ oldRow: Int, _ newRow: Int) -> Int {
    var length = 0
    while oldRow + length < old.count, newRow + length < new.count {
      let oldStretch = old.stretch(at: oldRow + length)
      let newStretch = new.stretch(at: newRow + length)
      guard case .periodic(let oldIndex, let oldOffset, let oldCount) = oldStretch,
        case .periodic(let newIndex, let newOffset, let newCount) = newStretch
      else {
        if !isSame(old.item(at: oldRow + length), new.item(at: newRow + length)) { return length }
        length += 1
        continue
      }
      let oldRun = old.run(oldIndex)
      let newRun = new.run(newIndex)
      let count = min(oldCount, newCount)
      // Two periodic sequences that agree for the sum of their periods agree forever.
      let tested = min(count, oldRun.emissions.count + newRun.emissions.count)
      for step in 0..<tested where !isSame(oldRun.item(at: oldOffset + step), newRun.item(at: newOffset + step)) {
        return length + step
      }
      let reach = tested < count ? reach(of: oldRun, from: oldOffset, row: oldRow + length) : count
      length += max(tested, min(count, reach))
    }
    return length
  }

  private func isSame(_ item: SlotsItem, _ newItem: SlotsItem) -> Bool {
    item.type == newItem.type && maps[item.type].map(item.index)?.index == newItem.index
  }

  /// The number of rows of the run in which the rows of every type shift by the same distance as its first.
  private func reach(of run: SlotsRun, from offset: Int, row: Int) -> Int {
    var reach = Int.max
    for step in 0..<run.emissions.count {
      let item = run.item(at: offset + step)
      guard let (_, end) = maps[item.type].map(item.index), end < Int.max,
        let endRow = old.row(of: SlotsItem(type: item.type, index: end)), endRow > row
      else { continue }
      reach = min(reach, endRow - row)
    }
    return reach
  }

  /// Marks the blocks outside the heaviest chain that ascends in both lists. O(blocks · log blocks).
  private mutating func markMovedBlocks() {
    if zip(blocks, blocks.dropFirst()).allSatisfy({ $0.new < $1.new }) { return }
    var rank = [Int](repeating: 0, count: blocks.count)
    for (place, block) in blocks.indices.sorted(by: { blocks[$0].new < blocks[$1].new }).enumerated() {
      rank[block] = place
    }
    // A Fenwick tree over ranks: the heaviest chain that ends at or below a rank.
    var heaviest = [(weight: Int, block: Int)](repeating: (0, -1), count: blocks.count + 1)
    var previous = [Int](repeating: -1, count: blocks.count)
    for (index, block) in blocks.enumerated() {
      var best = (weight: 0, block: -1)
      var node = rank[index]
      while node > 0 {
        if heaviest[node].weight > best.weight { best = heaviest[node] }
        node &= node - 1
      }
      previous[index] = best.block
      node = rank[index] + 1
      while node <= blocks.count {
        if heaviest[node].weight < best.weight + block.count { heaviest[node] = (best.weight + block.count, index) }
        node += node & -node
      }
    }
    var last = (weight: 0, block: -1)
    var node = blocks.count
    while node > 0 {
      if heaviest[node].weight > last.weight { last = heaviest[node] }
      node &= node - 1
    }
    for index in blocks.indices { blocks[index].stays = false }
    while last.block >= 0 {
      blocks[last.block].stays = true
      last.block = previous[last.block]
    }
  }
}
