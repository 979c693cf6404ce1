import FeedChange
import FeedJSON

/// The reason why stored content cannot be restored.
public struct RestoreError: Error, Equatable, Sendable {
  public let feed: String
  public let reason: String
}

/// Restores the content of one feed from an image: first the elements, numbered from 0, then the rows of each section in
/// order.
///
/// Filters and sorts are not evaluated again, so the rows have exactly the stored order.
public final class Restorer {
  private let feed: Feed
  private let store: RowStore
  /// The handle of each element, by its number.
  private var handles: [UInt32] = []
  private var scanner: JSONScanner
  private var log = UndoLog()

  /// Returns nil for a feed that stores no rows.
  init?(_ feed: Feed, maxDepth: Int) {
    guard let store = feed.rowStore else { return nil }
    self.feed = feed
    self.store = store
    scanner = JSONScanner(maxDepth: maxDepth)
  }

  /// Adds the next element.
  /// - Parameters:
  ///   - arrival: the stored `ElementText.arrival`.
  ///   - changedAt: the stored `ElementText.changedAt`.
  public func addElement(
    _ text: UnsafeRawBufferPointer, arrival: UInt64, changedAt: Instant
  ) throws(RestoreError) {
    let number = handles.count
    let view: JSONView
    do {
      view = try scanner.scan(text)
    } catch {
      throw RestoreError(feed: feed.name, reason: "element \(number) is not JSON: \(error.message)")
    }
    do throws(FeedError) {
      let handle = try store.restore(view, at: changedAt, &log)
      store.elements.restoreArrival(handle, arrival)
      handles.append(handle)
    } catch {
      throw RestoreError(feed: feed.name, reason: "element \(number) is refused: \(error)")
    }
    log.finish()
  }

  /// Appends a row to a section.
  public func appendRow(section: Int, element number: UInt32) throws(RestoreError) {
    guard handles.indices.contains(Int(number)), store.sections.indices.contains(section) else {
      throw RestoreError(
        feed: feed.name, reason: "a row of section \(section) refers to element \(number), which does not exist")
    }
    let handle = handles[Int(number)]
    let rows = store.sections[section].rows
    guard !rows.contains(handle) else {
      throw RestoreError(feed: feed.name, reason: "element \(number) is in section \(section) twice")
    }
    rows.insert(handle, at: rows.count, key: store.key(of: handle, section: section))
  }

  /// Finishes the feed: sorts its elements by the time of change.
  public func finish() {
    store.elements.sortByChange()
    feed.structureDidChange()
  }
}

/// Restoring an image, before the first client connects.
extension Catalog {
  /// Defines a stored feed again, with its revisions and selection.
  ///
  /// - Precondition: the feeds that it contains are restored already.
  public func restore(
    definition: JSONView, given: JSONView, revision: UInt64, binRevisions: [UInt64], selection: [IndexPath]
  ) throws(FeedError) -> Feed {
    // Stored feeds are kept even if they exceed the limits of this run.
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

  /// Returns a restorer for the rows of `feed`; nil for a feed that contains the rows of other feeds.
  public func restorer(of feed: Feed) -> Restorer? {
    Restorer(feed, maxDepth: limits.maxDepth)
  }

  /// Restores the recent changes of a feed, or of a bin of a collection. Returns false if the dump is not valid.
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

  /// Finishes restoring: sets the revision and time of the last commit, and updates the feeds that contain other feeds.
  public func finishRestoring(revision: UInt64, at moment: Instant) {
    self.revision = revision
    now = moment
    shape.version &+= 1
    for feed in feeds.values { feed.contentWasRestored() }
  }
}
