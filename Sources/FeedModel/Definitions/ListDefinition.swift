import FeedQuery

/// What an `array` or a `single` feed is made of.
public struct ListDefinition: Equatable, Sendable {
  public let shape: ListFeed.Shape
  /// Where an element names its type.
  public let type: SingularPath?

  public static func == (a: ListDefinition, b: ListDefinition) -> Bool {
    a.shape == b.shape && a.type?.text == b.type?.text
  }
}
