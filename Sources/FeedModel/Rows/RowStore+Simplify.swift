import FeedChange

/// The change of several steps together: a row that kept its identity, its place and its element is not listed
/// (`Protocol/README.md`, "The change").
extension RowStore {
  /// Steps whose rows are followed back to where they began; beyond that a row that left and came back stays listed twice.
  private static let pairingLimit = 1 << 22

  /// Makes the composition of several steps as small as it can be.
  ///
  /// Composing goes by positions alone. This knows the elements: a row that left and came back is the same row if its
  /// identity is the same, so it is paired as a move, which vanishes if it moved nowhere; and a row whose element is again
  /// what it was is not updated.
  ///
  /// - Parameter mark: where in the log the steps begin; the section structure has not changed since.
  func simplify(_ change: Change, _ log: UndoLog, since mark: UndoLog.Mark) -> Change {
    let own = Unmanaged.passUnretained(self).toOpaque()
    var entries = log.entries[mark.entries...]
    // Most operations change one feed, and a copy of what many steps noted is large.
    if !entries.allSatisfy({ $0.state.toOpaque() == own }) {
      entries = entries.filter { $0.state.toOpaque() == own }[...]
    }
    var change = change
    pairReturned(&change, entries)
    change = change.normalizingMoves()
    dropUnchanged(from: &change.updated, entries)
    return change
  }

  private func pairReturned(_ change: inout Change, _ entries: ArraySlice<UndoLog.Entry>) {
    if change.deleted.isEmpty || change.added.isEmpty { return }
    let removals = entries.indices.filter { entries[$0].step == .removedRow }
    guard removals.count * entries.count <= Self.pairingLimit else { return }
    var targets = Dictionary(uniqueKeysWithValues: change.moves.map { ($0.deleted, $0.added) })
    var sources = Dictionary(uniqueKeysWithValues: change.moves.map { ($0.added, $0.deleted) })
    for index in removals {
      let section = entries[index].section
      guard let handle = successor(of: entries[index].handle), let row = sections[Int(section)].rows.row(of: handle),
        let before = rowBefore(entries, index),
        let deleted = change.deleted.place(of: IndexPath(section: section, row: UInt32(before))),
        let added = change.added.place(of: IndexPath(section: section, row: UInt32(row)))
      else { continue }
      // A row that came back to its section is that row, rather than one of the same element that left another.
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
    let kept = Set(change.moves.lazy.filter(\.keepsElement))
    change.moves = targets.map { deleted, added in
      let move = Move(deleted: deleted, added: added)
      return Move(deleted: deleted, added: added, keepsElement: kept.contains(move))
    }
    change.moves.sort { $0.deleted < $1.deleted }
  }

  /// Where a row that an entry removed stood before the first entry; nil when it came in later. O(index).
  private func rowBefore(_ entries: ArraySlice<UndoLog.Entry>, _ index: Int) -> Int? {
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

  /// Takes out of `updated` the rows whose element is, after all steps, what it was before them.
  private func dropUnchanged(from updated: inout [IndexPath], _ entries: ArraySlice<UndoLog.Entry>) {
    if updated.isEmpty { return }
    let originals = originals(entries)
    let added = Set(entries.lazy.filter { $0.step == .addedElement }.map(\.handle))
    updated.removeAll { path in
      let handle = sections[Int(path.section)].rows[Int(path.row)]
      // An element that was there and was not exchanged is what it was: its row has only been moved and moved back.
      guard let first = originals[handle] else { return !added.contains(handle) }
      let now = elements.text(of: handle)
      return Self.equal(first.text, now.text) && Self.equal(first.type, now.type)
    }
  }

  /// The versions that elements had before the entries, by the handles they have now.
  private func originals(_ entries: ArraySlice<UndoLog.Entry>) -> [UInt32: ElementText] {
    var originals: [UInt32: ElementText] = [:]
    for entry in entries where entry.step == .exchangedText && originals[entry.handle] == nil {
      originals[entry.handle] = ElementText(bitPattern: entry.text)
    }
    var added: Set<UInt32> = []
    for entry in entries {
      if entry.step == .addedElement { added.insert(entry.handle) }
      // Only the first life of an identity began before the entries.
      guard entry.step == .removedElement, !added.contains(entry.handle), let heir = successor(of: entry.handle) else {
        continue
      }
      originals[heir] = originals[entry.handle] ?? elements.text(of: entry.handle)
    }
    return originals
  }
}

extension Array where Element == IndexPath {
  /// The place of a path in an ascending array. O(log n).
  fileprivate func place(of path: IndexPath) -> UInt32? {
    let place = countOfPrefix { $0 < path }
    return place < count && self[place] == path ? UInt32(place) : nil
  }
}
