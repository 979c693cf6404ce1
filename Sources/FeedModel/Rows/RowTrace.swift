import FeedChange

/// Finds where rows that were removed in several steps stood before the first of them.
///
/// Steps are collected in blocks. Each block becomes a change in which a removed row moves behind the last section, so that
/// the composition of all blocks tells which row came there.
///
///     var trace = RowTrace(sections: 1, pace)
///     trace.insert(at: IndexPath(section: 0, row: 0))
///     trace.remove(at: IndexPath(section: 0, row: 4), step: 7)
///     trace.finish()  // step 7 removed the row [0,3]
struct RowTrace {
  /// A row that existed before the first step.
  struct Removed {
    /// The number that `remove(at:step:)` got.
    let step: Int
    /// The row before the first step.
    let before: IndexPath
  }

  private let sections: UInt32
  /// The number of rows that a block inserts and removes at most.
  private let blockSize: Int
  private let pace: Pace
  private var blocks = ChangeAccumulator()
  /// The step of each row that was moved behind the last section.
  private var stepOfRemoved: [Int] = []
  /// The rows that the open block removed, in coordinates before it, ascending.
  private var removed: [Removed] = []
  /// The rows that the open block inserted, in coordinates after it, ascending.
  private var inserted: [IndexPath] = []

  /// - Parameter sections: the number of sections, which is the same in all steps.
  init(sections: Int, blockSize: Int = 256, _ pace: Pace) {
    (self.sections, self.blockSize, self.pace) = (UInt32(sections), blockSize, pace)
  }

  /// Adds a step that inserted a row at `path`. Amortized O(log n) for n steps.
  mutating func insert(at path: IndexPath) {
    let place = inserted.countOfPrefix { $0 < path }
    shiftInserted(from: place, section: path.section, by: 1)
    inserted.insert(path, at: place)
    endBlockIfFull()
  }

  /// Adds a step that removed the row at `path`. Amortized O(log n) for n steps.
  mutating func remove(at path: IndexPath, step: Int) {
    let place = inserted.countOfPrefix { $0 < path }
    if place < inserted.count, inserted[place] == path {
      inserted.remove(at: place)
    } else {
      let beginning = IndexPath(section: path.section, row: 0)
      // The number of rows of the section that stand before this one and existed before the block.
      let rank = Int(path.row) - (place - inserted.countOfPrefix { $0 < beginning })
      let first = removed.countOfPrefix { $0.before < beginning }
      let end = (first..<removed.count).partitionPoint { index in
        removed[index].before.section == path.section && Int(removed[index].before.row) - (index - first) <= rank
      }
      let before = IndexPath(section: path.section, row: UInt32(rank + end - first))
      removed.insert(Removed(step: step, before: before), at: end)
    }
    shiftInserted(from: place, section: path.section, by: -1)
    endBlockIfFull()
  }

  /// Returns the removed rows that existed before the first step, in the order that they had then. O(n log n) for n steps.
  mutating func finish() -> [Removed] {
    endBlock()
    let change = blocks.finish { pace.didCompose() }
    return change.moves.map(pace) { move in
      Removed(step: stepOfRemoved[Int(change.added[Int(move.added)].row)], before: change.deleted[Int(move.deleted)])
    }
  }

  /// Moves the inserted rows of a section from `place` on by one row.
  private mutating func shiftInserted(from place: Int, section: UInt32, by distance: Int) {
    let end = inserted.countOfPrefix { $0.section <= section }
    if place >= end { return }
    let difference = UInt64(bitPattern: Int64(distance))
    inserted.withUnsafeMutableBufferPointer { paths in
      for index in place..<end { paths[index] = IndexPath(packed: paths[index].packed &+ difference) }
    }
  }

  private mutating func endBlockIfFull() {
    if removed.count + inserted.count >= blockSize { endBlock() }
  }

  private mutating func endBlock() {
    var change = Change(deleted: removed.map(\.before), added: inserted)
    for (place, row) in removed.enumerated() {
      change.moves.append(
        Move(deleted: UInt32(truncatingIfNeeded: place), added: UInt32(truncatingIfNeeded: change.added.count)))
      change.added.append(IndexPath(section: sections, row: UInt32(truncatingIfNeeded: stepOfRemoved.count)))
      stepOfRemoved.append(row.step)
    }
    blocks.add(change) { pace.didCompose() }
    pace.spend(blockSize)
    removed.removeAll(keepingCapacity: true)
    inserted.removeAll(keepingCapacity: true)
  }
}
