import FeedChange
import FeedJSON

/// One bin of a collection as a feed of its own, `collection/bin`, with one section.
///
/// The collection is its only source, at place 0.
final class BinKind: DerivedKind, SingleSectionKind {
  private var state: CollectionState
  /// The index of the bin in the collection: now, and after the last commit (nil before the first commit).
  private var index: Int
  private var publishedIndex: Int?
  /// The number of rows before the open commit, if that redefined the collection; otherwise nil.
  private var publishedCount: Int?

  init(_ state: CollectionState, index: Int, isPublished: Bool) {
    self.state = state
    self.index = index
    publishedIndex = isPublished ? index : nil
  }

  /// Points the bin to the new state of a redefined collection.
  func show(_ state: CollectionState, index: Int) {
    self.state = state
    self.index = index
  }

  /// Records the number of rows before the open commit, which is going to redefine the collection.
  ///
  /// - Parameter difference: the number of rows that the commit has added.
  func willRebin(difference: Int) { publishedCount = shown.count - difference }

  /// Discards what is known for a commit that redefines the collection, which has ended.
  func didRebin() { publishedCount = nil }

  var shown: RowSection { state.bins[index].section }

  var wireName: String { "bin" }
  var definedAs: FeedDefinition.Content? { nil }
  func makeSnapshots() -> [SectionsSnapshot] { [SectionsSnapshot(shown.makeSnapshot())] }
  var hasTypes: Bool { state.definition.type != nil }
  var rows: RowStore? { nil }

  func redefine(_ definition: FeedDefinition, of feed: Feed, in catalog: Catalog) throws(FeedError) {
    throw conflict(of: feed, with: definition)
  }

  /// Returns the element with an identity and its place; nil if this bin does not contain it.
  func find(_ id: JSONView) throws(FeedError) -> (row: Row, places: [IndexPath])? {
    guard let handle = try state.find(id, index: 0, isID: true), let row = shown.rows.row(of: handle) else {
      return nil
    }
    return (state.row(of: handle), [IndexPath(section: 0, row: UInt32(row))])
  }

  var sources: [(place: Int, feed: Feed)] { [] }
  func shows(_ place: Int) -> Bool { true }
  func origin(of path: IndexPath) -> (feed: Feed, path: IndexPath)? { nil }
  func offset(ofSectionsAt place: Int) -> Int? { nil }
  var publishedSectionCount: Int { publishedIndex == nil ? 0 : 1 }

  func derive(_ changes: borrowing SourceChanges, into change: inout Change) {
    let former = publishedIndex
    publishedIndex = index
    guard let former else { return }
    var derived = Change()
    changes.forEach { _, _, source in follow(source, from: former, into: &derived) }
    swap(&change, &derived)
  }

  /// Stores in `change` what a change of the collection does to the bin, which had index `former`.
  private func follow(_ source: borrowing Change, from former: Int, into change: inout Change) {
    if source.keepsSection(from: former, as: index) {
      source.extract(before: UInt32(former), after: UInt32(index), into: &change)
    } else {
      // The collection lists all rows, because it has no other way to move the bin among its neighbours.
      assert(publishedCount != nil, "a bin moved, and the collection was not redefined")
      source.extractReplaced(before: UInt32(former), after: UInt32(index), rows: publishedCount ?? 0, into: &change)
    }
  }

  /// Follows a change of the collection without deriving that of the bin. Returns whether the bin changed. O(log size), or as
  /// long as `derive` if the bin moved among its neighbours.
  func follow(_ source: borrowing Change) -> Bool {
    let former = publishedIndex
    publishedIndex = index
    guard let former else { return false }
    if source.keepsSection(from: former, as: index) {
      return source.concerns(before: UInt32(former), after: UInt32(index))
    }
    var change = Change()
    follow(source, from: former, into: &change)
    return !change.isEmpty
  }

  var stepsPerRow: Int { 0 }
  func sourceSectionsDidChange() -> Bool { false }
  func sourcesWereRestored() { publishedIndex = index }
}
