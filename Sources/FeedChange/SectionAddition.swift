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
