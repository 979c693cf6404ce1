/// What `retain` takes away: the longest-unchanged elements first.
extension Catalog {
  /// Evicts what exceeds the count, as further steps of the operation under way.
  func evict(_ feed: CollectionFeed, _ state: CollectionState) {
    guard let most = state.definition.retain?.count else { return }
    let excess = state.elements.count - most
    if excess > 0 { removeAll(state.elements.longestUnchanged(excess), from: feed) }
  }

  /// Evicts, as one operation, the elements of `feed` that are too old at the moment of the commit under way; at most
  /// `limit`, so that a large wave does not hold up everybody else. Returns how many went.
  public func evictExpired(_ feed: CollectionFeed, limit: Int) -> Int {
    startOperation()
    let mark = log.mark
    let evicted = feed.expired(at: now, limit: limit)
    removeAll(evicted, from: feed)
    finishSteps(on: feed, feed.state, since: mark)
    return evicted.count
  }

  /// When the next element of any collection becomes too old; nil while none can. O(collections with `retain`).
  public var nextExpiry: Instant? {
    expiring.compactMap(\.nextExpiry).min()
  }

  /// The collections that have an element too old at `now`.
  public func expired(at now: Instant) -> [CollectionFeed] {
    expiring.filter { feed in feed.nextExpiry.map { $0 <= now } ?? false }
  }
}
