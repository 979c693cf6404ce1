/// Marks tell what one operation changed from what the others of its commit did.
extension Catalog {
  /// Marks the feeds whose rows the last operation changed, and with them those that will show the change, with a number
  /// from 1 on: `Feed.mark` is that while the commit is published, and of several the largest. O(change).
  public func mark(_ number: Int) {
    guard let feed = pending else { return }
    mark(feed, number)
    guard let collection = feed as? CollectionFeed else { return }
    if !result.sectionsDeleted.isEmpty || !result.sectionsAdded.isEmpty {
      for bin in collection.goneBins + collection.binFeeds { mark(bin, number) }
      return
    }
    for paths in [result.deleted, result.added, result.updated] {
      for path in paths { mark(collection.binFeeds[Int(path.section)], number) }
    }
  }

  private func mark(_ feed: Feed, _ number: Int) {
    if feed.mark == number { return }
    feed.mark = number
    marked.append(feed)
  }
}
