/// What happened to a feed between two of its revisions, by position: the DiffCollectionResult of the protocol.
///
/// To apply it: remove `deleted` from the back; remove `sectionsDeleted` from the back; insert `sectionsAdded` in ascending
/// order, empty; insert `added` in ascending order; replace `updated`. So `deleted` and `sectionsDeleted` are in the
/// coordinates before the change, everything else in those after it, and a row of a surviving section that is listed
/// nowhere kept its element and its order among its like.
///
/// All lists are strictly ascending, `moves` by `Move.deleted`. Rows of a deleted section are not in `deleted`; rows of an
/// added one are all in `added`. No row of `added` is in `updated`.
public struct Change: Equatable, Sendable {
  /// The rows that left, before-coordinates.
  public var deleted: [IndexPath]
  /// The rows that came, after-coordinates.
  public var added: [IndexPath]
  /// The rows that stayed and have another element, after-coordinates.
  public var updated: [IndexPath]
  /// Pairs of one of `deleted` and one of `added` that are the same row; every place stands in at most one pair.
  public var moves: [Move]
  /// The sections that left with all their rows, before-coordinates.
  public var sectionsDeleted: [UInt32]
  /// The sections that came, after-coordinates.
  public var sectionsAdded: [SectionAddition]

  /// A change of the given lists, which must be as the type's description says; they are not checked here.
  @inlinable public init(
    deleted: [IndexPath] = [], added: [IndexPath] = [], updated: [IndexPath] = [], moves: [Move] = [],
    sectionsDeleted: [UInt32] = [], sectionsAdded: [SectionAddition] = []
  ) {
    self.deleted = deleted
    self.added = added
    self.updated = updated
    self.moves = moves
    self.sectionsDeleted = sectionsDeleted
    self.sectionsAdded = sectionsAdded
  }

  /// The change that changes nothing.
  public static let empty = Change()

  /// Whether nothing changes. O(1).
  @inlinable public var isEmpty: Bool {
    deleted.isEmpty && added.isEmpty && updated.isEmpty && sectionsDeleted.isEmpty && sectionsAdded.isEmpty
  }

  /// How many rows and sections are listed; a move counts twice. O(1).
  @inlinable public var size: Int {
    deleted.count + added.count + updated.count + sectionsDeleted.count + sectionsAdded.count
  }

  /// Makes this the empty change, keeping its memory for the next one when asked to.
  @inlinable public mutating func removeAll(keepingCapacity: Bool = false) {
    // Most lists of most changes are empty already, and to look costs less than to empty them.
    if !deleted.isEmpty { deleted.removeAll(keepingCapacity: keepingCapacity) }
    if !added.isEmpty { added.removeAll(keepingCapacity: keepingCapacity) }
    if keepingCapacity && updated.count == 1 {
      updated.removeLast()
    } else if !updated.isEmpty {
      updated.removeAll(keepingCapacity: keepingCapacity)
    }
    if !moves.isEmpty { moves.removeAll(keepingCapacity: keepingCapacity) }
    if !sectionsDeleted.isEmpty { sectionsDeleted.removeAll(keepingCapacity: keepingCapacity) }
    if !sectionsAdded.isEmpty { sectionsAdded.removeAll(keepingCapacity: keepingCapacity) }
  }

  /// Whether rows are replaced at most: nothing comes, goes or moves, so before- and after-coordinates are the same.
  @inlinable public var onlyUpdates: Bool {
    deleted.isEmpty && added.isEmpty && sectionsDeleted.isEmpty && sectionsAdded.isEmpty
  }
}

/// One moved row of a change, told by its places in the change's `deleted` and `added`, not by index paths.
@frozen
public struct Move: Hashable, Sendable {
  /// The place in `deleted` of where the row was.
  public var deleted: UInt32
  /// The place in `added` of where the row is now.
  public var added: UInt32

  /// The pair of those two places.
  @inlinable
  public init(deleted: UInt32, added: UInt32) {
    self.deleted = deleted
    self.added = added
  }
}

/// A section that a change adds.
public struct SectionAddition: Hashable, Sendable {
  /// The section's index after the change.
  public var at: UInt32
  /// The section's name: the feed, or bin of a feed, whose rows it holds.
  public var name: String

  /// The addition of a section called `name` that stands at `at` after the change.
  public init(at: UInt32, name: String) {
    self.at = at
    self.name = name
  }
}
