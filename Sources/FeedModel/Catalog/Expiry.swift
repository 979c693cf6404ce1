/// The feeds that evict elements by time.
///
/// Invariant: holds every feed of the table whose definition retains by time, in order of name. The order makes evictions
/// the same in every process.
struct Expiry {
  private var feeds: [Feed] = []

  /// Rebuilds the list after definitions changed. O(feeds).
  mutating func refresh(from table: FeedTable) {
    feeds = table.inNameOrder.filter { $0.kind.rows?.retention?.isTimed == true }
  }

  /// The moment when the next element of any feed expires; nil if none will. O(feeds that retain by time).
  var next: Instant? {
    if feeds.isEmpty { return nil }
    return feeds.compactMap { $0.kind.rows?.nextExpiry }.min()
  }

  /// The feeds that have an expired element at `now`.
  func due(at now: Instant) -> [Feed] {
    feeds.filter { feed in feed.kind.rows?.nextExpiry.map { $0 <= now } ?? false }
  }

  /// O(feeds).
  func checkInvariants(_ table: FeedTable) {
    var fresh = Expiry()
    fresh.refresh(from: table)
    precondition(feeds.elementsEqual(fresh.feeds, by: ===), "the list of feeds that retain by time is out of date")
    for feed in feeds where feed.count <= 64 { feed.kind.rows?.deadlines?.checkInvariants() }
  }
}

extension Catalog {
  /// Evicts expired elements of a feed as one operation. `limit` bounds their number, so that a large eviction does not
  /// block other requests. Returns the number evicted.
  public func evictExpired(of feed: Feed, limit: Int) -> Int {
    guard let rows = feed.kind.rows else { return 0 }
    commit.startOperation()
    let position = commit.log.position
    let evicted = rows.expired(at: commit.moment, limit: limit)
    rows.remove(evicted, commit.log)
    commit.addStep(of: rows)
    commit.finishOperation(on: feed.number, rows, since: position)
    return evicted.count
  }
}
