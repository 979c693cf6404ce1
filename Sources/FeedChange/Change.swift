/// The difference between two revisions of a feed, by position.
///
/// `deleted` and `sectionsDeleted` are in coordinates before the change, all other lists in coordinates after it. A row
/// that is not listed, of a section that is not listed, keeps its element and its order among the other such rows.
///
/// To apply a change: remove the rows of `deleted` from the last to the first, remove `sectionsDeleted` from the last to
/// the first, insert `sectionsAdded` in ascending order and empty, insert `added` in ascending order, replace `updated`.
/// ``apply(_:to:elements:)`` does that.
///
/// Invariant: all lists are strictly ascending, `moves` by `Move.deleted`. Rows of a deleted section are not in `deleted`.
/// All rows of an added section are in `added`. No row is in both `added` and `updated`. `transfers` ascends strictly by
/// `Transfer.from`, and an entry of `added` is in at most one pair of `moves` and `transfers`.
///
/// See "The change" in `Protocol/README.md`.
public struct Change: Equatable, Sendable {
  /// The rows that were removed or moved away. Coordinates before the change.
  public var deleted: [IndexPath]
  /// The rows that were inserted or moved here. Coordinates after the change.
  public var added: [IndexPath]
  /// The rows that stayed and have a new element. Coordinates after the change.
  public var updated: [IndexPath]
  /// Pairs of an entry of `deleted` and an entry of `added` that are the same row. An entry is in at most one pair.
  public var moves: [Move]
  /// The sections that were removed with all their rows. Coordinates before the change.
  public var sectionsDeleted: [UInt32]
  /// The sections that were inserted. Coordinates after the change.
  public var sectionsAdded: [SectionAddition]
  /// Pairs of a row of a deleted section and an entry of `added` that are the same row. They are not sent to clients, because
  /// `moves` cannot name such rows, and don't count when changes are compared.
  @usableFromInline package var transfers: [Transfer]

  /// Creates a change from lists that satisfy the invariant. They are not checked; see `validate(rowCounts:)`.
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
    transfers = []
  }

  /// The empty change.
  public static let empty = Change()

  /// Whether the change lists no row and no section. O(1).
  @inlinable public var isEmpty: Bool {
    deleted.isEmpty && added.isEmpty && updated.isEmpty && hasSameSections
  }

  /// The number of rows and sections listed. A move counts twice. O(1).
  @inlinable public var size: Int {
    deleted.count + added.count + updated.count + sectionsDeleted.count + sectionsAdded.count
  }

  /// Empties all lists, and keeps their memory if `keepingCapacity`.
  @inlinable public mutating func removeAll(keepingCapacity: Bool = false) {
    Self.empty(&deleted, keepingCapacity)
    Self.empty(&added, keepingCapacity)
    Self.empty(&updated, keepingCapacity)
    Self.empty(&moves, keepingCapacity)
    Self.empty(&sectionsDeleted, keepingCapacity)
    Self.empty(&sectionsAdded, keepingCapacity)
    Self.empty(&transfers, keepingCapacity)
  }

  /// Most lists are empty already, and many have one entry. The tests are cheaper than the call.
  @inlinable @inline(__always)
  static func empty<Entry>(_ list: inout [Entry], _ keepingCapacity: Bool) {
    if keepingCapacity && list.count == 1 {
      list.removeLast()
    } else if !list.isEmpty {
      list.removeAll(keepingCapacity: keepingCapacity)
    }
  }

  /// Whether no section is added or deleted. O(1).
  @inlinable public var hasSameSections: Bool { sectionsDeleted.isEmpty && sectionsAdded.isEmpty }

  /// Whether the change replaces elements only, so that coordinates before and after it are the same.
  @inlinable public var onlyUpdates: Bool { deleted.isEmpty && added.isEmpty && hasSameSections }

  /// Whether both changes are the same for clients.
  public static func == (left: Change, right: Change) -> Bool {
    left.deleted == right.deleted && left.added == right.added && left.updated == right.updated
      && left.moves == right.moves && left.sectionsDeleted == right.sectionsDeleted
      && left.sectionsAdded == right.sectionsAdded
  }
}

/// A row of a deleted section that is not deleted but added elsewhere.
///
/// Feeds that show the rows of another feed without its sections, such as views, list it as moved or not at all.
@usableFromInline
package struct Transfer: Sendable {
  /// The row before the change.
  @usableFromInline package var from: IndexPath
  /// The index in `Change.added` of the row's new path.
  @usableFromInline package var added: UInt32
  /// Whether the row is known to have the same element as before.
  @usableFromInline package var keepsElement: Bool

  @inlinable
  package init(from: IndexPath, added: UInt32, keepsElement: Bool) {
    (self.from, self.added, self.keepsElement) = (from, added, keepsElement)
  }
}

/// A moved row of a change, as its indexes in the change's `deleted` and `added`.
@frozen
public struct Move: Hashable, Sendable {
  /// The index in `deleted` of the row's old path.
  public var deleted: UInt32
  /// The index in `added` of the row's new path.
  public var added: UInt32
  /// Whether the row is known to have the same element as before the move.
  ///
  /// It is not sent to clients, so two moves that differ only in this are equal. It decides whether a row that moves away and
  /// back is an updated row: see `Change.normalizingMoves()`.
  public var keepsElement: Bool

  /// Creates a move between the entries with those indexes.
  @inlinable
  public init(deleted: UInt32, added: UInt32, keepsElement: Bool = false) {
    self.deleted = deleted
    self.added = added
    self.keepsElement = keepsElement
  }

  @inlinable
  public static func == (left: Move, right: Move) -> Bool {
    left.deleted == right.deleted && left.added == right.added
  }

  @inlinable
  public func hash(into hasher: inout Hasher) {
    hasher.combine(deleted)
    hasher.combine(added)
  }
}
