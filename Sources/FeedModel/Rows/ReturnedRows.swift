import FeedChange

/// Pairs rows that steps removed with those of the same elements after them (`Protocol/README.md`, "The change").
///
/// A row that left a section and returned to it is one row. Of the elements that remain, one that left exactly one section
/// and entered exactly one other has one row.
struct ReturnedRows {
  typealias Entries = Slice<BlockList<UndoLog.Entry>>

  private let store: RowStore
  private let entries: Entries
  private let pace: Pace

  init(_ store: RowStore, _ entries: Entries, _ pace: Pace) {
    (self.store, self.entries, self.pace) = (store, entries, pace)
  }

  /// Adds the moves of these rows to the change of all steps. O((e + c) log(e + c)) for e entries and a change of size c.
  func pair(in change: inout Change) {
    if isComplete(change) || !entries.contains(where: isRemoval) { return }
    let removals = findRemovals(change)
    if removals.isEmpty { return }
    var pairs = RowPairs(change, pace)
    pairWithinSections(removals, change, &pairs)
    if store.sections.count > 1 { pairAcrossSections(removals, change, &pairs) }
    change.moves = pairs.makeMoves()
  }

  /// Whether no row is left to pair: all that were deleted, or all that were added, are in pairs within their sections.
  private func isComplete(_ change: Change) -> Bool {
    guard change.moves.count == min(change.deleted.count, change.added.count) else { return false }
    return store.sections.count == 1
      || change.moves.allSatisfy { move in
        pace.spend()
        return change.deleted[Int(move.deleted)].section == change.added[Int(move.added)].section
      }
  }

  /// A row that a step removed, of an element that exists after all steps.
  private struct Removal {
    /// The present handle of the element.
    let handle: UInt32
    /// Its index in the change's `deleted`.
    let deleted: UInt32
  }

  /// Whether an entry removed a row of an element that exists after all steps.
  private func isRemoval(_ entry: UndoLog.Entry) -> Bool {
    pace.spend()
    return entry.step == .removedRow && store.successor(of: entry.handle) != nil
  }

  /// The removed rows that existed before all steps.
  private func findRemovals(_ change: Change) -> [Removal] {
    var trace = RowTrace(sections: store.sections.count, pace)
    for index in entries.indices {
      let entry = entries[index]
      switch entry.step {
      case .insertedRow: trace.insert(at: IndexPath(section: entry.section, row: entry.row))
      case .removedRow: trace.remove(at: IndexPath(section: entry.section, row: entry.row), step: index)
      default: break
      }
      if index & 63 == 63 { pace.spend() }
    }
    let rows = trace.finish()
    var removals: [Removal] = []
    removals.reserveCapacity(rows.count)
    for row in rows {
      pace.spend()
      guard let handle = store.successor(of: entries[row.step].handle),
        let deleted = change.deleted.place(of: row.before)
      else { continue }
      removals.append(Removal(handle: handle, deleted: deleted))
    }
    return removals
  }

  private func pairWithinSections(_ removals: [Removal], _ change: Change, _ pairs: inout RowPairs) {
    for removal in removals {
      pace.spend()
      let section = change.deleted[Int(removal.deleted)].section
      guard let added = place(of: removal.handle, in: section, among: change.added) else { continue }
      // A row that returned to its section is preferred to a row with the same element that left another section.
      if let other = pairs.added(of: removal.deleted), change.added[Int(other)].section == section { continue }
      if let other = pairs.deleted(of: added), change.deleted[Int(other)].section == section { continue }
      pairs.pair(removal.deleted, added)
    }
  }

  /// Pairs the rows of elements that left exactly one section and entered exactly one other.
  private func pairAcrossSections(_ removals: [Removal], _ change: Change, _ pairs: inout RowPairs) {
    let removals = removals.filter { pairs.added(of: $0.deleted) == nil }
    if removals.isEmpty { return }
    var crossings = [UInt32: Crossing](minimumCapacity: removals.count)
    for removal in removals {
      crossings[removal.handle, default: Crossing()].didLeave(removal.deleted)
      pace.spend()
    }
    for (place, path) in change.added.enumerated() {
      if place & 7 == 7 { pace.spend() }
      let added = UInt32(truncatingIfNeeded: place)
      if pairs.deleted(of: added) == nil { crossings[store.handle(at: path)]?.didEnter(added) }
    }
    for crossing in crossings.values {
      pace.spend()
      if let (left, entered) = crossing.pair { pairs.pair(left, entered) }
    }
  }

  /// The index among `paths`, which ascend, of the row of an element in a section; nil if it is not one of them.
  private func place(of handle: UInt32, in section: UInt32, among paths: [IndexPath]) -> UInt32? {
    guard let row = store.sections[Int(section)].rows.row(of: handle) else { return nil }
    return paths.place(of: IndexPath(section: section, row: UInt32(row)))
  }
}

/// The rows of an element that left sections and entered others, by numbers that the caller gives them.
struct Crossing {
  private var (left, entered): (UInt32, UInt32) = (0, 0)
  private var (leftCount, enteredCount): (UInt32, UInt32) = (0, 0)

  mutating func didLeave(_ row: UInt32) { (left, leftCount) = (row, leftCount + 1) }
  mutating func didEnter(_ row: UInt32) { (entered, enteredCount) = (row, enteredCount + 1) }

  /// The only row that left and the only one that entered; nil if there are none or several.
  var pair: (left: UInt32, entered: UInt32)? { leftCount == 1 && enteredCount == 1 ? (left, entered) : nil }
}

/// The moves of a change, by the indexes of their rows in its lists. An index is in at most one pair.
private struct RowPairs {
  /// The value for "in no pair" in the tables below.
  private static let none = UInt32.max

  /// For each entry of `deleted` the one of `added`, and the reverse.
  private var addedOf, deletedOf: [UInt32]
  private let original: [Move]
  private let pace: Pace

  init(_ change: Change, _ pace: Pace) {
    (self.pace, original) = (pace, change.moves)
    addedOf = [UInt32](repeating: Self.none, count: change.deleted.count, pace)
    deletedOf = [UInt32](repeating: Self.none, count: change.added.count, pace)
    for (place, move) in change.moves.enumerated() {
      if place & 31 == 31 { pace.spend() }
      pair(move.deleted, move.added)
    }
  }

  func added(of deleted: UInt32) -> UInt32? { Self.known(addedOf[Int(deleted)]) }
  func deleted(of added: UInt32) -> UInt32? { Self.known(deletedOf[Int(added)]) }
  private static func known(_ index: UInt32) -> UInt32? { index == none ? nil : index }

  /// Pairs two rows, which are in no other pair afterwards.
  mutating func pair(_ deleted: UInt32, _ added: UInt32) {
    if let other = self.added(of: deleted) { deletedOf[Int(other)] = Self.none }
    if let other = self.deleted(of: added) { addedOf[Int(other)] = Self.none }
    (addedOf[Int(deleted)], deletedOf[Int(added)]) = (added, deleted)
  }

  func makeMoves() -> [Move] {
    var moves: [Move] = []
    moves.reserveCapacity(min(addedOf.count, deletedOf.count))
    var next = 0
    for (deleted, added) in addedOf.enumerated() {
      if deleted & 31 == 31 { pace.spend() }
      if added == Self.none { continue }
      var move = Move(deleted: UInt32(truncatingIfNeeded: deleted), added: added)
      while next < original.count, original[next].deleted < move.deleted { next += 1 }
      // An original pair knows whether it keeps its element.
      if next < original.count, original[next] == move { move = original[next] }
      moves.append(move)
    }
    return moves
  }
}

extension Array where Element == IndexPath {
  /// The index of a path in an ascending array; nil if it is absent. O(log n).
  func place(of path: IndexPath) -> UInt32? {
    let place = countOfPrefix { $0 < path }
    return place < count && self[place] == path ? UInt32(place) : nil
  }
}

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

  private mutating func endBlockIfFull() { if removed.count + inserted.count >= blockSize { endBlock() } }

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
