import FeedChange

/// What requests count of feeds that show rows of managed feeds (Protocol/limits.md, "Rows of managed feeds").
///
/// Replay of a log does not have these rows, and must accept and refuse the same requests. So they count nothing, unless the log
/// stores them.
extension FeedGraph {
  /// Whether requests count all that a feed shows. O(1).
  func countsAll(of feed: Feed) -> Bool { countsManagedRows || !hasManagedRows(feed.number) }

  /// Whether the change that the open commit makes to a feed is the same in replay. O(1).
  func isRepeatable(_ feed: FeedNumber) -> Bool {
    countsManagedRows || !hasManagedRows(feed) && !lostManagedRows(feed)
  }

  /// The sections of a feed that count. O(1), or O(feeds shown) for one with rows of managed feeds.
  func countedSections(of feed: Feed) -> Int {
    if countsAll(of: feed) { return feed.sectionCount }
    if let provider = feed.kind as? ProviderKind { return provider.shown.reduce(0) { $0 + countedSections(of: $1) } }
    return feed.kind is ManagedKind ? 0 : feed.sectionCount
  }

  /// The feeds whose rows count in place of those of a feed. Which rows a view or slots feed over managed rows shows depends on these,
  /// so all others below it count. O(1), or O(feeds shown) for a feed with rows of managed feeds.
  func countedFeeds(of feed: Feed) -> [Feed] {
    if countsAll(of: feed) { return [feed] }
    let below = (feed.kind as? ProviderKind)?.shown ?? feed.shownFeeds
    return below.flatMap { countedFeeds(of: $0) }
  }

  /// The number of rows of a feed that count.
  func countedRows(of feed: Feed) -> Int { countedFeeds(of: feed).reduce(0) { $0 + $1.count } }

  /// The bytes of their elements. O(rows).
  func countedBytes(of feed: Feed, _ pace: Pace) -> Int {
    countedFeeds(of: feed).reduce(0) { $0 + $1.elementBytes(pace) }
  }
}
