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
  /// A durable daemon does so in its next turn, once it is stored that there are other rows.
  /// - Parameter time: of day, in RFC 3339, for `describe`.
  public func setManaged(_ name: String, _ rows: ManagedRows, now: Instant, time: String) {
    self.now = now
    submit(.rows(feed: name, rows, time: time))
  }

  /// To be called after recovery: the rows of managed feeds are not stored, so whoever watched them begins anew.
  public func restartManaged(now: Instant) {
    self.now = now
    for feed in managedFeeds { submit(.restart(feed: feed.name)) }
    managedVersion &+= 1
  }

  func take(_ rows: ManagedRows, of name: String, time: String) {
    guard let feed = catalog.feeds[name] as? ManagedFeed else { return }
    let before = catalog.revision
    catalog.begin(at: now)
    do throws(FeedError) {
      try catalog.setManaged(feed, rows)
      if catalog.commit() { counters.commits &+= 1 }
      if feed.source.state != .ok { report(.info, "managed feed \(name): \(rows.count) rows") }
      setSource(name, SourceStatus(.ok, since: time))
    } catch {
      catalog.rollBack()
      setSource(name, SourceStatus(.error, message: error.reason, since: time))
    }
    // What is stored counts as a commit when it is read again, whatever has become of it.
    if isDurable && catalog.revision == before { catalog.countCommit() }
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
