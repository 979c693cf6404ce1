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
