extension Catalog {
  /// Every feed that keeps recent changes, bins included.
  private var remembering: [Feed] {
    feeds.values.flatMap { feed in [feed] + ((feed as? CollectionFeed)?.binFeeds ?? []) }.filter { $0.history != nil }
  }

  /// Lets go of the recent changes that are older than `moment` or beyond `historyBytes`. O(feeds + changes trimmed).
  public func trimHistories(before moment: Instant) {
    for feed in remembering {
      feed.history?.trim(bytes: limits.historyBytes, before: moment)
      feed.history?.compact()
    }
  }
}
