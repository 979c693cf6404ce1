/// What a `slots` feed is made of: contents by type and the pattern that interleaves them (seeds 000 and 001).
public struct SlotsDefinition: Equatable, Sendable {
  /// The feed of each type, by the type's name; in the order of the definition.
  public let contents: [Content]
  public let pattern: [String]
  public let repeatables: [String]
  public let header: [String]
  public let defaultType: String?
  /// Types by the position they are fixed at, ascending.
  public let fixed: [Fixed]

  public struct Content: Equatable, Sendable {
    public let type: String
    public let feed: String
  }

  public struct Fixed: Equatable, Sendable {
    public let position: Int
    public let type: String
  }
}
