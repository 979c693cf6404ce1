import FeedChange

/// A collection of bins (seed 004): a section for every bin, each with the elements that its filter accepts.
/// `@exclusivity(unchecked)`: see `Catalog`.
public final class CollectionFeed: Feed {
  /// Replaced as a whole when the collection is redefined.
  @exclusivity(unchecked) var state: CollectionState
  /// One feed for every bin, in order, so that a bin can be watched or be a child on its own.
  @exclusivity(unchecked) public internal(set) var binFeeds: [BinFeed] = []

  /// The bins that the commit under way takes away.
  var goneBins: [BinFeed] = []

  public override var kind: String { "collection" }
  /// What its bins are, where identity stands, what is kept.
  public var content: CollectionDefinition { state.definition }

  init(name: String, definition: CollectionDefinition, limits: Limits, seed: UInt64, revision: UInt64) {
    state = CollectionState(feed: name, definition: definition, limits: limits, seed: seed)
    super.init(name: name, revision: revision)
    binFeeds = state.bins.indices.map { BinFeed(of: self, index: $0, revision: revision) }
  }

  override var rowStore: RowStore? { state }

  public override var hasTypes: Bool { content.type != nil }

  public override var sectionCount: Int { isGone ? 0 : state.bins.count }

  public override func section(at index: Int) -> Section {
    state.bins[index].section
  }

  public override func row(at path: IndexPath) -> Row {
    state.bins[Int(path.section)].section.row(at: Int(path.row))
  }

  public override func element(at path: IndexPath) -> ElementText {
    state.bins[Int(path.section)].section.element(at: Int(path.row))
  }

  /// Bytes of the living elements.
  public var bytes: Int { state.elements.bytes }
  /// Elements, each counted once however many bins hold it.
  public var elementCount: Int { state.elements.count }

  /// When the next element becomes too old to be kept; nil while none can.
  var nextExpiry: Instant? {
    guard let seconds = content.retain?.seconds, state.elements.oldest != ElementTable.none else { return nil }
    return state.elements.records[Int(state.elements.oldest)].text.changedAt.adding(seconds: seconds)
  }

  /// The elements that are too old to be kept, the oldest first, at most so many.
  func expired(at moment: Instant, limit: Int) -> [UInt32] {
    guard let seconds = content.retain?.seconds else { return [] }
    var found: [UInt32] = []
    var next = state.elements.oldest
    while found.count < limit, next != ElementTable.none {
      let record = state.elements.records[Int(next)]
      if record.text.changedAt.adding(seconds: seconds) > moment { break }
      found.append(next)
      next = record.newer
    }
    return found
  }

  override func propagate(in commit: Catalog) {
    super.propagate(in: commit)
    if isGone || !net.sectionsDeleted.isEmpty || !net.sectionsAdded.isEmpty {
      for bin in goneBins + binFeeds { commit.hand(to: bin) }
      goneBins = []
      return
    }
    if !net.deleted.isEmpty { hand(net.deleted, to: commit) }
    if !net.added.isEmpty { hand(net.added, to: commit) }
    if !net.updated.isEmpty { hand(net.updated, to: commit) }
  }

  /// It may unless somebody sees a bin that has rows in the change. One that nobody sees only takes note of the revision.
  override func mayFollowRoute(in commit: Catalog) -> Bool {
    if net.deleted.contains(where: isSeen) || net.added.contains(where: isSeen) || net.updated.contains(where: isSeen) {
      return false
    }
    for path in net.deleted { binFeeds[Int(path.section)].revision = commit.revision }
    for path in net.added { binFeeds[Int(path.section)].revision = commit.revision }
    for path in net.updated { binFeeds[Int(path.section)].revision = commit.revision }
    return true
  }

  private func isSeen(_ path: IndexPath) -> Bool { binFeeds[Int(path.section)].isSeen }

  /// Hands the change to the bins that have rows among `paths`; one that nobody sees only takes note of the revision.
  private func hand(_ paths: [IndexPath], to commit: Catalog) {
    var last: UInt32?
    for path in paths where path.section != last {
      last = path.section
      let bin = binFeeds[Int(path.section)]
      if bin.isSeen { commit.hand(to: bin) } else { bin.revision = commit.revision }
    }
  }
}
