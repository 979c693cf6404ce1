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
    (self.state, self.index) = (state, index)
    publishedIndex = isPublished ? index : nil
  }

  func show(_ state: CollectionState, index: Int) { (self.state, self.index) = (state, index) }

  /// Records the number of rows before the open commit, which is going to redefine the collection.
  /// - Parameter difference: the number of rows that the commit has added.
  func willRebin(difference: Int) { publishedCount = shown.count - difference }

  /// Discards what is known for a commit that redefines the collection, which has ended.
  func didRebin() { publishedCount = nil }
  var shown: RowSection { state.bins[index].section }
  var wireName: String { "bin" }
  var definedAs: FeedDefinition.Content? { nil }
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
  func origins(of rows: [TracedRow], _ pace: Pace) -> [(source: Feed, rows: [TracedRow])] { [] }
  var publishedSectionCount: Int { publishedIndex == nil ? 0 : 1 }

  func derive(_ changes: borrowing SourceChanges, into change: inout Change) {
    let former = publishedIndex
    publishedIndex = index
    guard let former else { return }
    let pace = changes.pace
    var derived = Change()
    changes.forEach { _, _, source in
      if source.keepsSection(from: former, as: index) {
        source.extract(before: UInt32(former), after: UInt32(index), into: &derived)
      } else {
        derived = changeOfReordered(source, from: former, pace ?? Pace())
      }
    }
    swap(&change, &derived)
  }

  /// Follows a change of the collection without deriving that of the bin. Returns whether the bin changed. O(log size), or
  /// O(n log n) for n rows of a bin that moved among its neighbours.
  func follow(_ source: borrowing Change, _ pace: Pace) -> Bool {
    let former = publishedIndex
    publishedIndex = index
    guard let former else { return false }
    if source.keepsSection(from: former, as: index) {
      return source.concerns(before: UInt32(former), after: UInt32(index))
    }
    return !changeOfReordered(source, from: former, pace).isEmpty
  }

  /// The change of the bin, which had index `former`, if a change of the collection moves it among its neighbours. That lists
  /// all rows as deleted and added, because it has no other way to do so.
  private func changeOfReordered(_ source: borrowing Change, from former: Int, _ pace: Pace) -> Change {
    assert(publishedCount != nil, "a bin moved, and the collection was not redefined")
    let entries = source.added.range(of: UInt32(index))
    /// For each row before, its present row; -1 if it is gone.
    var rows = [Int](repeating: -1, count: publishedCount ?? 0, pace)
    var changed: Set<Int> = []
    var inPlace = 0
    for (place, known) in source.transfers(from: UInt32(former)).enumerated() {
      if place & 31 == 31 { pace.spend() }
      guard entries.contains(Int(known.added)) else { continue }
      let row = Int(known.added) - entries.lowerBound
      rows[Int(known.from.row)] = row
      if !known.keepsElement { changed.insert(row) }
      if row == known.from.row { inPlace += 1 }
    }
    if inPlace == rows.count && inPlace == entries.count && changed.isEmpty { return .empty }
    return .between(rows, shown.count, pace) { !changed.contains($0) }
  }

  var stepsPerRow: Int { 0 }
  func sourcesWereRestored() { publishedIndex = index }
}
