import FeedChange
import FeedJSON
import FeedModel

/// Rows of a managed feed that its host proposes to a group.
struct ProposedRows: Equatable {
  let rows: ManagedRows
  /// When the database was read, as in `SourceStatus.since`.
  let since: String
}

/// Rows of managed feeds that wait until a `$rows` request for them is executed, or until the log has stored it.
///
/// Invariant: each waiting feed has one `$rows` request submitted or in flight, or failed and to be submitted again. Where the log
/// stores the rows too, they wait until their request is in flight.
struct ManagedQueue {
  private struct Waiting {
    var rows: ManagedRows
    /// The status of the source once the feed has the rows.
    var status: SourceStatus
    var hasFailed = false
  }

  private var waiting: [String: Waiting] = [:]
  /// The status of each source whose rows are in flight, for the last of them, and the number of requests.
  private var inFlight: [String: (status: SourceStatus, count: Int)] = [:]
  /// The feeds whose rows this daemon proposes to its group, if its configuration defines them; nil for all.
  var proposed: Set<String>?
  /// Incremented when managed feeds may have been defined, redefined or undefined.
  private(set) var version = 0

  mutating func definitionsDidChange() { version &+= 1 }

  /// Whether rows of any feed wait.
  var hasWaiting: Bool { !waiting.isEmpty }

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
    inFlight[feed]?.status = status
    waiting[feed]?.status = status
    return waiting[feed] != nil || inFlight[feed] != nil
  }

  /// Removes and returns the waiting rows of a feed; nil in replay.
  mutating func take(_ feed: String) -> (rows: ManagedRows, status: SourceStatus)? {
    waiting.removeValue(forKey: feed).map { ($0.rows, $0.status) }
  }

  /// Removes and returns the waiting rows of a feed, which are in flight from now on.
  mutating func takeForLog(_ feed: String) -> ProposedRows? {
    guard let found = take(feed) else { return nil }
    inFlight[feed] = (found.status, (inFlight[feed]?.count ?? 0) + 1)
    return ProposedRows(rows: found.rows, since: found.status.since)
  }

  /// Returns the status of a source whose rows were in flight, and removes it if no newer ones are.
  mutating func takeStatus(_ feed: String) -> SourceStatus? {
    guard let found = inFlight[feed] else { return nil }
    inFlight[feed] = found.count > 1 ? (found.status, found.count - 1) : nil
    return found.status
  }

  /// Records that the request for a feed's rows could not be stored.
  /// - Parameter rows: those that were in flight.
  /// - Returns: when the newest rows were read, as in `SourceStatus.since`.
  mutating func didFail(_ feed: String, _ rows: ProposedRows?) -> String {
    if let rows {
      let status = takeStatus(feed) ?? waiting[feed]?.status
      // Newer rows have a request of their own, which is in flight or waits.
      if inFlight[feed] == nil, waiting[feed].map({ $0.hasFailed }) ?? true {
        waiting[feed] = Waiting(
          rows: rows.rows, status: status ?? SourceStatus(.ok, since: rows.since), hasFailed: true)
      }
    } else {
      waiting[feed]?.hasFailed = true
    }
    return waiting[feed]?.status.since ?? inFlight[feed]?.status.since ?? ""
  }

  /// Returns the feeds whose requests failed, in order, and marks them as submitted again. Rows of a feed that another daemon
  /// proposes by now are forgotten: they are older than those of that one.
  mutating func takeFailed() -> [String] {
    waiting = waiting.filter { feed, rows in !rows.hasFailed || proposed?.contains(feed) ?? true }
    let failed = waiting.filter { $0.value.hasFailed }.keys.sorted()
    for feed in failed { waiting[feed]?.hasFailed = false }
    return failed
  }
}

/// Feeds whose rows come from a database of another program.
extension Engine {
  /// Incremented when managed feeds may have been defined, redefined or undefined.
  public var managedVersion: Int { ownWork.managed.version }

  public var managedFeeds: [ManagedKind] {
    catalog.feeds.values.compactMap { $0.kind as? ManagedKind }.sorted { $0.name < $1.name }
  }

  /// The managed feeds whose databases this daemon reads, by name: in a group, those that its own configuration defines, unless
  /// another host with the same definition does.
  public var ownManagedFeeds: [ManagedKind] {
    guard catalog.keepsManagedRows else { return managedFeeds }
    return managedFeeds.filter { feed in
      ownWork.configured.defines(feed.name, as: feed.content) && ownWork.managed.proposed?.contains(feed.name) ?? true
    }
  }

  /// Sets the feeds whose rows this daemon proposes to its group, if its configuration defines them.
  public func proposeRows(of feeds: Set<String>) {
    if ownWork.managed.proposed == feeds { return }
    ownWork.managed.proposed = feeds
    ownWork.managed.definitionsDidChange()
  }

  /// Lets evictions wait for those that other members of the group propose.
  public func delayEvictions(by nanoseconds: UInt64) { ownWork.queue.evictionDelay = nanoseconds }

  /// Sets the rows of a managed feed as one commit, and sets the status of its source. If the feed refuses the rows, it is
  /// unchanged and its source gets the error.
  ///
  /// A durable daemon does this after the log has stored a request for it. The rows themselves are not stored.
  /// - Parameter status: that of a database that can be read.
  public func setManaged(_ name: String, _ rows: ManagedRows, _ status: SourceStatus, now: Instant) {
    begin(at: now)
    if catalog.keepsManagedRows && rows.byteCount > limits.maxFrame {
      let reason =
        "the rows have \(grouped(rows.byteCount)) bytes; in a group they may have \(grouped(limits.maxFrame)) (maxFrame): select fewer"
      return failManaged(name, SourceStatus(.error, message: reason, since: status.since))
    }
    if ownWork.managed.put(rows, for: name, status: status) { submit(.rows(feed: name, nil)) }
  }

  /// Sets the status of the source of a managed feed whose database has no new rows. Returns false if the feed does
  /// not have the present ones: they must be read again. There may be room now for rows that it refused, and the rows that another
  /// host proposed before this one read the database may have come later in the log.
  public func keepManaged(_ name: String, _ status: SourceStatus) -> Bool {
    if ownWork.managed.update(status, for: name) { return true }
    guard let kind = catalog.feeds[name]?.kind as? ManagedKind else { return true }
    if kind.source.state == .error || kind.source.state == .starting || kind.hasForeignRows { return false }
    setSource(name, status)
    return true
  }

  /// Sets the error of a managed feed whose database cannot be read. It stays when rows take effect that were read before.
  public func failManaged(_ name: String, _ error: SourceStatus) {
    _ = ownWork.managed.update(error, for: name)
    setSource(name, error)
  }

  /// Keeps rows that could not be stored, and reports that the feed does not have them.
  /// - Parameter proposed: those that were in flight.
  func keepRows(of name: String, _ proposed: ProposedRows?, _ failure: String) {
    let since = ownWork.managed.didFail(name, proposed)
    let message = "the database has new rows, which cannot be stored: \(failure)"
    setSource(name, SourceStatus(.error, message: message, since: since))
  }

  /// Submits again the requests for rows that could not be stored.
  func resubmitRows() {
    for name in ownWork.managed.takeFailed() { submit(.rows(feed: name, nil)) }
  }

  /// The request as the log stores it: in a group, with the rows.
  func requestForLog(_ request: InternalRequest) -> InternalRequest {
    guard catalog.keepsManagedRows, case .rows(let feed, nil) = request else { return request }
    return .rows(feed: feed, ownWork.managed.takeForLog(feed))
  }

  /// Sets the rows that a request contains, or the waiting rows of a feed. In replay there are none; only the revision advances.
  func setRows(of name: String, _ proposed: ProposedRows?, isLogged: Bool, isOwn: Bool) {
    if catalog.keepsManagedRows {
      guard let proposed else { return }
      let status = isOwn ? ownWork.managed.takeStatus(name) : nil
      guard let feed = catalog.feeds[name] else { return }
      (feed.kind as? ManagedKind)?.hasForeignRows = !isOwn
      return setRows(proposed.rows, of: feed, status ?? SourceStatus(.ok, since: proposed.since))
    }
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
  func setSource(_ name: String, _ status: SourceStatus) {
    guard let feed = catalog.feeds[name]?.kind as? ManagedKind, !feed.source.saysTheSame(as: status) else { return }
    feed.setSource(status)
    let (level, text): (LogLevel, String) =
      switch status.state {
      case .starting: (.info, "is read")
      case .ok: (.info, counted(feed.rowCount, "row"))
      case .polling: (.warning, "\(status.message); the database is looked at every few seconds")
      case .error: (.warning, "\(status.message); the feed keeps its last rows")
      }
    self.status.report(level, "managed feed \(name): \(text)", about: .init(feed: name))
  }
}
