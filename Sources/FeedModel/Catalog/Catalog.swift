import FeedChange

/// Whoever publishes commits: told of every observed feed that a commit changed, once, after the change is in place.
public protocol CommitObserver: AnyObject {
  /// `feed` went from revision `from` to its present one by `change`.
  func catalog(_ catalog: Catalog, didChange feed: Feed, from: UInt64, change: Change)
  /// The rows of `feed` that are selected stand elsewhere now, or some have gone.
  func catalog(_ catalog: Catalog, didCarrySelectionOf feed: Feed)
  /// `feed` was undefined; its last change, the loss of all sections, was published before.
  func catalog(_ catalog: Catalog, didEnd feed: Feed)
}

/// All feeds of the daemon and the commit under way.
///
/// Guarded by the engine's thread. A mutation runs between `begin` and `commit` or `rollBack`; operations leave their own
/// change in `result`. Several operations in one commit make a transaction: one revision, one composed change a feed.
///
/// The properties that every update goes through, here and in what a catalog holds, are not checked at run time for
/// overlapping accesses, which took a quarter of an update's time. None overlaps: nothing calls out, or back into its
/// owner, while it changes one of them.
public final class Catalog {
  /// The feeds by name; bins of collections are found through their collection.
  public internal(set) var feeds: [String: Feed] = [:]
  /// The revision of the last commit.
  @exclusivity(unchecked) public internal(set) var revision: UInt64
  public internal(set) var limits: Limits
  /// Told of every change; the owner of the catalog, which outlives it.
  @exclusivity(unchecked) public unowned(unsafe) var observer: (any CommitObserver)?
  /// Whether the observer wants to be told only of feeds that have a `Feed.channel`.
  @exclusivity(unchecked) public var observesOnlyChannels = false
  /// The change of the last operation, in the coordinates that it met. Valid until the next operation.
  @exclusivity(unchecked) public internal(set) var result = Change()

  /// While a commit is published that replaces one row's element and does nothing else, the new one: whichever row shows it in
  /// the feed at hand, it need not be looked up there.
  @exclusivity(unchecked) public internal(set) var updatedElement: ElementText?

  /// The moment of the step under way: it goes on by a nanosecond with every step, so that no two elements have changed
  /// at the same time.
  @exclusivity(unchecked) var now = Instant(nanoseconds: 0)
  @exclusivity(unchecked) var log = UndoLog()
  /// The feeds that this commit changes, in the order of `Feed.rank` once it is being published.
  @exclusivity(unchecked) var touched: [Feed] = []
  /// The feed that `result` changed, while `result` has not been added to that feed's accumulator.
  @exclusivity(unchecked) var pending: Feed?
  /// The feeds that operations of this commit marked.
  @exclusivity(unchecked) var marked: [Feed] = []
  /// The steps of the operation under way, when there is more than one.
  @exclusivity(unchecked) var steps = ChangeAccumulator()
  @exclusivity(unchecked) var stepCount = 0
  /// The collections that the commit under way gave other bins.
  var rebinned: [CollectionFeed] = []
  /// The collections that evict by age.
  var expiring: [CollectionFeed] = []
  let seed: UInt64
  let shape = Shape()

  /// Another one whenever a feed came, went or got another definition, children or sections.
  public var structureVersion: UInt64 { log.structureChanges }

  /// Lends `result`, which to copy would cost a count of references for each of its lists.
  public func withResult(_ body: (borrowing Change) -> Void) {
    var change = Change()
    swap(&change, &result)
    body(change)
    swap(&change, &result)
  }

  /// How many rows and sections `result` lists.
  public var resultSize: Int { result.size }
  public var resultAddsNoSection: Bool { result.sectionsAdded.isEmpty }

  public init(limits: Limits, revision: UInt64 = 0, seed: UInt64) {
    self.limits = limits
    self.revision = revision
    self.seed = seed
  }

  /// The feed, or bin of a feed, of that name.
  public func feed(named name: String) throws(FeedError) -> Feed {
    if let feed = feeds[name] { return feed }
    let parts = name.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    if parts.count == 2, let collection = feeds[String(parts[0])] as? CollectionFeed,
      let bin = collection.binFeeds.first(where: { $0.bin == parts[1] })
    {
      return bin
    }
    throw .unknownFeed(name)
  }

  /// The collection of that name, for methods that need one.
  public func collection(named name: String) throws(FeedError) -> CollectionFeed {
    let feed = try feed(named: name)
    guard let collection = feed as? CollectionFeed else {
      throw .wrongKind(feed: name, kind: feed.kind, wanted: "collection")
    }
    return collection
  }
}
