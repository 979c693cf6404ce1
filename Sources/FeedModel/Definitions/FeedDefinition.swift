import FeedJSON

/// A feed as `define` describes it: its name and what it is made of.
public struct FeedDefinition: Equatable, Sendable {
  /// The kinds of feed and what each is made of.
  public enum Content: Equatable, Sendable {
    case collection(CollectionDefinition)
  }

  public let name: String
  public let content: Content

  /// The kind's name on the wire.
  public var kind: String {
    switch content {
    case .collection: "collection"
    }
  }

  /// The kinds that can be defined.
  public static let kinds = ["collection"]

  public init(name: String, content: Content) {
    self.name = name
    self.content = content
  }

  /// A collection with the defaults: identity at `$.id`, one bin `all` in order of arrival.
  public static func plainCollection(_ name: String) -> FeedDefinition {
    FeedDefinition(
      name: name,
      content: .collection(
        CollectionDefinition(
          id: .id, type: nil, exclusive: false, bins: [.init(name: "all", filter: nil, sort: [])], retain: nil)))
  }
}
