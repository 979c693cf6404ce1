import FeedChange
import FeedJSON

/// The reason why stored content cannot be restored.
public struct RestoreError: Error, Equatable, Sendable {
  public let feed: String
  public let reason: String
}

/// Restores a feed from an image: first the elements, numbered from 0, then the rows of each section in order.
///
/// Filters and sorts are not evaluated again, so the rows have exactly the stored order.
public final class Restorer {
  private let feed: Feed
  private let graph: FeedGraph
  private let store: RowStore
  private var handles: [UInt32] = []
  private var scanner = JSONScanner(maxDepth: Limits.largestDepth)
  private let log = UndoLog()

  /// Returns nil for a feed that stores no rows.
  init?(_ feed: Feed, _ rows: RowStore?, graph: FeedGraph) {
    self.graph = graph
    guard !(feed.kind is FeedListKind), let store = rows else { return nil }
    (self.feed, self.store) = (feed, store)
  }

  /// Makes room for so many elements. Called before the first one.
  public func reserve(_ count: Int) {
    handles.reserveCapacity(count)
    store.reserve(count)
  }

  /// Adds the next element.
  /// - Parameter coming: the text of an element that follows soon; empty for none.
  public func addElement(
    _ text: UnsafeRawBufferPointer, coming: UnsafeRawBufferPointer, arrival: UInt64, changedAt: Instant
  ) throws(RestoreError) {
    store.lookAhead(at: coming)
    let number = handles.count
    let view: JSONView
    do {
      view = try scanner.scan(text)
    } catch {
      throw RestoreError(feed: feed.name, reason: "element \(grouped(number)) is not JSON: \(error.message)")
    }
    do throws(FeedError) {
      let handle = try store.restore(view, at: changedAt, log)
      store.elements.restoreArrival(handle, arrival)
      handles.append(handle)
    } catch {
      throw RestoreError(feed: feed.name, reason: "element \(grouped(number)) is refused: \(error)")
    }
    log.finish()
  }

  public func appendRow(section: Int, element number: UInt32) throws(RestoreError) {
    guard handles.indices.contains(Int(number)), store.sections.indices.contains(section) else {
      throw RestoreError(
        feed: feed.name,
        reason: "a row of section \(section) refers to element \(grouped(number)), which does not exist")
    }
    let handle = handles[Int(number)]
    let rows = store.sections[section].rows
    guard !rows.contains(handle) else {
      throw RestoreError(feed: feed.name, reason: "element \(grouped(number)) is in section \(section) twice")
    }
    rows.insert(handle, at: rows.count, key: store.key(of: handle, section: section))
  }

  /// Finishes the feed: sorts its elements by the time of change and by expiry time.
  public func finish() {
    store.elements.sortByChange()
    store.deadlines?.rebuild()
    store.keyed?.adopt(Pace())
    (store as? ManagedState)?.didRestore()
    graph.sectionsDidChange(of: feed)
    graph.counts.advance()
  }
}

/// Restoring an image, before the first client connects.
extension Catalog {
  /// Defines a stored feed, with its revisions and selections.
  /// - Precondition: the feeds whose rows it shows have been restored.
  public func restore(
    definition: JSONView, given: JSONView, revision: UInt64, selection: [IndexPath], bins: [StoredBin]
  ) throws(FeedError) -> Feed {
    if definition.member("feed")?.string(atMost: FeedName.maxLength) == FeedName.feeds {
      table.list.restore(revision: revision, selection: selection, given: nil)
      return table.list
    }
    commit.isRestoring = true
    defer { commit.isRestoring = false }
    // No limit of one request applies.
    commit.begin(at: commit.moment)
    let live: FeedDefinition
    do throws(FeedError) {
      // Stored feeds are kept even if they exceed the current limits.
      live = try withoutGrowthLimits { () throws(FeedError) in
        let live = try FeedDefinition(parsing: definition, limits: limits)
        try define(live, replace: false, by: definition.member("$owner")?.int.flatMap(UInt32.init(exactly:)))
        return live
      }
    } catch {
      rollBack()
      throw error
    }
    finish()
    // An image of an earlier version has no history of `$feeds`, so no watch of it can resume.
    table.list.forgetPast(at: 0)
    let feed = try feed(named: live.name)
    // It was defined without some of them.
    feed.use(limits)
    let last = try withoutGrowthLimits { () throws(FeedError) in
      // Compiling a definition takes long, and the memory of its filters.
      Self.isText(of: given, in: definition) ? live : try FeedDefinition(parsing: given, limits: limits)
    }
    feed.restore(revision: revision, selection: selection, given: last)
    if let facts = definition.member("$rows") { (feed.kind as? ManagedKind)?.kept.restore(facts: facts) }
    for (bin, stored) in zip(feed.kind.bins, bins) {
      bin.restore(revision: stored.revision, selection: stored.selection, given: nil)
    }
    return feed
  }

  /// Whether a definition, which may be followed by its owner, has the members of another one.
  private static func isText(of given: JSONView, in definition: JSONView) -> Bool {
    let members = given.text.dropLast()
    let rest = definition.text.dropFirst(members.count)
    return definition.text.starts(with: members) && (rest.count == 1 || rest.starts(with: ",\"$owner\":".utf8))
  }

  /// Returns a restorer for the rows of `feed`; nil for a feed that shows rows of other feeds.
  public func restorer(of feed: Feed) -> Restorer? { Restorer(feed, storedRows(of: feed), graph: graph) }

  /// Restores the recorded changes of a feed, or of a bin of a collection. Returns false if the dump is not valid.
  public func restoreHistory(_ dump: HistoryDump, of feed: Feed, bin: Int? = nil) -> Bool {
    let bins = feed.kind.bins
    if let bin, !bins.indices.contains(bin) { return false }
    let owner = bin.map { bins[$0] } ?? feed
    // Later changes are appended behind the last one. A history without changes may begin after the revision (`Feed.beginPast`).
    let latest = dump.records.isEmpty ? owner.revision &+ 1 : owner.revision
    guard let history = History(dump), history.end <= latest else { return false }
    owner.restore(history)
    return true
  }

  /// Finishes restoring: sets the revision and time of the last commit, and publishes the feeds that show other feeds.
  /// - Throws: if a selected row does not exist, or a feed has a later revision.
  public func finishRestoring(revision: UInt64, at moment: Instant) throws(RestoreError) {
    for feed in [table.list] + Array(feeds.values) {
      for part in [feed] + feed.kind.bins where part.revision > revision {
        throw RestoreError(
          feed: feed.name, reason: "the revision \(part.revision) is later than that of the image, \(revision)")
      }
    }
    commit.restore(revision: revision, at: moment)
    if table.list.revision == 0 { table.list.forgetPast(at: revision) }
    for feed in feeds.values.sorted(by: { graph.rank(of: $0.number) < graph.rank(of: $1.number) }) {
      feed.derived?.sourcesWereRestored()
    }
    commit.pace.didRestoreViews()
    for feed in feeds.values where feed.kind.rows?.isTimed == true { commit.noteTimed(feed.number) }
    for feed in [table.list] + Array(feeds.values) {
      // The managed rows that were selected are not stored.
      if !keepsManagedRows && containsManagedRows(feed) { _ = feed.deselectAll() }
      for part in [feed] + feed.kind.bins where !part.hasValidSelection {
        throw RestoreError(
          feed: part.name, reason: "the selection is not a list of rows of the feed in ascending order")
      }
    }
  }
}
