import FeedChange
import FeedJSON

/// Why what was stored cannot be taken up again.
public struct RestoreError: Error, Equatable, Sendable {
  public let feed: String
  public let reason: String
}

/// Builds the content of one feed from what an image stored: elements, which are numbered from 0 as they come, then each
/// section's rows in order. Nothing is judged or sorted again, so the order is exactly what it was.
public final class Restorer {
  private let feed: Feed
  private let store: RowStore
  /// The handles of the elements, by their numbers.
  private var handles: [UInt32] = []
  private var scanner: JSONScanner
  private var log = UndoLog()

  /// Nil for a feed that stores no rows.
  init?(_ feed: Feed, maxDepth: Int) {
    guard let store = feed.rowStore else { return nil }
    self.feed = feed
    self.store = store
    scanner = JSONScanner(maxDepth: maxDepth)
  }

  /// Adds the next element.
  /// - Parameters:
  ///   - arrival: what `ElementText.arrival` was.
  ///   - changedAt: what `ElementText.changedAt` was.
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
        feed: feed.name, reason: "a row of section \(section) names element \(number), which is not there")
    }
    let handle = handles[Int(number)]
    let rows = store.sections[section].rows
    guard !rows.contains(handle) else {
      throw RestoreError(feed: feed.name, reason: "element \(number) stands twice in section \(section)")
    }
    rows.insert(handle, at: rows.count, key: store.key(of: handle, section: section))
  }

  /// Ends the work: puts the order of change right.
  public func finish() {
    store.elements.sortByChange()
    feed.structureDidChange()
  }
}

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
