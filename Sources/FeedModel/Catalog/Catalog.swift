import FeedChange
import FeedJSON
import FeedQuery

/// All feeds of the daemon.
///
/// Composes the table of names and numbers, the graph of feeds that show other feeds, the open commit, the accounts of users
/// and the times at which elements expire. Only the engine's thread may use it. Feeds change only between `begin` and `finish`
/// or `rollBack`, by operations of their kinds: `CollectionKind.update`, `ListKind.insert` and so on. Several
/// operations in one commit are a transaction: one revision, and one composed change for each feed.
public final class Catalog {
  /// The limits for new feeds, elements and requests.
  public private(set) var limits: Limits
  /// The seed of identity hashes. A random seed makes collisions unpredictable.
  let seed: UInt64
  let table: FeedTable
  let graph: FeedGraph
  public let accounts = Accounts()
  /// The open commit, which operations take as a parameter.
  public let commit: Commit
  /// Whether the rows of managed feeds are part of the state, as in a group: stored by the log, and contained in images.
  public var keepsManagedRows: Bool {
    get { graph.keepsManagedRows }
    set { graph.keepsManagedRows = newValue }
  }
  private var expiry = Expiry()
  /// The feeds that show other rows since other limits were set, and those that were made under their numbers later.
  private var replaced: Set<FeedNumber> = []
  private(set) var slowFilters = SlowFilters()
  /// The number of changes published when the histories began to be trimmed last.
  private var changesAtTrim = 0
  /// The number of changes of one row that take some megabytes.
  private static let manyChanges = 200_000
  private var trimming = HistoryTrimming()
  /// The elements of feeds that are gone and of states that were replaced, and names of sections.
  let discarded = DiscardedElements()

  public init(limits: Limits, revision: UInt64 = 0, seed: UInt64) {
    (self.limits, self.seed) = (limits, seed)
    table = FeedTable(limits: limits, revision: revision)
    graph = FeedGraph(table: table)
    commit = Commit(graph: graph, revision: revision, discarded)
  }

  public var revision: UInt64 { commit.revision }
  /// Incremented when a feed is added, removed or redefined, or its children change.
  public var structureVersion: UInt64 { graph.version }

  // MARK: Commits

  /// Starts a commit.
  /// - Parameters:
  ///   - certain: see ``Commit/begin(at:maxSteps:maxRows:certain:)``.
  ///   - mayName: decides which feeds errors may name besides those of the request; nil for all.
  public func begin(at moment: Instant, certain: Int = 0, mayName: ((Feed) -> Bool)? = nil) {
    if mayName != nil || table.mayName != nil { table.mayName = mayName }
    commit.begin(at: moment, maxSteps: limits.maxRequestSteps, maxRows: limits.maxRequestRows, certain: certain)
  }

  public func rollBack() {
    commit.rollBack()
    sampleInvariants()
  }

  /// Executes `body` as a commit at `now`, and undoes it. Later commits do not see its time: no log has it, and other members of a group
  /// and a start execute what the log has at the moments that the log has.
  public func rehearse<Result, Failure: Error>(
    at now: Instant, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let moment = commit.moment
    begin(at: now)
    defer {
      rollBack()
      commit.restore(revision: revision, at: moment)
    }
    return try body()
  }

  /// Commits everything since `begin` and notifies `observer`. Returns false, without a commit, if nothing changed.
  @discardableResult
  public func finish(to observer: (any CommitObserver)? = nil) -> Bool {
    defer { sampleInvariants() }
    return commit.finish(to: observer)
  }

  // MARK: Finding

  /// The defined feeds by name, without `$feeds`. Bins are found through their collection.
  public var feeds: [String: Feed] { table.byName }

  /// The feed, or bin of a collection, of that name.
  public func feed(named name: String) throws(FeedError) -> Feed {
    guard let feed = table.find(name) else { throw .unknownFeed(name) }
    return feed
  }

  public func collection(named name: String) throws(FeedError) -> CollectionKind {
    let feed = try feed(named: name)
    guard let collection = feed.collection else {
      throw .wrongKind(feed: name, kind: feed.kindName, wanted: "collection")
    }
    return collection
  }

  /// Returns the element with an identity and its places in `feed`, which is a collection, a bin, an array with identity or
  /// a managed feed. Returns nil if the feed has no such element. O(bins · log n).
  /// - Parameter index: the position of `id` in the request, for the error.
  /// - Throws: `wrongKind` if elements of the feed have no identity, `noIdentity` if `id` is not a string or a number.
  public func find(
    _ id: JSONView, index: Int = 0, in feed: Feed
  ) throws(FeedError) -> (row: Row, places: [IndexPath])? {
    switch feed.kind {
    case let collection as CollectionKind: try collection.find(id, index: index)
    case let managed as ManagedKind: try managed.find(id)
    case let bin as BinKind: try bin.find(id)
    case let list as FeedListKind: list.find(id)
    case let list as ListKind where list.hasIdentity: try list.find(id, index: index)
    default:
      throw .wrongKind(feed: feed.name, kind: feed.kindName, wanted: "collection, bin or array with \"id\"")
    }
  }

  /// Returns the identity of `element`, a whole element of a request, and the present element of `feed` with that identity;
  /// nil if there is none. The feed is a collection or an array with identity.
  /// - Throws: `wrongKind` for other feeds, `noIdentity` if `element` has none.
  public func find(
    identityOf element: JSONView, index: Int, in feed: Feed
  ) throws(FeedError) -> (id: JSONView, row: Row?) {
    let (path, row): (SingularPath?, Row?) =
      switch feed.kind {
      case let collection as CollectionKind:
        (collection.content.id, try collection.find(identityOf: element, index: index))
      case let list as ListKind where list.hasIdentity:
        (list.identityPath, try list.find(identityOf: element, index: index))
      default:
        throw .wrongKind(feed: feed.name, kind: feed.kindName, wanted: "collection or array with \"id\"")
      }
    guard let id = path?.resolve(element) else { throw .internalError(reason: "an identity was found and is gone") }
    return (id, row)
  }

  // MARK: Limits and eviction

  /// Replaces the limits, between two commits. Existing feeds and elements are kept even if they exceed the new limits.
  /// Views show the rows that their filters accept within the new limits, and `$feeds` the definitions that fit.
  public func use(_ limits: Limits) {
    let recharges = limits.countsMemory != self.limits.countsMemory
    let judgesOtherwise = ViewJudge.maxSteps(limits) != ViewJudge.maxSteps(self.limits)
    let listsOtherwise = limits.elementRoom != self.limits.elementRoom
    self.limits = limits
    if recharges {
      for feed in feeds.values {
        if let definition = feed.definition { feed.setDefinitionBytes(definition.storedBytes(limits)) }
      }
    }
    for feed in table.all { feed.use(limits) }
    let isRelisted = listsOtherwise && table.relist(at: commit.moment)
    if isRelisted { replaced.insert(table.list.number) }
    if judgesOtherwise || isRelisted { replaceRows(judgesOtherwise: judgesOtherwise) }
  }

  /// Publishes the feeds above replaced rows, and evaluates the filters of all views if they judge otherwise. A feed that then shows
  /// other rows has no past and selection. O(n log n).
  private func replaceRows(judgesOtherwise: Bool) {
    defer {
      graph.structureDidChange()
      graph.didClose()
    }
    if replaced.contains(table.list.number) { table.list.forgetPast(at: revision) }
    for feed in feeds.values.sorted(by: { graph.rank(of: $0.number) < graph.rank(of: $1.number) }) {
      guard let derived = feed.derived else { continue }
      var isReplaced = derived.sources.contains { replaced.contains($0.feed.number) }
      graph.counts.advance()
      if judgesOtherwise, let view = derived as? ViewKind, view.hasFilter {
        if view.use(limits, feed, graph) { isReplaced = true }
      } else if isReplaced {
        derived.sourcesWereRestored()
      }
      guard isReplaced else { continue }
      replaced.insert(feed.number)
      feed.forgetPast(at: revision)
    }
  }

  /// The moment when the next element of any feed expires, as of before an open commit; nil if none will. O(log feeds) for each
  /// feed that changed.
  public var nextExpiry: Instant? {
    followTimed()
    return expiry.next
  }

  private func followTimed() { commit.updateTimed { expiry.update($0) } }
  public var mayHaveSlowViews: Bool { commit.graph.slowViews > 0 }

  /// Whether views with slow filters may take many steps for the change of one row of a feed. O(bins).
  public func hasSlowViews(above feed: Feed) -> Bool { mayHaveSlowViews && stepsAbove(feed) >= Self.manySteps }

  /// Whether the changes of some elements of a feed may take longer than a slice, because many feeds show it. O(1).
  public var hasFeedsShownOften: Bool { commit.graph.feedsShownOften > 0 }

  /// The steps that the bins of a feed and all feeds above may take for the change of one element. A million takes about a millisecond,
  /// unless filters are slow. O(1).
  public func stepsOfElement(of feed: Feed) -> Int { commit.graph.stepsOfElement(of: feed.number) }

  /// The most bins and views that look at the members of an element of a feed. O(bins).
  public func readers(of feed: Feed) -> Int { max(1, feed.kind.bins.count) + stepsAbove(feed) / Self.leastStepsOfView }

  private func stepsAbove(_ feed: Feed) -> Int {
    feed.kind.bins.reduce(commit.graph.stepsAbove(feed.number)) { $0 + commit.graph.stepsAbove($1.number) }
  }

  /// The steps that take about a millisecond.
  private static let manySteps = 20_000

  /// The filter steps of all requests, refused ones too, for the schedule of images: replay takes them again. O(1).
  public var stepsTaken: UInt64 { commit.log.stepsTaken &+ commit.pace.stepsOfViews }

  /// At most `limit` feeds that have an expired element at `moment`; see ``Expiry/due(at:after:limit:)``.
  public func expired(at moment: Instant, after name: String = "", limit: Int = .max) -> [Feed] {
    followTimed()
    return expiry.due(at: moment, after: name, limit: limit)
  }

  /// Updates what is known of all feeds, after a feed was added, removed or redefined. O(log feeds) unless it begins or ends
  /// to retain by time, or the feed with the slowest filters was removed or redefined.
  /// - Parameter former: the ``RowStore/slowSize`` that a redefined feed had.
  func refreshSummaries(with feed: Feed, formerSlowSize former: Int? = nil) {
    expiry.follow(feed, in: table)
    commit.noteTimed(feed.number)
    slowFilters.follow(feed, formerly: former ?? feed.kind.rows?.slowSize ?? .max, in: table)
  }

  /// Whether memory of elements that are gone waits to be freed.
  public var hasDiscarded: Bool { !discarded.isEmpty }
  public func freeDiscarded(_ count: Int) { discarded.free(count) }

  // MARK: History

  /// The bytes of the histories of all feeds. O(feeds).
  public var historyBytes: Int { (0..<table.numberCount).reduce(0) { $0 &+ (table.history(ofNumber: $1)?.bytes ?? 0) } }

  /// Whether commits recorded so many changes since the last ``beginTrimming()`` that these may take much memory. O(1).
  public var hasManyChanges: Bool { commit.publisher.publishedChanges &- changesAtTrim >= Self.manyChanges }

  /// Whether histories are left to be looked at by ``trimSome(before:)``.
  public var isTrimming: Bool { trimming.isUnderWay }

  public func beginTrimming() {
    changesAtTrim = commit.publisher.publishedChanges
    trimming.begin()
  }

  /// Does a part of what ``trimHistories(before:)`` does, since `beginTrimming`.
  public func trimSome(before moment: Instant) { trimming.advance(over: table, limits, before: moment) }

  /// Discards recorded changes older than `moment`, and the oldest ones beyond `historyBytes` for a feed or
  /// `maxHistoryBytes` for all feeds. O(feeds + changes discarded).
  public func trimHistories(before moment: Instant) {
    beginTrimming()
    while isTrimming { trimSome(before: moment) }
  }

  // MARK: Recovery

  /// Raises the revision to `revision`. Replay uses it for commits that it cannot repeat.
  public func skip(to revision: UInt64) { commit.skip(to: revision) }

  /// Whether a feed shows rows of a managed feed, so that its revision differs after replay. O(1).
  public func containsManagedRows(_ feed: Feed) -> Bool { graph.hasManagedRows(feed.number) }

  /// Discards the history and the selection of every feed that shows rows of managed feeds, and gives it a revision that no
  /// client has seen. Managed rows are read again after a start, so no watch can resume across it. O(feeds).
  public func forgetManagedHistory() {
    let managed = feeds.values.filter { graph.hasManagedRows($0.number) }
    if managed.isEmpty { return }
    commit.skip(to: revision &+ 1)
    for feed in managed { feed.forgetPast(at: revision) }
  }

  /// Whether other limits replaced rows since the image. Each start gives these feeds a revision of no batch.
  public var hasReplacedRows: Bool { !replaced.isEmpty }

  /// Gives the feeds that show other rows than the image a new revision, as a start does once replay has ended. O(feeds).
  public func forgetReplacedRows() {
    if replaced.isEmpty { return }
    commit.skip(to: revision &+ 1)
    for feed in table.all where replaced.contains(feed.number) { feed.forgetPast(at: revision) }
  }

  /// Calls `body` without the limits on definitions and on the numbers of feeds, bins, sections, repeats and levels.
  func withoutGrowthLimits<R>(_ body: () throws(FeedError) -> R) throws(FeedError) -> R {
    let kept = limits
    limits = limits.ofStoredDefinitions
    (limits.maxFeeds, limits.maxSections, limits.maxRepeats) = (.max, .max, .max)
    (limits.maxLevels, limits.maxFeedsPerUser, limits.maxDerivedSteps) = (.max, .max, .max)
    (limits.maxDefinitionBytesPerUser, limits.maxTotalDefinitionBytes) = (.max, .max)
    (limits.maxViewRowsPerUser, limits.maxTotalViewRows) = (.max, .max)
    defer { limits = kept }
    return try body()
  }

  private func sampleInvariants() {
    #if CHECK_INVARIANTS
      if table.count <= 8 { accounts.checkInvariants(table.byName.values, isRestoring: commit.isRestoring, limits) }
    #endif
  }

  /// Checks the invariants that hold between commits. O(feeds + selected).
  func checkInvariants() {
    commit.checkInvariants()
    followTimed()
    expiry.checkInvariants(table)
    slowFilters.checkInvariants(table)
    accounts.checkInvariants(feeds.values, isRestoring: false, limits)
    for feed in feeds.values { precondition(feed.hasValidSelection, "feed \"\(feed.name)\" has an invalid selection") }
  }
}

extension Feed {
  /// Sets the limits of the rows that the feed stores, or reads from a database.
  func use(_ limits: Limits) { (kind.rows ?? (kind as? ManagedKind)?.kept)?.limits = limits }
}

/// Memory of elements that are gone, freed a bounded number at a time.
///
/// Freeing a million elements takes a tenth of a second. A table with many elements that is not needed any more leaves
/// them here, and the engine frees some in each turn. So does a commit with the names of many sections.
final class DiscardedElements {
  /// Fewer elements than this are freed at once.
  static let many = 4096

  /// Each frees up to a number of elements, and returns whether none is left.
  private var waiting: [(Int) -> Bool] = []

  var isEmpty: Bool { waiting.isEmpty }
  deinit { while !isEmpty { free(.max) } }

  /// Takes over elements. `free` frees up to a number of them and returns whether none is left.
  func add(_ free: @escaping (Int) -> Bool) { waiting.append(free) }

  /// Takes over the sections that a change added. Nothing else may hold the list.
  func add(_ sections: [SectionAddition]) {
    var left = sections
    add { count in
      left.removeLast(min(count, left.count))
      return left.isEmpty
    }
  }

  /// Frees all elements. Lets `pace` stop meanwhile.
  func freeAll(_ pace: Pace) {
    while !isEmpty {
      free(64)
      pace.spend(4)
    }
  }

  func free(_ count: Int) { if let first = waiting.first, first(count) { waiting.removeFirst() } }
}
