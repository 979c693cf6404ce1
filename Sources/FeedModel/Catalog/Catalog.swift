import FeedChange
import FeedJSON

/// All feeds of the daemon.
///
/// Composes the table of names and numbers, the graph of who shows whom, the commit under way and the collections that evict
/// by age. Guarded by the engine's thread. Feeds change only between `begin` and `finish` or `rollBack`, by operations that
/// the kinds provide: `CollectionKind.update`, `ListKind.insert` and so on. Several operations in one commit are a
/// transaction: one revision, one composed change a feed.
public final class Catalog {
  public private(set) var limits: Limits
  /// Makes the hashes of identities unpredictable.
  let seed: UInt64
  let table = FeedTable()
  let graph: FeedGraph
  public let commit: Commit
  private var expiry = Expiry()

  public init(limits: Limits, revision: UInt64 = 0, seed: UInt64) {
    self.limits = limits
    self.seed = seed
    graph = FeedGraph(table: table)
    commit = Commit(graph: graph, revision: revision)
  }

  /// The revision of the last commit.
  public var revision: UInt64 { commit.revision }
  /// Changed whenever a feed is added, removed or redefined, or gets other children.
  public var structureVersion: UInt64 { graph.version }

  // MARK: Commits

  /// Starts a commit.
  public func begin(at now: Instant) { commit.begin(at: now, maxSteps: limits.maxRequestSteps) }

  /// Undoes everything since `begin`.
  public func rollBack() { commit.rollBack() }

  /// Makes everything since `begin` final and tells `observer`. Returns whether there was any change.
  @discardableResult
  public func finish(to observer: (any CommitObserver)? = nil) -> Bool { commit.finish(to: observer) }

  // MARK: Finding

  /// The feeds by name; bins of collections are found through their collection.
  public var feeds: [String: Feed] { table.byName }

  /// The feed, or bin of a collection, of that name.
  public func feed(named name: String) throws(FeedError) -> Feed {
    guard let feed = table.find(name) else { throw .unknownFeed(name) }
    return feed
  }

  /// The collection of that name.
  public func collection(named name: String) throws(FeedError) -> CollectionKind {
    let feed = try feed(named: name)
    guard let collection = feed.collection else {
      throw .wrongKind(feed: name, kind: feed.kindName, wanted: "collection")
    }
    return collection
  }

  /// The element with an identity and its places in `feed`, a collection, a bin or a managed feed; nil if the feed has no such
  /// element. O(bins + log n for each).
  ///
  /// - Throws: `wrongKind` if the feed's elements have no identity, `noIdentity` if `id` is not one.
  public func find(_ id: JSONView, in feed: Feed) throws(FeedError) -> (row: Row, places: [IndexPath])? {
    switch feed.kind {
    case let collection as CollectionKind: try collection.find(id)
    case let managed as ManagedKind: try managed.find(id)
    case let bin as BinKind: try bin.find(id)
    default: throw .wrongKind(feed: feed.name, kind: feed.kindName, wanted: "collection")
    }
  }

  /// The elements of all feeds, each counted once however many bins hold it. O(feeds).
  public var elementCount: Int { feeds.values.reduce(0) { $0 + ($1.kind.rows?.elements.count ?? 0) } }

  /// The bytes of all elements. O(feeds).
  public var elementBytes: Int { feeds.values.reduce(0) { $0 + ($1.kind.rows?.elements.bytes ?? 0) } }

  // MARK: Limits and eviction

  /// Continues under other limits. Existing feeds and elements stay, even if they exceed the new limits.
  public func adopt(_ limits: Limits) {
    self.limits = limits
    for feed in feeds.values where !(feed.kind is ManagedKind) { feed.kind.rows?.limits = limits }
  }

  /// When the next element of any collection is too old; nil if none will be. O(collections that retain by age).
  public var nextExpiry: Instant? { expiry.next }

  /// The collections that have an element too old at `now`, in the order of their names.
  public func expired(at now: Instant) -> [CollectionKind] { expiry.due(at: now) }

  /// Definitions changed.
  func refreshExpiry() { expiry.refresh(from: table) }

  // MARK: History

  /// The feeds that keep recent changes, bins included.
  private var recording: [Feed] {
    feeds.values.flatMap { [$0] + $0.kind.bins }.filter(\.isObserved)
  }

  /// The bytes of recent changes that all feeds keep. O(feeds).
  public var historyBytes: Int { recording.reduce(0) { $0 &+ ($1.history?.bytes ?? 0) } }

  /// Discards recent changes older than `moment`, or beyond `historyBytes` for a feed or `maxHistoryBytes` for all feeds.
  /// O(feeds + changes discarded).
  public func trimHistories(before moment: Instant) {
    let feeds = recording
    for feed in feeds { feed.history?.trim(bytes: limits.historyBytes, before: moment) }
    if historyBytes > limits.maxHistoryBytes {
      let share = limits.maxHistoryBytes / feeds.count
      for feed in feeds { feed.history?.trim(bytes: share, before: moment) }
    }
    for feed in feeds { feed.history?.compact() }
  }

  // MARK: Recovery

  /// Continues from a later revision: commits that cannot be repeated are skipped.
  public func skip(to revision: UInt64) { commit.skip(to: revision) }

  /// Whether a feed contains rows of a managed feed. Its revision is then not the same when the log is replayed, because rows
  /// of managed feeds are read again at each start. O(1) for a feed with elements of its own, else O(feeds).
  public func containsManagedRows(_ feed: Feed) -> Bool {
    if feed.derived == nil { return feed.kind is ManagedKind }
    return feeds.values.contains { $0.kind is ManagedKind && graph.isShown($0, by: feed) }
  }

  /// Ends the past of every feed that shows rows of managed feeds. Managed feeds are read again after a start, so nobody can
  /// catch up across it; they begin at a revision that nobody has seen. O(feeds).
  public func forgetManagedHistory() {
    let managed = feeds.values.filter { $0.kind is ManagedKind }
    if managed.isEmpty { return }
    commit.skip(to: revision &+ 1)
    for feed in feeds.values where managed.contains(where: { graph.isShown($0, by: feed) }) {
      feed.forgetPast(at: revision)
    }
  }

  /// Calls `body` while the limits on numbers of feeds, bins, sections and repeats do not apply.
  func withoutGrowthLimits<R>(_ body: () throws(FeedError) -> R) throws(FeedError) -> R {
    let kept = limits
    (limits.maxFeeds, limits.maxBins, limits.maxSections, limits.maxRepeats) = (.max, .max, .max, .max)
    defer { limits = kept }
    return try body()
  }

  /// Checks what must hold between commits. O(feeds).
  func checkInvariants() {
    commit.checkInvariants()
    expiry.checkInvariants(table)
  }
}
