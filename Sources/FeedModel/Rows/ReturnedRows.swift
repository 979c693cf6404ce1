import FeedChange

/// Pairs rows that several steps removed with those that the same elements have after them, as moves
/// (`Protocol/README.md`, "The change").
///
/// A row that left a section and returned to it is one row. Of the elements that remain, one that left exactly one section
/// and entered exactly one other has one row.
struct ReturnedRows {
  typealias Entries = Slice<BlockList<UndoLog.Entry>>

  /// Above this product of removals and entries, rows are not traced: a row that left and returned stays listed twice.
  private static let limit = 1 << 22

  private let store: RowStore
  private let entries: Entries
  private let pace: Pace

  /// - Parameter entries: the steps.
  init(_ store: RowStore, _ entries: Entries, _ pace: Pace) {
    (self.store, self.entries, self.pace) = (store, entries, pace)
  }

  /// Adds the moves of these rows to the change of all steps.
  func pair(in change: inout Change) {
    if change.deleted.isEmpty || change.added.isEmpty { return }
    guard let removals = findRemovals() else { return }
    var pairs = RowPairs(change.moves)
    let others = pairWithinSections(removals, change, &pairs)
    if !others.isEmpty { pairAcrossSections(others, change, &pairs) }
    change.moves = pairs.moves
  }

  /// A step that removed a row of an element that exists after all steps.
  private struct Removal {
    /// The index of its entry.
    let index: Int
    /// The present handle of the element.
    let handle: UInt32
  }

  /// The steps that removed a row; nil if there are too many to trace them.
  private func findRemovals() -> [Removal]? {
    var removals: [Removal] = []
    var count = 0
    for index in entries.indices {
      if index & 63 == 63 { pace.spend() }
      guard entries[index].step == .removedRow else { continue }
      count += 1
      if count * entries.count > Self.limit { return nil }
      if let handle = store.successor(of: entries[index].handle) {
        removals.append(Removal(index: index, handle: handle))
      }
    }
    return removals
  }

  /// Pairs the rows that returned to their section. Returns the removals of the others.
  private func pairWithinSections(_ removals: [Removal], _ change: Change, _ pairs: inout RowPairs) -> [Removal] {
    var others: [Removal] = []
    for removal in removals {
      let section = entries[removal.index].section
      guard let added = place(of: removal.handle, in: section, among: change.added),
        let deleted = placeBefore(removal, among: change.deleted)
      else {
        if store.sections.count > 1 { others.append(removal) }
        continue
      }
      // A row that returned to its section is preferred to a row with the same element that left another section.
      if let other = pairs.added(of: deleted), change.added[Int(other)].section == section { continue }
      if let other = pairs.deleted(of: added), change.deleted[Int(other)].section == section { continue }
      pairs.pair(deleted, added)
    }
    return others
  }

  /// Pairs the rows of elements that left exactly one section and entered exactly one other.
  private func pairAcrossSections(_ removals: [Removal], _ change: Change, _ pairs: inout RowPairs) {
    /// For each element that entered one section, the rows that left and the one that came.
    var candidates: [UInt32: (left: [UInt32], entered: UInt32)] = [:]
    for removal in removals {
      pace.spend()
      let entered = store.sections.indices
        .compactMap { place(of: removal.handle, in: UInt32($0), among: change.added) }
        .filter { pairs.deleted(of: $0) == nil }
      guard entered.count == 1, let deleted = placeBefore(removal, among: change.deleted),
        pairs.added(of: deleted) == nil
      else { continue }
      candidates[removal.handle, default: ([], entered[0])].left.append(deleted)
    }
    for (left, entered) in candidates.values where left.count == 1 { pairs.pair(left[0], entered) }
  }

  /// The index among `paths`, which ascend, of the row of an element in a section; nil if it is not one of them.
  private func place(of handle: UInt32, in section: UInt32, among paths: [IndexPath]) -> UInt32? {
    guard let row = store.sections[Int(section)].rows.row(of: handle) else { return nil }
    return paths.place(of: IndexPath(section: section, row: UInt32(row)))
  }

  /// The index among `paths`, which ascend, of a removed row, before the first step; nil if it was not there or is not one
  /// of them. O(entries).
  private func placeBefore(_ removal: Removal, among paths: [IndexPath]) -> UInt32? {
    guard let row = rowBefore(removal) else { return nil }
    return paths.place(of: IndexPath(section: entries[removal.index].section, row: UInt32(row)))
  }

  /// The row before the first step of a row that was removed; nil if a later step inserted it. O(entries).
  private func rowBefore(_ removal: Removal) -> Int? {
    let section = entries[removal.index].section
    var row = entries[removal.index].row
    for entry in entries[entries.startIndex..<removal.index].reversed() where entry.section == section {
      switch entry.step {
      case .insertedRow:
        if entry.row == row { return nil }
        if entry.row < row { row -= 1 }
      case .removedRow:
        if entry.row <= row { row += 1 }
      default: break
      }
    }
    return Int(row)
  }
}

/// The moves of a change, by the indexes of their rows in its lists. An index is in at most one pair.
private struct RowPairs {
  private var addedOf: [UInt32: UInt32]
  private var deletedOf: [UInt32: UInt32]
  /// The moves of the beginning that keep their elements.
  private let keeping: Set<Move>

  init(_ moves: [Move]) {
    addedOf = Dictionary(uniqueKeysWithValues: moves.map { ($0.deleted, $0.added) })
    deletedOf = Dictionary(uniqueKeysWithValues: moves.map { ($0.added, $0.deleted) })
    keeping = Set(moves.lazy.filter(\.keepsElement))
  }

  func added(of deleted: UInt32) -> UInt32? { addedOf[deleted] }
  func deleted(of added: UInt32) -> UInt32? { deletedOf[added] }

  /// Pairs two rows, which are in no other pair afterwards.
  mutating func pair(_ deleted: UInt32, _ added: UInt32) {
    if let other = addedOf[deleted] { deletedOf[other] = nil }
    if let other = deletedOf[added] { addedOf[other] = nil }
    (addedOf[deleted], deletedOf[added]) = (added, deleted)
  }

  /// The pairs as the moves of a change.
  var moves: [Move] {
    addedOf
      .map { deleted, added in
        let move = Move(deleted: deleted, added: added)
        return Move(deleted: deleted, added: added, keepsElement: keeping.contains(move))
      }
      .sorted { $0.deleted < $1.deleted }
  }
}

extension Array where Element == IndexPath {
  /// The index of a path in an ascending array; nil if it is absent. O(log n).
  func place(of path: IndexPath) -> UInt32? {
    let place = countOfPrefix { $0 < path }
    return place < count && self[place] == path ? UInt32(place) : nil
  }
}
