import FeedChange

/// Simplifying the change of several steps: a row that kept its identity, its place and its element is not listed
/// (`Protocol/README.md`, "The change").
extension RowStore {
  /// Reduces the composition of several steps to a minimal change.
  ///
  /// Composition knows only positions. This method knows the elements. A row that left and returned is paired as a move
  /// if its identity is the same, and so is one that left exactly one section and entered exactly one other. The move is
  /// dropped if it ends where it began. A row whose element equals the one before the steps is not updated; a moved one
  /// keeps its element, so that feeds in which it does not move don't list it. An array moves as few rows as possible.
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
    if pairsRows { ReturnedRows(self, entries, log.pace).pair(in: &change) }
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
    if movesFewest {
      assert(sections.count == 1, "a list has one section")
      change.moveFewestRows(of: sections[0].count + change.deleted.count - change.added.count, log.pace)
    }
    return change
  }

  /// Converts a simplified change of all rows as one section to a change of the keyed sections, in `change`, which is
  /// empty.
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

  /// The element that a path shows. O(log n).
  func handle(at path: IndexPath) -> UInt32 { sections[Int(path.section)].rows[Int(path.row)] }

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
