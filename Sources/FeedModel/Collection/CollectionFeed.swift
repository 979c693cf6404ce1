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

  /// Bytes of the living elements.
  public var bytes: Int { state.elements.bytes }
  /// Elements, each counted once however many bins hold it.
  public var elementCount: Int { state.elements.count }

  /// When the next element becomes too old to be kept; nil while none can.
  var nextExpiry: Instant? {
    guard let seconds = content.retain?.seconds, state.elements.oldest != ElementTable.none else { return nil }
    return state.elements.records[Int(state.elements.oldest)].text.changedAt.adding(seconds: seconds)
  }

  override func propagate(_ change: borrowing Change, in commit: Catalog) {
    super.propagate(change, in: commit)
    if isGone || !change.sectionsDeleted.isEmpty || !change.sectionsAdded.isEmpty {
      for bin in goneBins + binFeeds { commit.hand(to: bin) }
      goneBins = []
      return
    }
    if !change.deleted.isEmpty { hand(change.deleted, to: commit) }
    if !change.added.isEmpty { hand(change.added, to: commit) }
    if !change.updated.isEmpty { hand(change.updated, to: commit) }
  }

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
