/// The difference between two revisions of a feed, by position.
///
/// `deleted` and `sectionsDeleted` are in coordinates before the change, all other lists in coordinates after it. A row
/// that is not listed, of a section that is not listed, keeps its element and its order among the other such rows.
///
/// To apply a change: remove the rows of `deleted` from the last to the first, remove `sectionsDeleted` from the last to
/// the first, insert `sectionsAdded` in ascending order and empty, insert `added` in ascending order, replace `updated`.
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

  public static let empty = Change()

  /// Whether the change lists no row and no section. O(1).
  @inlinable public var isEmpty: Bool { deleted.isEmpty && added.isEmpty && updated.isEmpty && hasSameSections }

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
  public static func == (left: Move, right: Move) -> Bool { left.deleted == right.deleted && left.added == right.added }

  @inlinable
  public func hash(into hasher: inout Hasher) {
    hasher.combine(deleted)
    hasher.combine(added)
  }
}

/// The position of a row in a feed: its section, and its row in that section, both from 0.
///
/// Both numbers are packed into one word, so that comparing two paths is one integer comparison: sections first, then
/// rows.
@frozen
public struct IndexPath: Hashable, Comparable, Sendable {
  /// The section in the upper half, the row in the lower.
  public let packed: UInt64

  /// Creates a path from its packed value.
  @inlinable
  public init(packed: UInt64) { self.packed = packed }

  @inlinable
  public init(section: UInt32, row: UInt32) { packed = UInt64(section) << 32 | UInt64(row) }

  /// The section, from 0.
  @inlinable
  public var section: UInt32 { UInt32(truncatingIfNeeded: packed >> 32) }

  /// The row in the section, from 0.
  @inlinable
  public var row: UInt32 { UInt32(truncatingIfNeeded: packed) }

  @inlinable
  public static func < (left: IndexPath, right: IndexPath) -> Bool { left.packed < right.packed }
}

extension IndexPath: CustomStringConvertible {
  /// The path as the protocol writes it: `[section,row]`.
  public var description: String { "[\(section),\(row)]" }
}

/// A section that a change inserts.
///
/// A short name is held in place, so that most additions take no memory of their own.
@frozen public struct SectionAddition: Hashable, Sendable {
  /// The section's index after the change.
  public var at: UInt32
  /// The bytes of a name held in place; 0 for a longer one. The highest bit is set for a section by value.
  @usableFromInline let lengthAndKind: UInt32
  @usableFromInline let short: ShortText
  /// A name that is not held in place; empty otherwise.
  @usableFromInline let long: String

  @usableFromInline static var byValue: UInt32 { @inlinable get { 1 << 31 } }

  /// Creates the insertion of the section `name` at index `at`.
  /// - Parameters:
  ///   - name: UTF-8.
  ///   - isByValue: whether it is a section by value, whose name tells the value.
  @inlinable public init(at: UInt32, name: UnsafeRawBufferPointer, isByValue: Bool = false) {
    self.at = at
    let kind = isByValue ? Self.byValue : 0
    if name.count <= ShortText.capacity {
      (lengthAndKind, short, long) = (UInt32(truncatingIfNeeded: name.count) | kind, ShortText(name), "")
    } else {
      (lengthAndKind, short, long) = (kind, ShortText(), String(decoding: name, as: UTF8.self))
    }
  }

  /// Creates the insertion of the section `name` at index `at`.
  public init(at: UInt32, name: String, isByValue: Bool = false) {
    var name = name
    self = name.withUTF8 { SectionAddition(at: at, name: UnsafeRawBufferPointer($0), isByValue: isByValue) }
  }

  /// Whether it is a section by value.
  @inlinable public var isByValue: Bool { lengthAndKind & Self.byValue != 0 }

  @usableFromInline var shortLength: UInt32 { @inlinable get { lengthAndKind & ~Self.byValue } }
  /// The section's name: that of the feed or the bin whose rows it holds.
  public var name: String { long.isEmpty ? withNameBytes { String(decoding: $0, as: UTF8.self) } : long }
  /// The length of the name in bytes of UTF-8.
  @inlinable public var nameLength: Int { shortLength > 0 ? Int(shortLength) : long.utf8.count }

  /// Calls `body` with the name as UTF-8.
  @inlinable public func withNameBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    if shortLength > 0 || long.isEmpty {
      return withUnsafeBytes(of: short) { body(UnsafeRawBufferPointer(rebasing: $0[..<Int(shortLength)])) }
    }
    var name = long
    return name.withUTF8 { body(UnsafeRawBufferPointer($0)) }
  }

  /// The insertion of the same section at another index.
  @usableFromInline package func moved(to index: UInt32) -> SectionAddition {
    var result = self
    result.at = index
    return result
  }
}

/// A few bytes, padded with zeros.
@frozen @usableFromInline struct ShortText: Hashable, Sendable {
  @usableFromInline static var capacity: Int { @inlinable get { MemoryLayout<ShortText>.size } }

  @usableFromInline var words = (UInt64(0), UInt64(0), UInt64(0), UInt64(0))

  @inlinable init() {}

  /// - Precondition: there are at most `capacity` bytes.
  @inlinable init(_ bytes: UnsafeRawBufferPointer) { withUnsafeMutableBytes(of: &words) { $0.copyMemory(from: bytes) } }

  @usableFromInline static func == (left: ShortText, right: ShortText) -> Bool { left.words == right.words }
  @usableFromInline func hash(into hasher: inout Hasher) { withUnsafeBytes(of: words) { hasher.combine(bytes: $0) } }
}

/// The change of one row, which most commits make. It needs no lists.
@frozen
public enum ChangeOfOne: Equatable, Sendable {
  /// The row stayed and has a new element.
  case updated(IndexPath)
  /// The row was inserted. The path is in coordinates after the change.
  case added(IndexPath)
  /// The row was removed. The path is in coordinates before the change.
  case deleted(IndexPath)
  /// The row has another place, and may have a new element.
  case moved(from: IndexPath, to: IndexPath)

  /// Whether the change replaces an element only, so that coordinates before and after it are the same.
  @inlinable public var isUpdate: Bool { if case .updated = self { true } else { false } }

  /// The path of the row after the change; nil if it was deleted.
  @inlinable public var shown: IndexPath? {
    switch self {
    case .updated(let path), .added(let path), .moved(_, let path): path
    case .deleted: nil
    }
  }

  /// The number of rows listed, as ``Change/size`` counts them.
  @inlinable public var size: Int { if case .moved = self { 2 } else { 1 } }

  /// The change with `shift` added to its sections.
  @inlinable public func shifted(by shift: UInt32) -> ChangeOfOne {
    switch self {
    case .updated(let path): .updated(path.shifted(by: shift))
    case .added(let path): .added(path.shifted(by: shift))
    case .deleted(let path): .deleted(path.shifted(by: shift))
    case .moved(let from, let to): .moved(from: from.shifted(by: shift), to: to.shifted(by: shift))
    }
  }
}

extension Change {
  /// Creates the change of one row.
  @inlinable public init(_ row: ChangeOfOne) {
    self.init()
    append(row)
  }

  /// Adds a row to lists that have none at or after its paths.
  @inlinable public mutating func append(_ row: ChangeOfOne) {
    switch row {
    case .updated(let path): updated.append(path)
    case .added(let path): added.append(path)
    case .deleted(let path): deleted.append(path)
    case .moved(let from, let to):
      moves.append(
        Move(deleted: UInt32(truncatingIfNeeded: deleted.count), added: UInt32(truncatingIfNeeded: added.count)))
      deleted.append(from)
      added.append(to)
    }
  }
}
