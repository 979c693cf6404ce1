import FeedChange

/// Anything with a name that can be watched: an ordered list of sections of rows (PROTOCOL section 3).
///
/// Guarded by the engine's thread. Subclasses hold the rows; this class holds what all feeds share: the revision, the
/// feeds that show its rows, the change of the commit under way and the recent changes.
/// `@exclusivity(unchecked)`: see `Catalog`.
public class Feed {
  public let name: String
  /// The kind's name on the wire; `bin` for one bin of a collection.
  public var kind: String { "feed" }
  /// The revision of the last commit that changed this feed.
  @exclusivity(unchecked) public internal(set) final var revision: UInt64
  /// The change of the commit under way; empty between commits.
  @exclusivity(unchecked) var net = Change()
  /// The composed changes of the earlier operations of a transaction.
  @exclusivity(unchecked) var accumulator = ChangeAccumulator()
  /// Whether the feed is listed among those that the commit under way touches.
  @exclusivity(unchecked) var isTouched = false
  /// The last of the numbers with which `Catalog.mark` marked, in the commit under way, what this feed shows; 0 for none.
  @exclusivity(unchecked) public internal(set) final var mark = 0
  /// Recent changes; nil until somebody watches the feed for the first time.
  @exclusivity(unchecked) public internal(set) final var history: History?
  /// What the publisher of changes keeps for this feed. The model only carries it.
  @exclusivity(unchecked) public final var channel: AnyObject?
  /// The selected rows, ascending, as of the last commit.
  @exclusivity(unchecked) public internal(set) final var selection: [IndexPath] = []
  /// What may be done with the rows.
  public internal(set) var behaviours = Behaviours()
  /// The definition as it was given last; children and the active one may have changed since by other methods.
  public internal(set) var given: FeedDefinition?
  /// Whether the feed was undefined: it has no rows and never will again.
  @exclusivity(unchecked) public internal(set) final var isGone = false

  /// The place in the order of publication: above every feed whose rows this one shows.
  @exclusivity(unchecked) var rank = 0
  /// How often this feed shows any other, at most: never less than it is, perhaps more (see `Catalog.checkGrowth`).
  @exclusivity(unchecked) final var repeats = 1
  /// The feeds that show this one's rows.
  @exclusivity(unchecked) private(set) var parents: [Parent] = []

  /// How changes of rows go on from here, as it was worked out last.
  @exclusivity(unchecked) var route: Route?

  /// A parent takes itself off its children before it goes, and they do not keep it alive.
  struct Parent {
    unowned(unsafe) let feed: Feed
    /// Which of the parent's children or contents this feed is.
    let place: Int
  }

  init(name: String, revision: UInt64) {
    self.name = name
    self.revision = revision
  }

  /// Sections, each with its rows, in order.
  public var sectionCount: Int { 0 }

  /// The section at an index in `0..<sectionCount`.
  public func section(at index: Int) -> Section {
    preconditionFailure("a feed without sections has none at \(index)")
  }

  /// The row at a path that is there. O(log n).
  public func row(at path: IndexPath) -> Row { section(at: Int(path.section)).row(at: Int(path.row)) }

  /// The element of the row at a path that is there: what `row(at:)` gives without its type. O(log n).
  public func element(at path: IndexPath) -> ElementText { section(at: Int(path.section)).element(at: Int(path.row)) }

  /// The type of the row at a path that is there: what `row(at:)` gives without its element. O(log n).
  public func type(at path: IndexPath) -> UnsafeRawBufferPointer {
    section(at: Int(path.section)).type(at: Int(path.row))
  }

  /// Rows of all sections. O(sections).
  public var count: Int {
    (0..<sectionCount).reduce(0) { $0 &+ section(at: $1).count }
  }

  /// Whether rows may have a type.
  public var hasTypes: Bool { false }

  /// Whether changes of this feed must be worked out: somebody watches it or may come back to it.
  public var isObserved: Bool { history != nil }

  /// Whether anything depends on what this feed's changes are.
  var isSeen: Bool { history != nil || !parents.isEmpty || !selection.isEmpty }

  /// Begins to keep recent changes, so that a watcher that falls behind or comes back can be brought up to date.
  public func beginHistory() {
    if history == nil { history = History(base: revision) }
  }

  /// The content as of now, to be read in parts while the feed goes on changing. O(rows / 100).
  public func makeSnapshot() -> FeedSnapshot {
    FeedSnapshot(sections: (0..<sectionCount).map { section(at: $0).makeSnapshot() }, revision: revision)
  }

  /// Whether no commit has had the feed yet: what its sources changed before it was defined does not concern it.
  var isNew = true

  /// Works out `net` from the changes of the feeds whose rows this one shows; a feed with rows of its own has it already.
  func derive() {}

  /// What holds the rows that operations change step by step; nil for a feed that has none of its own.
  var rowStore: RowStore? { nil }

  /// The feeds whose rows this one shows.
  var sources: [Feed] { [] }

  /// The rows of the feeds that this one shows were put back: what was noted of them must be noted anew.
  func contentWasRestored() {}

  /// Hands this feed's change of the commit under way to the feeds that show its rows: they find it in `net` when their
  /// turn comes.
  func propagate(in commit: Catalog) {
    if parents.isEmpty { return }
    for parent in parents {
      parent.feed.note(changed: parent.place)
      if mark > parent.feed.mark && parent.feed.shows(place: parent.place) { parent.feed.mark = mark }
      commit.hand(to: parent.feed)
    }
  }

  /// The feed at one of the places whose rows this one shows has changed in the commit under way.
  func note(changed place: Int) {}

  /// Whether the rows of the feed at one of the places show.
  func shows(place: Int) -> Bool { true }

  /// Where the sections of the feed at one of the places begin; nil where they are not sections of this feed.
  func shift(ofSectionsAt place: Int) -> Int? { nil }

  /// Whether the change of rows in `net` concerns nobody but this feed and its parents.
  func mayFollowRoute(in commit: Catalog) -> Bool { true }

  /// As `derive`, when only the feed at one of the places has changed: as the `net` of `holder` says, its sections shifted.
  func derive(from holder: Feed, shift: UInt32, at place: Int) {}

  /// Becomes a parent of the feeds whose rows this one shows, or is one no longer.
  func joinSources() {}
  func leaveSources() {}

  /// Sections of this feed may have come or gone: whoever maps them must look again.
  func structureDidChange() {
    for parent in parents { parent.feed.structureDidChange() }
  }

  func addParent(_ parent: Feed, place: Int) {
    parents.append(Parent(feed: parent, place: place))
    parent.raiseRank(above: rank)
  }

  func removeParent(_ parent: Feed) {
    parents.removeAll { $0.feed === parent }
  }

  private func raiseRank(above source: Int) {
    guard rank <= source else { return }
    rank = source + 1
    for parent in parents { parent.feed.raiseRank(above: rank) }
  }

  /// Whether `feed` is this feed or shows its rows through others: it must not become a source of this one.
  func isShown(by feed: Feed) -> Bool {
    feed === self || parents.contains { $0.feed.isShown(by: feed) }
  }
}
