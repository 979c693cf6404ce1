import FeedChange
import FeedModel

/// The feeds whose rows somebody reads from a database and hands in.
extension Engine {
  /// The managed feeds, by name.
  public var managedFeeds: [ManagedFeed] {
    catalog.feeds.values.compactMap { $0 as? ManagedFeed }.sorted { $0.name < $1.name }
  }

  /// Gives a managed feed its rows, as a commit of its own, and notes that its source is well, or what is wrong with the rows:
  /// then the feed keeps those that it has.
  ///
  /// A durable daemon does so in its next turn, once it is stored that there are other rows; the rows themselves are not.
  /// - Parameter time: of day, in RFC 3339, for `describe`.
  public func setManaged(_ name: String, _ rows: ManagedRows, now: Instant, time: String) {
    self.now = now
    managedRows[name] = (rows, time)
    submit(.rows(feed: name))
  }

  /// Tries again with rows of which it could not be stored that they came.
  func resubmitRows() {
    guard !managedRows.isEmpty, submitted.isEmpty else { return }
    for name in managedRows.keys.sorted() { submit(.rows(feed: name)) }
  }

  /// Gives a feed the rows that wait for it. In replay there are none, and the commit is only counted.
  func takeRows(of name: String) {
    let before = catalog.revision
    if let (rows, time) = managedRows.removeValue(forKey: name), let feed = catalog.feeds[name] as? ManagedFeed {
      take(rows, of: feed, time: time)
    }
    // What is stored counts as one commit when it is read again, whatever has become of it here.
    if isDurable || isReplaying { catalog.skip(to: before &+ 1) }
  }

  private func take(_ rows: ManagedRows, of feed: ManagedFeed, time: String) {
    catalog.begin(at: now)
    do throws(FeedError) {
      try catalog.setManaged(feed, rows)
      if catalog.commit() { counters.commits &+= 1 }
      if feed.source.state != .ok { report(.info, "managed feed \(feed.name): \(rows.count) rows") }
      setSource(feed.name, SourceStatus(.ok, since: time))
    } catch {
      catalog.rollBack()
      setSource(feed.name, SourceStatus(.error, message: error.reason, since: time))
    }
  }

  /// Notes how it stands with the source of a managed feed. A status that says the same as before keeps its time.
  public func setSource(_ name: String, _ status: SourceStatus) {
    guard let feed = catalog.feeds[name] as? ManagedFeed, !feed.source.saysTheSame(as: status) else { return }
    catalog.setSource(of: feed, status)
    if status.state == .error {
      report(.warning, "managed feed \(name): \(status.message); the feed keeps its last rows")
    }
  }
}
