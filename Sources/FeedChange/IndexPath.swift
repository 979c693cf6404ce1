/// A row by its section and its place in that section, both from 0, in the flattened coordinates of one feed.
///
/// Whether the coordinates are those before or after a change is told by whoever holds the path. The two numbers are
/// packed into one word, so that comparing paths compares sections first and rows second at the price of one integer.
@frozen
public struct IndexPath: Hashable, Comparable, Sendable {
  /// The section in the upper half, the row in the lower.
  public let packed: UInt64

  /// The path with that packed value.
  @inlinable
  public init(packed: UInt64) {
    self.packed = packed
  }

  /// The path of `row` in `section`.
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
