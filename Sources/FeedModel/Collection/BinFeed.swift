import FeedChange

/// One bin of a collection as a feed of its own, `collection/bin`: a single section.
public final class BinFeed: Feed {
  /// The collection; it owns this feed and lives as long, but for a watch of a bin that is gone.
  unowned let collection: CollectionFeed
  /// The bin's index in the collection as it is now.
  var index: Int
  /// Its index after the last commit; nil while no commit has had it.
  var publishedIndex: Int?
  /// The bin's own name, without the collection's.
  public let bin: String

  public override var kind: String { "bin" }

  init(of collection: CollectionFeed, index: Int, revision: UInt64) {
    self.collection = collection
    self.index = index
    publishedIndex = index
    bin = collection.content.bins[index].name
    super.init(name: collection.state.bins[index].section.name, revision: revision)
    rank = 1
  }

  public override var hasTypes: Bool { !isGone && collection.hasTypes }

  public override var sectionCount: Int { isGone ? 0 : 1 }

  public override func section(at index: Int) -> Section {
    collection.state.bins[self.index].section
  }

  /// The bin's rows.
  var rows: PositionTree { collection.state.bins[index].section.rows }

  override func derive() {
    let change = collection.net
    defer { publishedIndex = isGone ? nil : index }
    guard let before = publishedIndex else { return }
    if isGone {
      net.sectionsDeleted = [0]
    } else if change.keepsSection(from: before, as: index) {
      change.extract(before: UInt32(before), after: UInt32(index), into: &net)
    } else {
      // Among its neighbours the bin went and came back elsewhere, so its rows did.
      net = Change(
        added: (0..<UInt32(section(at: 0).count)).map { IndexPath(section: 0, row: $0) }, sectionsDeleted: [0],
        sectionsAdded: [SectionAddition(at: 0, name: name)])
    }
  }
}
