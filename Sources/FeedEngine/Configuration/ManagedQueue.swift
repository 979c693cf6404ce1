import FeedChange
import FeedJSON
import FeedModel
import FeedWire

/// Rows of managed feeds that wait until the log has stored a `$rows` request for them.
///
/// Invariant: each waiting feed has one `$rows` request submitted or in flight, or failed and to be submitted again.
struct ManagedQueue {
  private struct Waiting {
    var rows: ManagedRows
    /// The time in RFC 3339, for `describe`.
    var time: String
    var hasFailed = false
  }

  private var waiting: [String: Waiting] = [:]
  /// Incremented when managed feeds may have been defined, redefined or undefined.
  private(set) var version = 0

  mutating func definitionsDidChange() { version &+= 1 }

  /// Stores rows for a feed, replacing rows that wait. Returns whether a request must be submitted for them.
  mutating func put(_ rows: ManagedRows, for feed: String, time: String) -> Bool {
    if waiting[feed] != nil {
      waiting[feed]?.rows = rows
      waiting[feed]?.time = time
      return false
    }
    waiting[feed] = Waiting(rows: rows, time: time)
    return true
  }

  /// Removes and returns the waiting rows of a feed; nil in replay.
  mutating func take(_ feed: String) -> (rows: ManagedRows, time: String)? {
    waiting.removeValue(forKey: feed).map { ($0.rows, $0.time) }
  }

  /// Records that the request for a feed's rows could not be stored.
  mutating func didFail(_ feed: String) { waiting[feed]?.hasFailed = true }

  /// Returns the feeds whose requests failed, in order, and marks them as submitted again.
  mutating func takeFailed() -> [String] {
    let failed = waiting.filter { $0.value.hasFailed }.keys.sorted()
    for feed in failed { waiting[feed]?.hasFailed = false }
    return failed
  }
}

/// Feeds whose rows come from a database of another program.
extension Engine {
  /// Incremented when managed feeds may have been defined, redefined or undefined.
  public var managedVersion: Int { ownWork.managed.version }

  /// The managed feeds, by name.
  public var managedFeeds: [ManagedKind] {
    catalog.feeds.values.compactMap { $0.kind as? ManagedKind }.sorted { $0.name < $1.name }
  }

  /// Whether the rows of a managed feed are not those of its database.
  public func hasSourceError(_ name: String) -> Bool {
    (catalog.feeds[name]?.kind as? ManagedKind)?.source.state == .error
  }

  /// Sets the rows of a managed feed as one commit, and sets the status of its source to `ok`. If the feed refuses the
  /// rows, it is unchanged and its source gets the error.
  ///
  /// A durable daemon does this after the log has stored a request for it. The rows themselves are not stored.
  /// - Parameter time: the time in RFC 3339, for `describe`.
  public func setManaged(_ name: String, _ rows: ManagedRows, now: Instant, time: String) {
    begin(at: now)
    if ownWork.managed.put(rows, for: name, time: time) { submit(.rows(feed: name)) }
  }

  /// Submits again the requests for rows that could not be stored.
  func resubmitRows() {
    for name in ownWork.managed.takeFailed() { submit(.rows(feed: name)) }
  }

  /// Sets the waiting rows of a feed. In replay there are none; only the revision advances.
  func setRows(of name: String, isLogged: Bool) {
    let before = catalog.revision
    if let (rows, time) = ownWork.managed.take(name), let feed = catalog.feeds[name] {
      setRows(rows, of: feed, time: time)
    }
    // A stored request counts as one commit in replay, whatever it changed.
    if isLogged { catalog.skip(to: before &+ 1) }
  }

  private func setRows(_ rows: ManagedRows, of feed: Feed, time: String) {
    guard let kind = feed.kind as? ManagedKind else { return }
    catalog.begin(at: self.time.moment)
    let before = feed.count
    do throws(FeedError) {
      try kind.set(rows, in: commit)
      try catalog.checkRowsOfViews(aboveManaged: feed, rows: before)
      if catalog.finish(to: self) { status.counters.commits &+= 1 }
      if kind.source.state != .ok {
        status.report(.info, "managed feed \(feed.name): \(counted(rows.count, "row"))", about: .init(feed: feed.name))
      }
      setSource(feed.name, SourceStatus(.ok, since: time))
    } catch {
      catalog.rollBack()
      setSource(feed.name, SourceStatus(.error, message: error.reason, since: time))
    }
  }

  /// Sets the status of the source of a managed feed. An equal status keeps its time.
  public func setSource(_ name: String, _ status: SourceStatus) {
    guard let feed = catalog.feeds[name]?.kind as? ManagedKind, !feed.source.saysTheSame(as: status) else { return }
    feed.setSource(status)
    if status.state == .error {
      self.status.report(
        .warning, "managed feed \(name): \(status.message); the feed keeps its last rows", about: .init(feed: name))
    }
  }
}
