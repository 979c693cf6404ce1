import FeedChange
import FeedJSON

/// Taking up what an image stored, before the first client connects.
extension Catalog {
  /// Defines a feed again as it stood, with its revisions and selection. Feeds that it shows must be there already.
  public func restore(
    definition: JSONView, given: JSONView, revision: UInt64, binRevisions: [UInt64], selection: [IndexPath]
  ) throws(FeedError) -> Feed {
    // What is there stays, even if it is more than a later run allowed.
    let kept = limits
    (limits.maxFeeds, limits.maxBins, limits.maxSections, limits.maxRepeats) = (.max, .max, .max, .max)
    defer { limits = kept }
    begin(at: now)
    let live = try FeedDefinition(parsing: definition, limits: limits)
    do throws(FeedError) {
      try define(live, replace: false)
    } catch {
      rollBack()
      throw error
    }
    commit()
    let feed = try feed(named: live.name)
    feed.given = try FeedDefinition(parsing: given, limits: limits)
    feed.revision = revision
    feed.history?.restart(at: revision)
    feed.selection = selection
    if let collection = feed as? CollectionFeed {
      for (bin, revision) in zip(collection.binFeeds, binRevisions) { bin.revision = revision }
    }
    return feed
  }

  /// What fills a feed with its stored rows; nil for a feed that shows the rows of others.
  public func restorer(of feed: Feed) -> Restorer? {
    Restorer(feed, maxDepth: limits.maxDepth)
  }

  /// Takes up the recent changes of a feed (`bin` nil) or of one of a collection's bins. Returns whether they hold together.
  public func restoreHistory(_ dump: HistoryDump, of feed: Feed, bin: Int? = nil) -> Bool {
    guard let history = History(dump) else { return false }
    if let bin {
      guard let bins = (feed as? CollectionFeed)?.binFeeds, bins.indices.contains(bin) else { return false }
      bins[bin].history = history
    } else {
      feed.history = history
    }
    return true
  }

  /// Ends restoring: the next commit follows `revision`, its steps come after `moment`, and providers know what their
  /// children show.
  public func finishRestoring(revision: UInt64, at moment: Instant) {
    self.revision = revision
    now = moment
    shape.version &+= 1
    for feed in feeds.values { feed.contentWasRestored() }
  }
}
