/// Maps index paths from before a change to after it, or back.
/// - Precondition: paths are mapped in ascending order; the same path may be mapped repeatedly.
///
/// All calls together cost O(size of the change + calls), independent of the length of the feed.
public struct ChangeMap {
  /// The result of mapping a row.
  public enum Destination: Equatable, Sendable {
    /// The row has this path.
    case at(IndexPath)
    /// The row is the entry with this index of the list that removes rows: of `deleted` forward, of `added` backward.
    case listed(Int)
    /// The section of the row was removed.
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
