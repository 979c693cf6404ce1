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
    /// The status of the source once the feed has the rows.
    var status: SourceStatus
    var hasFailed = false
  }

  private var waiting: [String: Waiting] = [:]
  /// Incremented when managed feeds may have been defined, redefined or undefined.
  private(set) var version = 0

  mutating func definitionsDidChange() { version &+= 1 }

  /// Stores rows for a feed, replacing rows that wait. Returns whether a request must be submitted for them.
  mutating func put(_ rows: ManagedRows, for feed: String, status: SourceStatus) -> Bool {
    if waiting[feed] != nil {
      waiting[feed]?.rows = rows
      waiting[feed]?.status = status
      return false
    }
    waiting[feed] = Waiting(rows: rows, status: status)
    return true
  }

  /// Sets the status for the waiting rows of a feed. Returns false if none wait.
  mutating func update(_ status: SourceStatus, for feed: String) -> Bool {
    waiting[feed]?.status = status
    return waiting[feed] != nil
  }

  /// Removes and returns the waiting rows of a feed; nil in replay.
  mutating func take(_ feed: String) -> (rows: ManagedRows, status: SourceStatus)? {
    waiting.removeValue(forKey: feed).map { ($0.rows, $0.status) }
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

  /// Sets the rows of a managed feed as one commit, and sets the status of its source. If the feed refuses the rows, it is
  /// unchanged and its source gets the error.
  ///
  /// A durable daemon does this after the log has stored a request for it. The rows themselves are not stored.
  /// - Parameter status: that of a database that can be read.
  public func setManaged(_ name: String, _ rows: ManagedRows, _ status: SourceStatus, now: Instant) {
    begin(at: now)
    if ownWork.managed.put(rows, for: name, status: status) { submit(.rows(feed: name)) }
  }

  /// Sets the status of the source of a managed feed whose database has no new rows. Returns false if the feed does
  /// not have the present ones: they must be read again. There may be room now for rows that it refused.
  public func keepManaged(_ name: String, _ status: SourceStatus) -> Bool {
    if ownWork.managed.update(status, for: name) { return true }
    guard let kind = catalog.feeds[name]?.kind as? ManagedKind else { return true }
    if kind.source.state == .error || kind.source.state == .starting { return false }
    setSource(name, status)
    return true
  }

  /// Submits again the requests for rows that could not be stored.
  func resubmitRows() {
    for name in ownWork.managed.takeFailed() { submit(.rows(feed: name)) }
  }

  /// Sets the waiting rows of a feed. In replay there are none; only the revision advances.
  func setRows(of name: String, isLogged: Bool) {
    let before = catalog.revision
    if let (rows, status) = ownWork.managed.take(name), let feed = catalog.feeds[name] {
      setRows(rows, of: feed, status)
    }
    // A stored request counts as one commit in replay, whatever it changed.
    if isLogged { catalog.skip(to: before &+ 1) }
  }

  private func setRows(_ rows: ManagedRows, of feed: Feed, _ status: SourceStatus) {
    guard let kind = feed.kind as? ManagedKind else { return }
    catalog.begin(at: self.time.moment)
    let before = feed.count
    do throws(FeedError) {
      try kind.set(rows, in: commit)
      try catalog.checkRowsOfViews(aboveManaged: feed, rows: before)
      if catalog.finish(to: self) { self.status.counters.commits &+= 1 }
      setSource(feed.name, status)
    } catch {
      catalog.rollBack()
      setSource(feed.name, SourceStatus(.error, message: error.reason, since: status.since))
    }
  }

  /// Sets the status of the source of a managed feed. An equal status keeps its time.
  public func setSource(_ name: String, _ status: SourceStatus) {
    guard let feed = catalog.feeds[name]?.kind as? ManagedKind, !feed.source.saysTheSame(as: status) else { return }
    feed.setSource(status)
    let (level, text): (EngineEvent.Level, String) =
      switch status.state {
      case .starting: (.info, "is read")
      case .ok: (.info, counted(feed.rowCount, "row"))
      case .polling: (.warning, "\(status.message); the database is looked at every few seconds")
      case .error: (.warning, "\(status.message); the feed keeps its last rows")
      }
    self.status.report(level, "managed feed \(name): \(text)", about: .init(feed: name))
  }
}
