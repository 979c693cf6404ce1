import FeedJSON

/// Conversions between the change of a feed and the changes of its sections.
extension Change {
  /// Stores in `part` the effect of this change on one section, as the change of a feed of that section alone.
  /// - Parameters:
  ///   - before: the section's index before the change.
  ///   - after: its index after the change.
  ///
  /// O(log size + rows found).
  package func extract(before: UInt32, after: UInt32, into part: inout Change) {
    part.removeAll(keepingCapacity: true)
    let deletedRange = deleted.range(of: before)
    let addedRange = added.range(of: after)
    // Lists that grow are copied. Most changes have few rows, for which the memory of the last one is enough.
    if deletedRange.count > part.deleted.capacity { part.deleted.reserveCapacity(deletedRange.count) }
    if addedRange.count > part.added.capacity { part.added.reserveCapacity(addedRange.count) }
    for place in deletedRange { part.deleted.append(IndexPath(section: 0, row: deleted[place].row)) }
    for place in addedRange { part.added.append(IndexPath(section: 0, row: added[place].row)) }
    for place in updated.range(of: after) { part.updated.append(IndexPath(section: 0, row: updated[place].row)) }
    if deletedRange.isEmpty || addedRange.isEmpty { return }
    for move in moves where deletedRange.contains(Int(move.deleted)) && addedRange.contains(Int(move.added)) {
      part.moves.append(
        Move(
          deleted: move.deleted &- UInt32(deletedRange.lowerBound), added: move.added &- UInt32(addedRange.lowerBound),
          keepsElement: move.keepsElement))
    }
  }
}

extension Change {
  /// The change without its rows. The composition of such changes is that of the whole changes without its rows.
  package var withoutRows: Change { Change(sectionsDeleted: sectionsDeleted, sectionsAdded: sectionsAdded) }

  /// Whether the change lists rows of a section that it keeps. O(log size).
  /// - Parameters:
  ///   - before: the section's index before the change.
  ///   - after: its index after the change.
  package func concerns(before: UInt32, after: UInt32) -> Bool {
    !deleted.range(of: before).isEmpty || !added.range(of: after).isEmpty || !updated.range(of: after).isEmpty
  }

  /// Whether the section at index `before` has index `after` after this change. O(sections listed).
  package func keepsSection(from before: Int, as after: Int) -> Bool {
    if hasSameSections { return before == after }
    if sectionsDeleted.contains(UInt32(before)) || sectionsAdded.contains(where: { $0.at == UInt32(after) }) {
      return false
    }
    let deletedBefore = sectionsDeleted.count { $0 < UInt32(before) }
    let addedBefore = sectionsAdded.count { $0.at < UInt32(after) }
    return before - deletedBefore == after - addedBefore
  }
}

extension Change {
  /// The rows of a deleted section that were added elsewhere. O(log n).
  package func transfers(from section: UInt32) -> ArraySlice<Transfer> {
    let start = transfers.indices.partitionPoint { transfers[$0].from.section < section }
    return transfers[start..<(start..<transfers.count).partitionPoint { transfers[$0].from.section == section }]
  }
}

extension Array where Element == IndexPath {
  /// Returns the indexes of the paths in one section. O(log n).
  /// - Precondition: the paths are ascending.
  package func range(of section: UInt32) -> Range<Int> {
    let start = indices.partitionPoint { self[$0].section < section }
    return start..<(start..<count).partitionPoint { self[$0].section == section }
  }
}

/// Composing the change of a parent feed from the changes of its children.
extension Change {
  /// Appends the change of a child whose first section has index `before` and then `after`.
  /// - Precondition: the sections of the child follow all sections listed so far, in both coordinates.
  ///
  /// O(size of the change of the child).
  @inlinable package mutating func append(_ child: borrowing Change, before: Int, after: Int) {
    if child.onlyUpdates {
      for path in child.updated { updated.append(path.shifted(by: UInt32(after))) }
      return
    }
    let (deletedCount, addedCount) = (UInt32(deleted.count), UInt32(added.count))
    let (before, after) = (UInt32(before), UInt32(after))
    for path in child.deleted { deleted.append(path.shifted(by: before)) }
    for path in child.added { added.append(path.shifted(by: after)) }
    for path in child.updated { updated.append(path.shifted(by: after)) }
    for move in child.moves {
      moves.append(
        Move(deleted: move.deleted &+ deletedCount, added: move.added &+ addedCount, keepsElement: move.keepsElement))
    }
    for known in child.transfers {
      transfers.append(
        Transfer(
          from: known.from.shifted(by: before), added: known.added &+ addedCount, keepsElement: known.keepsElement))
    }
    for section in child.sectionsDeleted { sectionsDeleted.append(section &+ before) }
    for section in child.sectionsAdded { sectionsAdded.append(section.moved(to: section.at &+ after)) }
  }

  /// Appends `count` sections, the first of which is `section`, to `sectionsDeleted`, and advances `section` by `count`.
  package mutating func removeSections(_ count: Int, at section: inout Int) {
    for index in section..<(section + count) { sectionsDeleted.append(UInt32(index)) }
    section += count
  }
}

extension IndexPath {
  /// The path with `sections` added to its section.
  @inlinable package func shifted(by sections: UInt32) -> IndexPath {
    IndexPath(packed: packed &+ UInt64(sections) << 32)
  }
}
