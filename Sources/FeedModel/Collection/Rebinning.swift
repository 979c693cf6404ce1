import FeedChange
import FeedJSON

/// Copies the elements of a collection to a new definition, and computes the change from the old bins to the new ones.
///
/// Elements are copied in the order of arrival, so unsorted bins keep it. If several elements get the same identity under the
/// new definition, the last one is kept, and its rows. O(n log n).
struct Rebinning {
  let state: CollectionState
  let change: Change

  init(
    _ old: CollectionState, _ content: CollectionDefinition, feed: String, limits: Limits, seed: UInt64,
    _ request: UndoLog
  ) throws(FeedError) {
    state = CollectionState(feed: feed, definition: content, limits: limits, seed: seed)
    let successors = try Self.copyElements(of: old, to: state, request)
    change = SectionComparison(of: old, with: state, successors, request.pace).change
  }

  /// Copies the elements. Returns the handle in the new state for every old handle, or `ElementTable.none`.
  private static func copyElements(
    of old: CollectionState, to state: CollectionState, _ request: UndoLog
  ) throws(FeedError) -> [UInt32] {
    let pace = request.pace
    // If this fails, the whole new state is discarded, so a log for one element at a time is enough.
    let log = UndoLog(pace: request.pace)
    log.rules = request.rules
    log.allow(steps: request.stepsLeft)
    // The steps count although the new state may be refused.
    defer { request.didUse(steps: request.stepsLeft &- log.stepsLeft) }
    var scanner = JSONScanner(maxDepth: Limits.largestDepth)
    /// The old handle of the element under each new handle.
    var sources: [UInt32] = []
    state.elements.discarded = old.elements.discarded
    let handles = old.elements.inOrderOfArrival(pace)
    var successors = [UInt32](repeating: ElementTable.none, count: old.elements.endHandle, pace)
    state.deferRows(count: handles.count, pace)
    sources.reserveCapacity(handles.count)
    for (place, handle) in handles.enumerated() {
      // Also for an element that no bin accepts.
      pace.spend(2 &+ state.bins.count / 4)
      let text = old.elements.text(of: handle)
      let view: JSONView
      do throws(JSONError) {
        view = try scanner.scan(text.text, pace)
      } catch {
        throw .internalError(reason: "a stored element cannot be read: \(error.message)")
      }
      defer { log.finish() }
      try state.upsertElement(view, index: place, at: text.changedAt, log)
      guard let successor = try state.find(identityOf: view, index: place) else { continue }
      while sources.count <= Int(successor) { sources.append(ElementTable.none) }
      sources[Int(successor)] = handle
    }
    state.elements.sortByChange(pace)
    state.placeRows(pace)
    // Elements that the new definition does not retain.
    let excess = state.excess
    if !excess.isEmpty { state.remove(excess, log) }
    // Before the sections are compared: each element may have one of its own.
    if let keyed = state.keyed { try keyed.checkCount(state.limits) }
    _ = state.keyed?.endOperation()
    log.finish()
    for (successor, source) in sources.enumerated() where source != ElementTable.none {
      successors[Int(source)] = UInt32(successor)
      if successor & 63 == 0 { pace.spend() }
    }
    return successors
  }
}

/// The change from the sections of a collection to those of its redefined copy.
///
/// Sections with the same name stay if they kept their order; others are deleted and added. O(n log n).
struct SectionComparison {
  private(set) var change = Change()
  private let old, new: CollectionState
  /// The handle in the new state for every old handle, or `ElementTable.none`.
  private let successors: [UInt32]
  private let pace: Pace
  /// For each old section, the index in `change.deleted` of its first row; nil if it is deleted.
  private var firstDeleted: [Int?]
  /// For each row of the new state, by its index in `change.added`, whether it is paired with an old row.
  private var isPaired: [Bool] = []
  /// Rows that left their section, by the new handles of their elements.
  private var left: [(handle: UInt32, old: UInt32, from: IndexPath)] = []

  init(of old: CollectionState, with new: CollectionState, _ successors: [UInt32], _ pace: Pace) {
    (self.old, self.new, self.successors, self.pace) = (old, new, successors, pace)
    var (olds, news) = (old.sectionRanges(pace), new.sectionRanges(pace))
    firstDeleted = [Int?](repeating: nil, count: olds.count, pace)
    let common = Self.sectionsWithOneName(olds, news, pace)
    listRows(olds, news, common)
    pairRows(olds, news, common)
    pairCrossings(news)
    change.moves.sort(pace) { $0.deleted < $1.deleted }
    change.transfers.sort(pace) { $0.from < $1.from }
    change = change.normalizingMoves { pace.didCompareMoves() }
    // Each range may be the last that holds its name.
    while olds.popLast() != nil { pace.spend() }
    while news.popLast() != nil { pace.spend() }
  }

  /// The old and the new sections with the same name, in the order of the old ones. Of several with one name, only the
  /// first counts: `"1"` and `1` name sections alike.
  private static func sectionsWithOneName(
    _ olds: [SectionRange], _ news: [SectionRange], _ pace: Pace
  ) -> [(before: Int, after: Int)] {
    // Often only one of the two definitions has many sections.
    let (few, many) = olds.count < news.count ? (olds, news) : (news, olds)
    var places = [ExactText: Int](minimumCapacity: few.count)
    for place in few.indices {
      pace.spend()
      let name = few[place].name.exact
      if places[name] == nil { places[name] = place }
    }
    var pairs: [(before: Int, after: Int)] = []
    for place in many.indices {
      pace.spend()
      guard let other = places.removeValue(forKey: many[place].name.exact) else { continue }
      pairs.append(olds.count < news.count ? (other, place) : (place, other))
      if places.isEmpty { break }
    }
    return pairs.sorted { $0.before < $1.before }
  }

  // MARK: Rows

  /// Lists all sections that do not stay, all rows of those that stay as deleted, and all new rows as added.
  private mutating func listRows(
    _ olds: [SectionRange], _ news: [SectionRange], _ common: [(before: Int, after: Int)]
  ) {
    var stays = [Bool](repeating: false, count: news.count, pace)
    for pair in longestIncreasing(common.map(\.after)) {
      firstDeleted[common[pair].before] = 0
      stays[common[pair].after] = true
    }
    // An array that grows copies everything at once.
    let (before, after) = (olds.reduce(0) { $0 + $1.count }, news.reduce(0) { $0 + $1.count })
    change.deleted.reserveCapacity(before)
    change.added.reserveCapacity(after)
    left.reserveCapacity(before)
    change.moves.reserveCapacity(min(before, after))
    if firstDeleted.contains(nil) { change.transfers.reserveCapacity(min(before, after)) }
    isPaired = [Bool](repeating: false, count: after, pace)
    for (index, section) in olds.enumerated() {
      pace.spend()
      if firstDeleted[index] == nil {
        change.sectionsDeleted.append(UInt32(index))
      } else {
        firstDeleted[index] = change.deleted.count
        change.deleted.append(rows: section.count, of: index, pace)
      }
    }
    for (index, section) in news.enumerated() {
      pace.spend()
      if !stays[index] {
        change.sectionsAdded.append(SectionAddition(at: UInt32(index), name: section.name, isByValue: new.keyed != nil))
      }
      change.added.append(rows: section.count, of: index, pace)
    }
  }

  /// Pairs the rows of each section with those of the new one with the same name.
  private mutating func pairRows(
    _ olds: [SectionRange], _ news: [SectionRange], _ common: [(before: Int, after: Int)]
  ) {
    var former = [Int](repeating: -1, count: news.count, pace)
    var returns = [Bool](repeating: false, count: olds.count, pace)
    for pair in common {
      former[pair.after] = pair.before
      returns[pair.before] = true
    }
    for (index, section) in olds.enumerated() where !returns[index] {
      forEachRow(of: section, index) { $0.leave($1, $2) }
    }
    /// The row of each new handle in the tree of the section; `UInt32.max` if it has none.
    var placeOf: [UInt32] = []
    var firstAdded = 0
    for (index, section) in news.enumerated() {
      pace.spend()
      if index == 0 || section.rows !== news[index - 1].rows {
        placeOf = section.rows.rowsByItem(upTo: new.elements.endHandle, pace)
      }
      if former[index] >= 0 {
        forEachRow(of: olds[former[index]], former[index]) { comparison, handle, path in
          let successor = Int(comparison.successors[Int(handle)])
          guard successor < placeOf.count, section.range.contains(Int(placeOf[successor])) else {
            return comparison.leave(handle, path)
          }
          comparison.pair(handle, path, UInt32(firstAdded + Int(placeOf[successor]) - section.start))
        }
      }
      firstAdded += section.count
    }
  }

  /// Calls `body` with the handles and paths of the rows of an old section.
  private mutating func forEachRow(
    of section: SectionRange, _ index: Int, _ body: (inout SectionComparison, UInt32, IndexPath) -> Void
  ) {
    var row: UInt32 = 0
    section.rows.forEach(in: section.range) { handle in
      body(&self, handle, IndexPath(section: UInt32(index), row: row))
      row += 1
      if row & 15 == 0 { pace.spend() }
    }
  }

  private mutating func leave(_ handle: UInt32, _ path: IndexPath) {
    let successor = successors[Int(handle)]
    if successor != ElementTable.none { left.append((successor, handle, path)) }
  }

  /// Pairs the row of an old element with an entry of `change.added`.
  private mutating func pair(_ handle: UInt32, _ path: IndexPath, _ added: UInt32) {
    isPaired[Int(added)] = true
    let keepsElement = !differs(handle)
    if let first = firstDeleted[Int(path.section)] {
      change.moves.append(Move(deleted: UInt32(first) + path.row, added: added, keepsElement: keepsElement))
    } else {
      change.transfers.append(Transfer(from: path, added: added, keepsElement: keepsElement))
    }
  }

  /// Pairs the rows of elements that left one section and entered one other (`Protocol/README.md`, "The change").
  private mutating func pairCrossings(_ news: [SectionRange]) {
    if left.isEmpty { return }
    var crossings = [Crossing](repeating: Crossing(), count: new.elements.endHandle, pace)
    for (place, row) in left.enumerated() {
      crossings[Int(row.handle)].didLeave(UInt32(truncatingIfNeeded: place))
      if place & 63 == 63 { pace.spend() }
    }
    var added = 0
    for section in news {
      pace.spend()
      section.rows.forEach(in: section.range) { handle in
        if !isPaired[added] { crossings[Int(handle)].didEnter(UInt32(truncatingIfNeeded: added)) }
        added += 1
        if added & 31 == 0 { pace.spend() }
      }
    }
    for (place, row) in left.enumerated() {
      if place & 31 == 31 { pace.spend() }
      if let (_, added) = crossings[Int(row.handle)].pair { pair(row.old, row.from, added) }
    }
  }

  /// Whether the type of an element differs. Its text is a copy.
  private func differs(_ handle: UInt32) -> Bool {
    if old.definition.type == new.definition.type { return false }
    let was = old.elements.text(of: handle)
    let now = new.elements.text(of: successors[Int(handle)])
    assert(CollectionState.equal(was.text, now.text), "a copy of an element differs")
    return !CollectionState.equal(was.type, now.type)
  }
}

/// The rows of one section: a range of the rows of a tree.
private struct SectionRange {
  let name: String
  let rows: PositionTree
  let start: Int
  let count: Int

  var range: Range<Int> { start..<(start + count) }
}

extension CollectionState {
  fileprivate func sectionRanges(_ pace: Pace) -> [SectionRange] {
    guard let keyed else {
      return bins.map { SectionRange(name: $0.section.name, rows: $0.section.rows, start: 0, count: $0.section.count) }
    }
    var ranges: [SectionRange] = []
    ranges.reserveCapacity(keyed.count)
    var start = 0
    keyed.forEach { name, count in
      let name = String(decoding: name, as: UTF8.self)
      ranges.append(SectionRange(name: name, rows: keyed.flat.rows, start: start, count: count))
      start += count
      pace.spend()
    }
    return ranges
  }
}
