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
  public init(packed: UInt64) {
    self.packed = packed
  }

  /// Creates the path of `row` in `section`.
  @inlinable
  public init(section: UInt32, row: UInt32) {
    packed = UInt64(section) << 32 | UInt64(row)
  }

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
