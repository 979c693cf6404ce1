/// Carries index paths across a change, from its before-coordinates to its after-coordinates or back.
///
/// The paths are asked for in ascending order (the same one may be asked for again), and so a map costs O(change + questions)
/// in all, whatever the length of the feed.
public struct ChangeMap {
  /// What became of a row.
  public enum Destination: Equatable, Sendable {
    /// It stands there now.
    case at(IndexPath)
    /// It is that entry of the list that takes rows away: `deleted` on the way forward, `added` on the way back.
    case listed(Int)
    /// Its section is gone.
    case sectionGone
  }

  private let removed: [IndexPath]
  private let inserted: [IndexPath]
  private var sections: SectionMap

  private var nextRemoved = 0
  private var nextInserted = 0
  /// Where the entries of the current section begin in `removed`, and those of its target in `inserted`.
  private var firstRemoved = 0
  private var firstInserted = 0
  private var section: UInt32?
  private var target: UInt32?

  /// From the coordinates before `change` to those after it.
  public init(forward change: Change) {
    removed = change.deleted
    inserted = change.added
    sections = SectionMap(removed: change.sectionsDeleted, inserted: change.sectionsAdded.map(\.at))
  }

  /// From the coordinates after `change` to those before it.
  public init(backward change: Change) {
    removed = change.added
    inserted = change.deleted
    sections = SectionMap(removed: change.sectionsAdded.map(\.at), inserted: change.sectionsDeleted)
  }

  /// What became of the row at `path`. A moved row counts as listed, not as standing in its new place.
  public mutating func map(_ path: IndexPath) -> Destination {
    if path.section != section { enter(path.section) }
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

/// Carries section indexes across a change, asked in ascending order.
struct SectionMap {
  private let removed: [UInt32]
  private let inserted: [UInt32]
  private var nextRemoved = 0
  private var nextInserted = 0

  /// A map over a change that removes `removed` (coordinates of the origin) and inserts `inserted` (of the destination).
  init(removed: [UInt32], inserted: [UInt32]) {
    self.removed = removed
    self.inserted = inserted
  }

  /// Where `section` stands in the destination; nil when it was removed. Never ask for a section before one asked for
  /// already. Amortised O(1) over the two lists and the questions.
  mutating func map(_ section: UInt32) -> UInt32? {
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
