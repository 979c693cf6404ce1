import FeedChange

/// Simplifying the change of several steps: a row that kept its identity, its place and its element is not listed
/// (`Protocol/README.md`, "The change").
extension RowStore {
  /// Above this product of removals and entries, rows are not traced: a row that left and returned stays listed twice.
  private static let pairingLimit = 1 << 22

  /// Reduces the composition of several steps to a minimal change.
  ///
  /// Composition knows only positions. This method knows the elements. A row that left and returned is paired as a move
  /// if its identity is the same, and so is one that left exactly one section and entered exactly one other. The move is
  /// dropped if it ends where it began. A row whose element equals the one before the steps is not updated; a moved one
  /// keeps its element, so that feeds in which it does not move don't list it.
  ///
  /// - Parameters:
  ///   - position: the position in the log where the steps begin. The sections have not changed since.
  ///   - known: the entries of the whole commit, if they were divided already.
  ///   - pairsRows: false if the path of the identity has changed, so that no row that left has returned.
  func simplify(
    _ change: Change, _ log: UndoLog, since position: UndoLog.Position, _ known: UndoLog.EntriesByStore? = nil,
    pairsRows: Bool = true
  ) -> Change {
    let own = Unmanaged<RowStore>.passUnretained(self)
    let entries = known?[own] ?? log.entries(of: own, since: position)
    var change = change
    if pairsRows { pairReturned(&change, entries, log.pace) }
    let mayKeepElements = change.moves.contains { !$0.keepsElement }
    let versions = mayKeepElements || !change.updated.isEmpty ? versions(entries, log.pace, pairsRows: pairsRows) : nil
    if mayKeepElements, let versions {
      for (place, move) in change.moves.enumerated() where !move.keepsElement {
        if place & 15 == 15 { log.pace.spend() }
        let handle = handle(at: change.added[Int(move.added)])
        change.moves[place].keepsElement = isUnchanged(handle, since: versions)
      }
    }
    change = change.normalizingMoves { log.pace.didCompareMoves() }
    if let versions { dropUnchanged(from: &change.updated, versions, log.pace, handleOf: handle) }
    return change
  }

  /// Converts a simplified change of all rows as one section to a change of the keyed sections, in `change`, which is
  /// empty.
  ///
  /// - Parameters:
  ///   - position: the position in the log where the scope begins.
  ///   - isStep: whether the change is a single step, which needs no simplification.
  func divide(
    _ flat: borrowing Change, by keyed: KeyedSections, since scope: KeyedSections.Scope, _ log: UndoLog,
    _ position: UndoLog.Position, isStep: Bool, into change: inout Change
  ) {
    KeyedDivision(of: keyed, since: scope, isStep: isStep, log.pace).divide(flat, into: &change)
    if isStep || change.moves.isEmpty { return }
    change = change.normalizingMoves { log.pace.didCompareMoves() }
    if change.updated.isEmpty { return }
    let versions = versions(log.entries(of: .passUnretained(self), since: position), log.pace, pairsRows: true)
    dropUnchanged(from: &change.updated, versions, log.pace) { keyed.handle(at: $0) }
  }

  private func handle(at path: IndexPath) -> UInt32 { sections[Int(path.section)].rows[Int(path.row)] }

  private func pairReturned(_ change: inout Change, _ entries: Slice<BlockList<UndoLog.Entry>>, _ pace: Pace) {
    if change.deleted.isEmpty || change.added.isEmpty { return }
    var removals: [Int] = []
    for index in entries.indices {
      if entries[index].step == .removedRow { removals.append(index) }
      if index & 63 == 63 { pace.spend() }
      if removals.count * entries.count > Self.pairingLimit { return }
    }
    var targets = Dictionary(uniqueKeysWithValues: change.moves.map { ($0.deleted, $0.added) })
    var sources = Dictionary(uniqueKeysWithValues: change.moves.map { ($0.added, $0.deleted) })
    /// The removals of rows that did not return to their section, and the present handles of their elements.
    var others: [(removal: Int, handle: UInt32)] = []
    for index in removals {
      let section = entries[index].section
      guard let handle = successor(of: entries[index].handle) else { continue }
      guard let added = place(of: handle, in: section, among: change.added),
        let deleted = placeBefore(entries, index, among: change.deleted)
      else {
        if sections.count > 1 { others.append((index, handle)) }
        continue
      }
      // A row that returned to its section is preferred to a row with the same element that left another section.
      if let other = targets[deleted] {
        if change.added[Int(other)].section == section { continue }
        sources[other] = nil
      }
      if let other = sources[added] {
        if change.deleted[Int(other)].section == section { continue }
        targets[other] = nil
      }
      (targets[deleted], sources[added]) = (added, deleted)
    }
    /// Of the elements of these rows, those that entered exactly one section: the rows that left, and the one that came.
    var candidates: [UInt32: (left: [UInt32], entered: UInt32)] = [:]
    for (removal, handle) in others {
      pace.spend()
      let entered = sections.indices.compactMap { place(of: handle, in: UInt32($0), among: change.added) }
        .filter { sources[$0] == nil }
      guard entered.count == 1, let deleted = placeBefore(entries, removal, among: change.deleted),
        targets[deleted] == nil
      else { continue }
      candidates[handle, default: ([], entered[0])].left.append(deleted)
    }
    for (left, entered) in candidates.values where left.count == 1 { targets[left[0]] = entered }
    let kept = Set(change.moves.lazy.filter(\.keepsElement))
    change.moves = targets.map { deleted, added in
      let move = Move(deleted: deleted, added: added)
      return Move(deleted: deleted, added: added, keepsElement: kept.contains(move))
    }
    change.moves.sort { $0.deleted < $1.deleted }
  }

  /// The index among `paths`, which ascend, of the row of an element in a section; nil if it is not one of them.
  private func place(of handle: UInt32, in section: UInt32, among paths: [IndexPath]) -> UInt32? {
    guard let row = sections[Int(section)].rows.row(of: handle) else { return nil }
    return paths.place(of: IndexPath(section: section, row: UInt32(row)))
  }

  /// The index among `paths`, which ascend, of a row that an entry removed, before the first entry; nil if it was not there or
  /// is not one of them. O(index).
  private func placeBefore(
    _ entries: Slice<BlockList<UndoLog.Entry>>, _ index: Int, among paths: [IndexPath]
  ) -> UInt32? {
    guard let row = rowBefore(entries, index) else { return nil }
    return paths.place(of: IndexPath(section: entries[index].section, row: UInt32(row)))
  }

  /// The row before the first entry of a row that an entry removed; nil if it was inserted by a later entry. O(index).
  private func rowBefore(_ entries: Slice<BlockList<UndoLog.Entry>>, _ index: Int) -> Int? {
    var row = entries[index].row
    for entry in entries[entries.startIndex..<index].reversed() where entry.section == entries[index].section {
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

  /// Removes rows from `updated` whose element after all steps equals the one before them.
  private func dropUnchanged(
    from updated: inout [IndexPath], _ versions: VersionsBefore, _ pace: Pace, handleOf: (IndexPath) -> UInt32
  ) {
    updated.removeAll { path in
      pace.spend()
      return isUnchanged(handleOf(path), since: versions)
    }
  }

  /// Whether an element equals the one before the steps.
  private func isUnchanged(_ handle: UInt32, since versions: VersionsBefore) -> Bool {
    // An existing element that was not exchanged is unchanged: its row only moved.
    guard let first = versions.originals[handle] else { return !versions.added.contains(handle) }
    let now = elements.text(of: handle)
    return Self.equal(first.text, now.text) && Self.equal(first.type, now.type)
  }

  /// The versions of elements before some entries, by their current handles; and the elements that the entries added.
  private struct VersionsBefore {
    var originals: [UInt32: ElementText]
    var added: Set<UInt32>
  }

  private func versions(_ entries: Slice<BlockList<UndoLog.Entry>>, _ pace: Pace, pairsRows: Bool) -> VersionsBefore {
    var (exchanges, additions) = (0, 0)
    for (place, entry) in entries.enumerated() {
      if place & 63 == 63 { pace.spend() }
      if entry.step == .exchangedText { exchanges += 1 }
      if entry.step == .addedElement { additions += 1 }
    }
    // With their capacity from the beginning, since growing moves everything at once.
    var originals = [UInt32: ElementText](minimumCapacity: exchanges)
    var added = Set<UInt32>(minimumCapacity: additions)
    if additions > 0 {
      for (place, entry) in entries.enumerated() {
        if place & 15 == 15 { pace.spend() }
        if entry.step == .addedElement { added.insert(entry.handle) }
      }
    }
    for (place, entry) in entries.enumerated() {
      if place & 15 == 15 { pace.spend() }
      // What an added element had before an exchange is younger than the entries.
      guard entry.step == .exchangedText, originals[entry.handle] == nil, !added.contains(entry.handle)
      else { continue }
      originals[entry.handle] = ElementText(bitPattern: entry.text)
    }
    guard pairsRows else { return VersionsBefore(originals: originals, added: added) }
    for (place, entry) in entries.enumerated() {
      if place & 3 == 3 { pace.spend() }
      // Only the first removal of an identity refers to the version before the entries.
      guard entry.step == .removedElement, !added.contains(entry.handle), let now = successor(of: entry.handle)
      else { continue }
      originals[now] = originals[entry.handle] ?? elements.text(of: entry.handle)
    }
    return VersionsBefore(originals: originals, added: added)
  }
}

extension Array where Element == IndexPath {
  /// The index of a path in an ascending array; nil if it is absent. O(log n).
  func place(of path: IndexPath) -> UInt32? {
    let place = countOfPrefix { $0 < path }
    return place < count && self[place] == path ? UInt32(place) : nil
  }
}
