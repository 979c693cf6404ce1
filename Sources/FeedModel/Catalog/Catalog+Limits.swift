extension Catalog {
  /// Elements of all feeds, each counted once however many bins hold it. O(feeds).
  public var elementCount: Int { feeds.values.reduce(0) { $0 + ($1.rowStore?.elements.count ?? 0) } }

  /// Bytes of all elements. O(feeds).
  public var elementBytes: Int { feeds.values.reduce(0) { $0 + ($1.rowStore?.elements.bytes ?? 0) } }

  /// Goes on under other limits. What is there already stays, even if it is more than they allow.
  public func adopt(_ limits: Limits) {
    self.limits = limits
    for feed in feeds.values {
      (feed as? CollectionFeed)?.state.limits = limits
      (feed as? ListFeed)?.state.limits = limits
    }
  }
}
