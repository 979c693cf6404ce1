/// One bin of a collection as a feed of its own, `collection/bin`: a single section.
public final class BinFeed: Feed {
  /// The collection; it owns this feed and lives as long.
  unowned let collection: CollectionFeed
  /// The bin's index in the collection as it is now.
  var index: Int
  /// The bin's own name, without the collection's.
  public let bin: String

  public override var kind: String { "bin" }

  init(of collection: CollectionFeed, index: Int, revision: UInt64) {
    self.collection = collection
    self.index = index
    bin = collection.state.bins[index].section.name
    super.init(name: "\(collection.name)/\(bin)", revision: revision)
  }

  override var rank: Int { 1 }

  public override var sectionCount: Int { isGone ? 0 : 1 }

  public override func section(at index: Int) -> Section {
    collection.state.bins[self.index].section
  }

  override func derive() {
    // After a redefinition the collection has set the change already.
    if net.isEmpty { collection.net.extract(section: UInt32(index), into: &net) }
  }
}
