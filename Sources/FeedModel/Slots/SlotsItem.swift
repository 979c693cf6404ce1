/// One row of a slots list: a content type and a row of that content.
public struct SlotsItem: Hashable, Sendable {
  /// The index of the content type.
  public var type: Int
  /// The row in the content of that type, from 0.
  public var index: Int

  /// The row `index` of `type`.
  public init(type: Int, index: Int) {
    self.type = type
    self.index = index
  }
}
