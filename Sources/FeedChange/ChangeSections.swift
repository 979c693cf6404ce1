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

  /// Whether the change lists rows of a section that it keeps, with its index before and after the change. O(log size).
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

/// Maps index paths from before a change to after it, or back.
/// - Precondition: paths are mapped in ascending order; the same path may be mapped repeatedly.
///
/// All calls together cost O(size of the change + calls), independent of the length of the feed.
public struct ChangeMap {
  /// The result of mapping a row.
  public enum Destination: Equatable, Sendable {
    case at(IndexPath)
    /// The row is the entry with this index of the list that removes rows: of `deleted` forward, of `added` backward.
    case listed(Int)
    case sectionGone
  }

  private let removed: [IndexPath]
  private let inserted: [IndexPath]
  private var sections: SectionMap

  private var nextRemoved = 0
  private var nextInserted = 0
  /// The indexes in `removed` of the first entry of `section`, and in `inserted` of the first entry of `target`.
  private var firstRemoved = 0
  private var firstInserted = 0
  private var section: UInt32?
  private var target: UInt32?

  /// Creates a map from coordinates before `change` to those after it.
  public init(forward change: Change) {
    removed = change.deleted
    inserted = change.added
    sections = SectionMap(removed: change.sectionsDeleted, inserted: change.sectionsAdded.map(\.at))
  }

  /// Creates a map from coordinates after `change` to those before it.
  public init(backward change: Change) {
    removed = change.added
    inserted = change.deleted
    sections = SectionMap(removed: change.sectionsAdded.map(\.at), inserted: change.sectionsDeleted)
  }

  /// Returns the destination of the row at `path`. A moved row is `listed`.
  public mutating func map(_ path: IndexPath) -> Destination {
    if path.section != section { enter(path.section) }
    assert(nextRemoved == 0 || removed[nextRemoved - 1] < path, "paths must be mapped in ascending order")
    while nextRemoved < removed.count, removed[nextRemoved] < path { nextRemoved += 1 }
    if nextRemoved < removed.count, removed[nextRemoved] == path { return .listed(nextRemoved) }
    guard let target else { return .sectionGone }
    let rowsBefore = path.row &- UInt32(truncatingIfNeeded: nextRemoved - firstRemoved)
    var row = rowsBefore &+ UInt32(truncatingIfNeeded: nextInserted - firstInserted)
    while nextInserted < inserted.count, inserted[nextInserted] <= IndexPath(section: target, row: row) {
      nextInserted += 1
      row &+= 1
    }
    return .at(IndexPath(section: target, row: row))
  }

  private mutating func enter(_ section: UInt32) {
    self.section = section
    target = sections.map(section)
    let start = IndexPath(section: section, row: 0)
    while nextRemoved < removed.count, removed[nextRemoved] < start { nextRemoved += 1 }
    firstRemoved = nextRemoved
    guard let target else { return }
    let targetStart = IndexPath(section: target, row: 0)
    while nextInserted < inserted.count, inserted[nextInserted] < targetStart { nextInserted += 1 }
    firstInserted = nextInserted
  }
}

/// Maps section indexes across a change.
/// - Precondition: sections are mapped in ascending order; the same section may be mapped repeatedly.
struct SectionMap {
  private let removed: [UInt32]
  private let inserted: [UInt32]
  private var nextRemoved = 0
  private var nextInserted = 0

  /// Creates a map across a change that removes `removed`, in coordinates of the origin, and inserts `inserted`, in
  /// coordinates of the destination.
  init(removed: [UInt32], inserted: [UInt32]) {
    self.removed = removed
    self.inserted = inserted
  }

  /// Returns the index of `section` in the destination; nil if it was removed. Amortised O(1).
  mutating func map(_ section: UInt32) -> UInt32? {
    assert(nextRemoved == 0 || removed[nextRemoved - 1] < section, "sections must be mapped in ascending order")
    while nextRemoved < removed.count, removed[nextRemoved] < section { nextRemoved += 1 }
    if nextRemoved < removed.count, removed[nextRemoved] == section { return nil }
    var target = section &- UInt32(truncatingIfNeeded: nextRemoved) &+ UInt32(truncatingIfNeeded: nextInserted)
    while nextInserted < inserted.count, inserted[nextInserted] <= target {
      nextInserted += 1
      target &+= 1
    }
    return target
  }
}
