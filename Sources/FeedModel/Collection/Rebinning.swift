import FeedChange
import FeedJSON

/// Copies the elements of a collection to a new definition, and computes the change from the old bins to the new ones.
///
/// Elements are copied in the order of arrival, so unsorted bins keep it. Bins with the same name are the same section
/// if they kept their order among each other; other bins are deleted and added. If several elements get the same
/// identity under the new definition, the last one is kept, and its rows. O(n log n).
struct Rebinning {
  let state: CollectionState
  private(set) var change = Change()
  private let old: CollectionState
  /// The handle in the new state for every old handle, or `ElementTable.none`.
  private var successors: [UInt32] = []
  /// Rows that moved within their bin: the old path, and the index in the list of added rows.
  private var moved: [(from: IndexPath, added: UInt32)] = []

  init(
    _ old: CollectionState, _ content: CollectionDefinition, feed: String, limits: Limits, seed: UInt64,
    _ request: UndoLog
  ) throws(FeedError) {
    self.old = old
    state = CollectionState(feed: feed, definition: content, limits: limits, seed: seed)
    try copyElements(request)
    compareSections()
  }

  /// - Parameter request: the log of the commit, with the filter steps that its request may still take.
  private mutating func copyElements(_ request: UndoLog) throws(FeedError) {
    // If this fails, the whole new state is discarded, so a log for one element at a time is enough.
    let log = UndoLog()
    log.allow(steps: request.stepsLeft)
    var scanner = JSONScanner(maxDepth: state.limits.maxDepth)
    /// The old handle of the element under each new handle.
    var sources: [UInt32] = []
    let handles = old.elements.inOrderOfArrival()
    successors = [UInt32](repeating: ElementTable.none, count: Int(handles.max() ?? 0) + 1)
    state.deferRows()
    for (place, handle) in handles.enumerated() {
      let record = old.elements.records[Int(handle)]
      guard let view = try? scanner.scan(record.text.text) else { continue }
      defer { log.finish() }
      try state.update(view, index: place, at: record.text.changedAt, log)
      guard let successor = try state.find(identityOf: view, index: place) else { continue }
      while sources.count <= Int(successor) { sources.append(ElementTable.none) }
      sources[Int(successor)] = handle
    }
    request.allow(steps: log.stepsLeft)
    state.elements.sortByChange()
    state.placeRows()
    evict(log)
    log.finish()
    for (successor, source) in sources.enumerated() where source != ElementTable.none {
      successors[Int(source)] = UInt32(successor)
    }
  }

  /// Evicts elements that the new definition does not retain.
  private func evict(_ log: UndoLog) {
    guard let most = state.definition.retain?.count else { return }
    let excess = state.elements.count - most
    if excess > 0 { state.remove(state.elements.longestUnchanged(excess), log) }
  }

  private mutating func compareSections() {
    let names = Dictionary(uniqueKeysWithValues: state.definition.bins.enumerated().map { ($1.name, $0) })
    let common = old.definition.bins.enumerated().compactMap { before, bin in names[bin.name].map { (before, $0) } }
    let kept = longestIncreasing(common.map(\.1)).map { common[$0] }
    let keptBefore = Set(kept.map(\.0))
    let keptAfter = Set(kept.map(\.1))
    change.sectionsDeleted = old.bins.indices.filter { !keptBefore.contains($0) }.map(UInt32.init)
    let predecessors = Dictionary(uniqueKeysWithValues: kept.map { ($1, $0) })
    for after in state.bins.indices {
      if !keptAfter.contains(after) {
        change.sectionsAdded.append(SectionAddition(at: UInt32(after), name: state.bins[after].section.name))
      }
      compareRows(predecessors[after], after)
    }
    pairMoves()
  }

  /// Pairs the moved rows with their indices in the finished list of deleted rows. Both lists ascend, because the
  /// sections that stay keep their order.
  private mutating func pairMoves() {
    var deleted = 0
    change.moves.reserveCapacity(moved.count)
    for (from, added) in moved {
      while change.deleted[deleted] < from { deleted += 1 }
      change.moves.append(Move(deleted: UInt32(deleted), added: added))
    }
  }

  /// Adds the changes of the rows of the new bin `after`. `before` is the index of the same bin in the old definition,
  /// if it existed.
  private mutating func compareRows(_ before: Int?, _ after: Int) {
    let rows = state.bins[after].section.rows
    var places: [Int] = []
    var sources: [Int] = []
    if let before {
      let placeOf = rows.rowsByItem()
      var row = 0
      old.bins[before].section.rows.forEach(in: 0..<old.bins[before].section.count) { handle in
        let successor = successors[Int(handle)]
        if successor < placeOf.count, placeOf[Int(successor)] >= 0 {
          places.append(placeOf[Int(successor)])
          sources.append(row)
        } else {
          change.deleted.append(IndexPath(section: UInt32(before), row: UInt32(row)))
        }
        row += 1
      }
    }
    let staying = longestIncreasing(places)
    var stays = [Bool](repeating: false, count: rows.count)
    for index in staying { stays[places[index]] = true }
    var placeInAdded = [UInt32](repeating: 0, count: stays.count)
    for row in stays.indices where !stays[row] {
      placeInAdded[row] = UInt32(change.added.count)
      change.added.append(IndexPath(section: UInt32(after), row: UInt32(row)))
    }
    if let before, staying.count < places.count {
      for (place, source) in zip(places, sources) where !stays[place] {
        let from = IndexPath(section: UInt32(before), row: UInt32(source))
        change.deleted.append(from)
        moved.append((from, placeInAdded[place]))
      }
      change.deleted.sort()
    }
    for index in staying where differs(before, sources[index], after, places[index]) {
      change.updated.append(IndexPath(section: UInt32(after), row: UInt32(places[index])))
    }
  }

  private func differs(_ before: Int?, _ source: Int, _ after: Int, _ place: Int) -> Bool {
    guard let before else { return false }
    let was = old.bins[before].section.row(at: source)
    let now = state.bins[after].section.row(at: place)
    return !CollectionState.equal(was.text, now.text) || !CollectionState.equal(was.type, now.type)
  }
}
