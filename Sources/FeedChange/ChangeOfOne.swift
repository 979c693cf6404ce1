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
