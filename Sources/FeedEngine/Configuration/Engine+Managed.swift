import FeedModel

/// The feeds whose rows somebody reads from a database and hands in.
extension Engine {
  /// The managed feeds, by name.
  public var managedFeeds: [ManagedFeed] {
    catalog.feeds.values.compactMap { $0 as? ManagedFeed }.sorted { $0.name < $1.name }
  }

  /// Gives a managed feed its rows, as a commit of its own, and notes that its source is well.
  ///
  /// - Parameter time: of day, in RFC 3339, for `describe`.
  /// - Returns: what is wrong with the rows, when they are refused: the feed keeps those that it has.
  @discardableResult
  public func setManaged(_ name: String, _ rows: ManagedRows, now: Instant, time: String) -> String? {
    guard let feed = catalog.feeds[name] as? ManagedFeed else { return nil }
    self.now = now
    catalog.begin(at: now)
    do throws(FeedError) {
      try catalog.setManaged(feed, rows)
    } catch {
      catalog.rollBack()
      setSource(name, SourceStatus(.error, message: error.reason, since: time))
      return error.reason
    }
    if catalog.commit() { counters.commits &+= 1 }
    setSource(name, SourceStatus(.ok, since: time))
    return nil
  }

  /// Notes how it stands with the source of a managed feed. A status that says the same as before keeps its time.
  /// - Returns: whether it says something else now.
  @discardableResult
  public func setSource(_ name: String, _ status: SourceStatus) -> Bool {
    guard let feed = catalog.feeds[name] as? ManagedFeed, !feed.source.saysTheSame(as: status) else { return false }
    catalog.setSource(of: feed, status)
    return true
  }
}
