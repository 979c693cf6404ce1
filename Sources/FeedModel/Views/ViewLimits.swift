import FeedChange

/// How many rows the indexes of views may keep (Protocol/limits.md, "What views keep").
///
/// The account of the user that defined a view is charged for the rows of its source when a commit is published, which
/// cannot fail. So each request is judged before, by the rows that it adds. Requests that add none are not refused. The operations
/// of a request count together; see ``ViewGrowth``.
extension Catalog {
  /// The fewest steps that a view counts for each changed row; see ``Limits/maxDerivedSteps``.
  static let leastStepsOfView = 1000

  /// Throws if there is no room for the index of a view.
  /// - Parameter rows: those that its account is charged for its former definition.
  func checkIndex(of plan: ViewPlan, replacing rows: Int, _ account: Account) throws(FeedError) {
    let added = plan.definition.isPlain ? 0 : plan.source.count - rows
    guard added > 0, !commit.isRestoring else { return }
    let all = (user: account.viewRows, all: accounts.total.viewRows)
    let (before, isStable) = (growthBefore(of: account), !containsManagedRows(plan.source))
    if isStable, account.noRoom(viewRows: (added, added), besides: before + all, limits) != nil {
      let stable = viewRowsWithoutManaged(of: account)
      if let error = account.noRoom(viewRows: (added, added), besides: before + stable, limits) { throw error }
    }
    // Replay does not know the rows of managed feeds.
    if isStable { commit.budget.viewGrowth.add((added, added), of: account.owner) }
  }

  /// What the operations before the current one may have added, as far as it counts for an account, and in all.
  private func growthBefore(of account: Account) -> ViewRows {
    commit.budget.countsRepeatedWork ? commit.budget.viewGrowth.rows(of: account.owner) : (0, 0)
  }

  /// Throws if views would keep too many rows after the last operation of the commit.
  @inline(__always)
  public func checkRowsOfViews() throws(FeedError) { if commit.graph.indexedViews > 0 { try checkRowsOfLinkedViews() } }

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
  public func checkRowsOfViews(aboveManaged feed: Feed, rows before: Int) throws(FeedError) {
    let listed = commit.addedOrUpdated
    guard listed > 0, mayExceed(rows: listed, of: feed) else { return }
    try checkRows(above: [(feed, feed.count - before, listed)], of: feed)
  }

  /// Whether a limit may be exceeded if views keep so many more rows of a feed, as often as `maxDerivedSteps` allows. O(1).
  private func mayExceed(rows: Int, of feed: Feed) -> Bool {
    if commit.isRestoring || limits.maxTotalViewRows == .max && limits.maxViewRowsPerUser == .max { return false }
    let (most, overflows) = rows.multipliedReportingOverflow(by: limits.maxDerivedSteps / Self.leastStepsOfView + 1)
    let account = graph.account(of: feed) ?? accounts.unowned
    let before = growthBefore(of: account)
    if overflows || most > limits.maxTotalViewRows - accounts.total.viewRows - before.all { return true }
    return account.owner != nil && most > limits.maxViewRowsPerUser - account.viewRows - before.user
  }

  /// - Parameter growth: rows that a feed got, and rows that it may show to feeds which select among its rows.
  ///
  /// Views of other users do not count for the user, whom they could otherwise keep from changing feeds. O(feeds).
  private func checkRows(above growth: [(feed: Feed, added: Int, shown: Int)], of feed: Feed) throws(FeedError) {
    let account = graph.account(of: feed) ?? accounts.unowned
    var more: ViewRows = (0, 0)
    for (feed, added, shown) in growth {
      let net = commit.budget.countsRepeatedWork ? commit.budget.viewGrowth.uncounted(added, of: feed, graph) : added
      more = more + graph.viewWays(above: feed).rows(added: net, shown: shown)
    }
    if more.all == 0 { return }
    let others =
      feed.kind is ManagedKind
      ? (user: account.viewRows, all: accounts.total.viewRows) : viewRowsWithoutManaged(of: account)
    if let error = account.noRoom(viewRows: more, besides: growthBefore(of: account) + others, limits) { throw error }
  }

  /// The rows that are charged, except those of views that show rows of managed feeds, or did before the open commit: they are charged
  /// for these until it ends. During replay these rows are not there.
  private func viewRowsWithoutManaged(of account: Account) -> (user: Int, all: Int) {
    var stable = (user: account.viewRows, all: accounts.total.viewRows)
    for feed in feeds.values where containsManagedRows(feed) || !graph.isRepeatable(feed.number) {
      guard let view = feed.kind as? ViewKind else { continue }
      stable.all -= view.charge.rows
      if feed.account === account { stable.user -= view.charge.rows }
    }
    return stable
  }
}

/// Rows in the indexes of views: of the views of one user, and of all.
private typealias ViewRows = (user: Int, all: Int)

private func + (left: ViewRows, right: ViewRows) -> ViewRows { (left.user + right.user, left.all + right.all) }

/// In how many ways views with an index show a feed: those of the user of the feed, and all.
private struct ViewWays {
  /// Of views that get a row when the feed gets one.
  var added: ViewRows = (0, 0)
  /// Of views below which some rows are selected. They may get a row when a row of the feed changes.
  var shown: ViewRows = (0, 0)

  /// The most rows that the views get.
  func rows(added more: Int, shown changed: Int) -> ViewRows {
    let more = max(0, more)
    return (more * added.user + changed * shown.user, more * added.all + changed * shown.all)
  }
}

/// The rows that the operations of the open commit before the current one may have added to the indexes of views.
///
/// The sums are bounds. A row that an operation removes from a feed makes room for another row of that feed, until an operation changes
/// the structure, but for nothing else.
struct ViewGrowth {
  private struct FeedGrowth {
    /// The ways in which views show the feed, as of a version of the graph.
    var ways: ViewWays
    var version: UInt64
    /// The rows that were added, without those that were removed, and the most of them that were counted.
    var net = 0
    var counted = 0
  }

  private var feeds: [FeedNumber: FeedGrowth] = [:]
  private var all = 0
  private var ofUsers: [UInt32: Int] = [:]

  @inline(__always)
  mutating func begin() { if all > 0 || !feeds.isEmpty { self = ViewGrowth() } }

  /// Counts the rows that a feed got, and those that it may show to feeds which select among its rows. O(1) for a feed that is known,
  /// until the structure changes.
  mutating func add(added: Int, shown: Int, to feed: Feed, _ graph: FeedGraph) {
    guard graph.hasParents(feed.number) else { return }
    var known = feeds[feed.number] ?? FeedGrowth(ways: graph.viewWays(above: feed), version: graph.version)
    if known.version != graph.version {
      (known.ways, known.version) = (graph.viewWays(above: feed), graph.version)
      known.net = known.counted
    }
    known.net += added
    add(known.ways.rows(added: known.net - known.counted, shown: shown), of: graph.account(of: feed)?.owner)
    known.counted = max(known.counted, known.net)
    feeds[feed.number] = known
  }

  /// How many of the rows that the current operation added to a feed will count.
  fileprivate func uncounted(_ added: Int, of feed: Feed, _ graph: FeedGraph) -> Int {
    guard let known = feeds[feed.number], known.version == graph.version else { return added }
    return known.net + added - known.counted
  }

  fileprivate mutating func add(_ rows: ViewRows, of owner: UInt32?) {
    all += rows.all
    if let owner { ofUsers[owner, default: 0] += rows.user }
  }

  fileprivate func rows(of owner: UInt32?) -> ViewRows { (owner.flatMap { ofUsers[$0] } ?? 0, all) }
}

extension FeedGraph {
  /// The account of a feed, or that of the collection of a bin.
  fileprivate func account(of feed: Feed) -> Account? { (table.collection(of: feed) ?? feed).account }

  /// In how many ways views show a feed. Those that show rows of managed feeds count only for managed feeds. O(feeds).
  fileprivate func viewWays(above feed: Feed) -> ViewWays {
    let account = account(of: feed)
    let countsManaged = feed.kind is ManagedKind
    var ways = ViewWays()
    for (parent, paths) in waysAbove(feed) {
      guard let view = parent.kind as? ViewKind, view.hasIndex, countsManaged || !hasManagedRows(parent.number)
      else { continue }
      let isOwn = parent.account === account
      if Self.selects(view.source) {
        ways.shown = ways.shown + (isOwn ? paths : 0, paths)
      } else {
        ways.added = ways.added + (isOwn ? paths : 0, paths)
      }
    }
    return ways
  }

  /// Whether a feed may get rows although none are added below it.
  private static func selects(_ feed: Feed) -> Bool {
    if feed.kind is ViewKind || feed.kind is SlotsKind { return true }
    return feed.derived?.sources.contains { selects($0.feed) } ?? false
  }
}

extension Commit {
  @inline(never)
  func countGrowthForViews() {
    guard let feed = changedFeed else { return }
    let (added, shown) = growth(of: feed)
    budget.viewGrowth.add(added: added, shown: shown, to: feed, graph)
    for bin in growthOfBins(of: feed) { budget.viewGrowth.add(added: bin.added, shown: bin.shown, to: bin.feed, graph) }
  }

  /// The rows that the last operation added to a feed without those that it removed, and those that it added or updated. A row that
  /// only changed its place is neither.
  fileprivate func growth(of feed: Feed) -> (added: Int, shown: Int) {
    // The change of a view or slots feed that showed rows of managed feeds is another one in replay.
    if !isRepeatable, !(feed.kind is ProviderKind), let rowGrowth { return (rowGrowth.feed, rowGrowth.feed) }
    let change = result
    let listed = change.added.count + change.updated.count
    guard budget.countsReading else {
      return (change.added.count - change.deleted.count - change.sectionsDeleted.count, listed)
    }
    let moved = change.moves.count(where: \.keepsElement) + change.transfers.count(where: \.keepsElement)
    return (rowGrowth?.feed ?? change.added.count - change.deleted.count, listed - moved)
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
    if budget.countsReading, let growth = rowGrowth {
      for (bin, added) in growth.bins.enumerated() { found[bin].added = added }
    } else if change.hasSameSections {
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
  /// The rows of the source as of the last commit; 0 without an index. Kept when the charge is closed, to open again.
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

  mutating func set(rows: Int) {
    if rows == self.rows { return }
    account?._withUnsafeGuaranteedRef { $0.add(viewRows: rows - self.rows) }
    self.rows = rows
  }
}
