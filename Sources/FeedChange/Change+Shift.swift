/// Putting the changes of children together into the change of their parent.
extension Change {
  /// Appends a child's change, whose sections begin at `before` and then at `after`. The change must come after all that
  /// is here already, in both coordinates. O(size of the child's change).
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
      moves.append(Move(deleted: move.deleted &+ deletedCount, added: move.added &+ addedCount))
    }
    for section in child.sectionsDeleted { sectionsDeleted.append(section &+ before) }
    for section in child.sectionsAdded {
      sectionsAdded.append(SectionAddition(at: section.at &+ after, name: section.name))
    }
  }

  /// Lists `count` sections from `section` on as deleted and steps over them.
  package mutating func removeSections(_ count: Int, at section: inout Int) {
    for index in section..<(section + count) { sectionsDeleted.append(UInt32(index)) }
    section += count
  }
}

extension IndexPath {
  /// The path with its section moved on by `sections`.
  @inlinable package func shifted(by sections: UInt32) -> IndexPath {
    IndexPath(packed: packed &+ UInt64(sections) << 32)
  }
}
