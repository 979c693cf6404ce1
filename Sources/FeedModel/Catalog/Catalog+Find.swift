import FeedChange
import FeedJSON

extension Catalog {
  /// The element with an identity and where it stands in `feed`, a collection or one of its bins; nil when it has no such
  /// element. O(bins + log n for each).
  ///
  /// - Throws: `wrongKind` when the feed's elements have no identity, `noIdentity` when `id` is not one.
  public func find(_ id: JSONView, in feed: Feed) throws(FeedError) -> (row: Row, places: [IndexPath])? {
    if let collection = feed as? CollectionFeed {
      guard let handle = try collection.state.find(id, index: 0, isID: true) else { return nil }
      return (collection.state.row(of: handle), collection.state.places(of: handle))
    }
    if let managed = feed as? ManagedFeed {
      guard let handle = try managed.state.find(id, index: 0) else { return nil }
      return (managed.state.row(of: handle), managed.state.places(of: handle))
    }
    guard let bin = feed as? BinFeed else {
      throw .wrongKind(feed: feed.name, kind: feed.kind, wanted: "collection")
    }
    let state = bin.collection.state
    guard let handle = try state.find(id, index: 0, isID: true), let row = bin.rows.row(of: handle) else {
      return nil
    }
    return (state.row(of: handle), [IndexPath(section: 0, row: UInt32(row))])
  }
}
