extension Feed {
  /// What `define` would have to be given to make this feed; nil for a bin, which its collection defines.
  public var definition: FeedDefinition? {
    content.map { FeedDefinition(name: name, content: $0, behaviours: behaviours) }
  }

  private var content: FeedDefinition.Content? {
    switch self {
    case let feed as CollectionFeed: .collection(feed.content)
    case let feed as ListFeed: .list(ListDefinition(shape: feed.shape, type: feed.state.type))
    case let feed as ComposedFeed: .composed(children: feed.children.map(\.name))
    case let feed as SegmentedFeed: .segmented(children: feed.children.map(\.name), current: feed.current)
    case let feed as SlotsFeed: .slots(feed.plan.definition)
    case let feed as ManagedFeed: .managed(feed.content)
    default: nil
    }
  }
}
