/// What may be done with the rows of a feed besides watching them (seed 002, "Opt-In Behaviours").
public struct Behaviours: Equatable, Sendable {
  /// Whether rows may be selected.
  public var selectable = true
  /// Whether several rows may be selected at a time; otherwise a selection takes the place of the one before.
  public var multiple = true
  /// Whether elements may be put in, taken out or replaced.
  public var editable = true
  /// Whether rows may be moved.
  public var movable = true

  public init() {}
}
