import FeedJSON
import FeedQuery

/// A feed as `define` describes it: its name, what it is made of and what may be done with its rows.
public struct FeedDefinition: Equatable, Sendable {
  /// The kinds of feed and what each is made of.
  public enum Content: Equatable, Sendable {
    case collection(CollectionDefinition)
    case list(ListDefinition)
    case composed(children: [String])
    /// `current` is the index of the child that shows, -1 for none.
    case segmented(children: [String], current: Int)
    case slots(SlotsDefinition)
    /// Allowed only in the daemon's own configuration.
    case managed(ManagedDefinition)
  }

  public let name: String
  public let content: Content
  public let behaviours: Behaviours

  /// The kind's name on the wire.
  public var kind: String {
    switch content {
    case .collection: "collection"
    case .list(let list): list.shape.rawValue
    case .composed: "composed"
    case .segmented: "segmented"
    case .slots: "slots"
    case .managed: "managed"
    }
  }

  /// The kinds that can be defined; `managed` only by the daemon's configuration.
  public static let kinds = ["array", "collection", "composed", "managed", "segmented", "single", "slots"]

  public init(name: String, content: Content, behaviours: Behaviours = Behaviours()) {
    self.name = name
    self.content = content
    self.behaviours = behaviours
  }
}

extension FeedDefinition.Content {
  /// The names of the feeds and bins whose rows the feed shows.
  var shown: [String] {
    switch self {
    case .composed(let children), .segmented(let children, _): children
    case .slots(let slots): slots.contents.map(\.feed)
    default: []
    }
  }
}
