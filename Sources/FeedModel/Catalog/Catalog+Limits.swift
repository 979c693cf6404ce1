extension Catalog {
  /// Goes on under other limits. What is there already stays, even if it is more than they allow.
  public func adopt(_ limits: Limits) {
    self.limits = limits
    for feed in feeds.values {
      (feed as? CollectionFeed)?.state.limits = limits
      (feed as? ListFeed)?.state.limits = limits
    }
  }
}
