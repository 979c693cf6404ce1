import FeedChange

/// How many rows the indexes of views may keep (Protocol/limits.md, "What views keep").
///
/// The account of the user that defined a view is charged for the rows of its source when a commit is published, which
/// cannot fail. So each request is judged before, by the rows that it adds. Requests that add none are not refused.
extension Catalog {
  /// The fewest steps that a view counts for each changed row; see ``Limits/maxDerivedSteps``.
  static let leastStepsOfView = 1000

  /// Throws if there is no room for the index of a view.
  ///
  /// - Parameter rows: those that its account is charged for its former definition.
  func checkIndex(of plan: ViewPlan, replacing rows: Int, _ account: Account) throws(FeedError) {
    let added = plan.definition.isPlain ? 0 : plan.source.count - rows
    guard added > 0, !commit.isRestoring else { return }
    let all = (user: account.viewRows, all: accounts.total.viewRows)
    guard account.noRoom(viewRows: (added, added), besides: all, limits) != nil else { return }
    if containsManagedRows(plan.source) { return }
    let stable = viewRowsWithoutManaged(of: account)
    if let error = account.noRoom(viewRows: (added, added), besides: stable, limits) { throw error }
  }

  /// Throws if views would keep too many rows after the last operation of the commit.
  @inline(__always)
  public func checkRowsOfViews() throws(FeedError) {
    if commit.graph.indexedViews > 0 { try checkRowsOfLinkedViews() }
  }

  @inline(never)
  private func checkRowsOfLinkedViews() throws(FeedError) {
    let listed = commit.addedOrUpdated
    guard listed > 0, let feed = commit.changedFeed, mayExceed(rows: listed, of: feed) else { return }
    let (added, shown) = commit.growth(of: feed)
    try checkRows(above: [(feed, added, shown)] + commit.growthOfBins(of: feed), of: feed)
  }

  /// Throws if views would keep too many rows after a feed got so many more.
  func checkRowsOfViews(above feed: Feed, added: Int) throws(FeedError) {
    guard added > 0, mayExceed(rows: added, of: feed) else { return }
    try checkRows(above: [(feed, added, added)], of: feed)
  }

  /// Throws if views would keep too many rows after a managed feed got other rows by the last operation of the commit.
  ///
  /// Replay does not check it again, because these rows are not stored. So rows of managed feeds count too.
  ///
  /// - Parameter before: the rows of the feed before.
  public func checkRowsOfViews(aboveManaged feed: Feed, rows before: Int) throws(FeedError) {
    let listed = commit.addedOrUpdated
    guard listed > 0, mayExceed(rows: listed, of: feed) else { return }
    try checkRows(above: [(feed, feed.count - before, listed)], of: feed)
  }

  /// Whether a limit may be exceeded if views keep so many more rows of a feed, as often as `maxDerivedSteps` allows. O(1).
  private func mayExceed(rows: Int, of feed: Feed) -> Bool {
    if commit.isRestoring || limits.maxTotalViewRows == .max && limits.maxViewRowsPerUser == .max { return false }
    let (most, overflows) = rows.multipliedReportingOverflow(by: limits.maxDerivedSteps / Self.leastStepsOfView + 1)
    if overflows || most > limits.maxTotalViewRows - accounts.total.viewRows { return true }
    guard let account = account(of: feed), account.owner != nil else { return false }
    return most > limits.maxViewRowsPerUser - account.viewRows
  }

  /// The account of a feed, or that of the collection of a bin.
  private func account(of feed: Feed) -> Account? { (table.collection(of: feed) ?? feed).account }

  /// - Parameter growth: rows that a feed got, and rows that it may show to feeds which select among its rows.
  ///
  /// Views of other users do not count towards the limit of the user. Otherwise they could keep the user from changing
  /// feeds by views over these feeds. O(feeds).
  private func checkRows(above growth: [(feed: Feed, added: Int, shown: Int)], of feed: Feed) throws(FeedError) {
    let account = account(of: feed) ?? accounts.unowned
    let countsManaged = feed.kind is ManagedKind
    var (user, all) = (0, 0)
    for (feed, added, shown) in growth {
      graph.forEachFeed(above: feed) { parent, paths in
        guard let view = parent.kind as? ViewKind, view.hasIndex, countsManaged || !containsManagedRows(parent)
        else { return }
        let rows = max(0, Self.selects(view.source) ? shown : added) * paths
        all += rows
        if parent.account === account { user += rows }
      }
    }
    if all == 0 { return }
    let others =
      countsManaged
      ? (user: account.viewRows, all: accounts.total.viewRows) : viewRowsWithoutManaged(of: account)
    if let error = account.noRoom(viewRows: (user, all), besides: others, limits) { throw error }
  }

  /// Whether a feed may get rows although none are added below it.
  private static func selects(_ feed: Feed) -> Bool {
    if feed.kind is ViewKind || feed.kind is SlotsKind { return true }
    return feed.derived?.sources.contains { selects($0.feed) } ?? false
  }

  /// The rows that are charged, except those of views over rows of managed feeds. During replay these rows are not there.
  private func viewRowsWithoutManaged(of account: Account) -> (user: Int, all: Int) {
    var stable = (user: account.viewRows, all: accounts.total.viewRows)
    for feed in feeds.values where containsManagedRows(feed) {
      guard let view = feed.kind as? ViewKind else { continue }
      stable.all -= view.charge.rows
      if feed.account === account { stable.user -= view.charge.rows }
    }
    return stable
  }
}

extension Commit {
  /// The rows that the last operation added to a feed, and those that it added or updated.
  ///
  /// The rows of deleted sections are not known here; each such section had at least one.
  fileprivate func growth(of feed: Feed) -> (added: Int, shown: Int) {
    let change = result
    return (
      change.added.count - change.deleted.count - change.sectionsDeleted.count,
      change.added.count + change.updated.count
    )
  }

  /// The same for each bin of a collection that feeds show.
  fileprivate func growthOfBins(of feed: Feed) -> [(feed: Feed, added: Int, shown: Int)] {
    let (change, bins) = (result, feed.kind.bins)
    guard bins.contains(where: { graph.hasParents($0.number) }) else { return [] }
    var found = bins.map { (feed: $0, added: 0, shown: 0) }
    for path in change.added {
      found[Int(path.section)].added += 1
      found[Int(path.section)].shown += 1
    }
    for path in change.updated { found[Int(path.section)].shown += 1 }
    if change.hasSameSections {
      for path in change.deleted { found[Int(path.section)].added -= 1 }
    }
    return found
  }
}

/// What an account is charged for the index of a view.
///
/// Invariant: while it is open, the account counts the rows.
struct ViewCharge {
  private var account: Unmanaged<Account>?
  /// The rows of the source as of the last commit; 0 without an index. Kept when the charge is closed, so that an undone
  /// removal opens it again.
  private(set) var rows = 0

  mutating func open(_ account: Account) {
    assert(self.account == nil, "the view has an account already")
    self.account = .passUnretained(account)
    account.add(viewRows: rows)
  }

  mutating func close() {
    account?._withUnsafeGuaranteedRef { $0.add(viewRows: -rows) }
    account = nil
  }

  /// Charges another number of rows. O(1).
  mutating func set(rows: Int) {
    if rows == self.rows { return }
    account?._withUnsafeGuaranteedRef { $0.add(viewRows: rows - self.rows) }
    self.rows = rows
  }
}
