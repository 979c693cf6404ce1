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
