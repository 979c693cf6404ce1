extension Catalog {
  /// Every feed that keeps recent changes, bins included.
  private var remembering: [Feed] {
    feeds.values.flatMap { feed in [feed] + ((feed as? CollectionFeed)?.binFeeds ?? []) }.filter { $0.history != nil }
  }

  /// Bytes of recent changes that all feeds keep. O(feeds).
  public var historyBytes: Int { remembering.reduce(0) { $0 &+ ($1.history?.bytes ?? 0) } }

  /// Lets go of the recent changes that are older than `moment`, or beyond `historyBytes` for a feed or `maxHistoryBytes`
  /// for all of them. O(feeds + changes trimmed).
  public func trimHistories(before moment: Instant) {
    let feeds = remembering
    for feed in feeds { feed.history?.trim(bytes: limits.historyBytes, before: moment) }
    if historyBytes > limits.maxHistoryBytes {
      let share = limits.maxHistoryBytes / feeds.count
      for feed in feeds { feed.history?.trim(bytes: share, before: moment) }
    }
    for feed in feeds { feed.history?.compact() }
  }
}
