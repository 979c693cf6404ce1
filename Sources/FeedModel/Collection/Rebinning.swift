import FeedChange
import FeedJSON

/// Copies the elements of a collection to a new definition, and computes the change from the old bins to the new ones.
///
/// Elements are copied in the order of arrival, so unsorted bins keep it. Sections with the same name are the same section
/// if they kept their order among each other; other sections are deleted and added. If several elements get the same
/// identity under the new definition, the last one is kept, and its rows. O(n log n).
struct Rebinning {
  let state: CollectionState
  private(set) var change = Change()
  private let old: CollectionState
  /// The handle in the new state for every old handle, or `ElementTable.none`.
  private var successors: [UInt32] = []
  /// Rows that moved: the old path, the index in the list of added rows, and whether the type stays.
  private var moved: [(from: IndexPath, added: UInt32, keepsType: Bool)] = []
  /// Rows that left their section, by the new handles of their elements, and whether it was deleted.
  private var left: [(handle: UInt32, old: UInt32, from: IndexPath, isGone: Bool)] = []
  /// Rows that entered a section which they were not in, by the handles of their elements.
  private var entered: [(handle: UInt32, added: UInt32)] = []
  private let pace: Pace

  init(
    _ old: CollectionState, _ content: CollectionDefinition, feed: String, limits: Limits, seed: UInt64,
    _ request: UndoLog
  ) throws(FeedError) {
    self.old = old
    pace = request.pace
    state = CollectionState(feed: feed, definition: content, limits: limits, seed: seed)
    try copyElements(request)
    compareSections()
  }

  /// - Parameter request: the log of the commit, with the filter steps that its request may still take.
  private mutating func copyElements(_ request: UndoLog) throws(FeedError) {
    // If this fails, the whole new state is discarded, so a log for one element at a time is enough.
    let log = UndoLog(pace: request.pace)
    log.allow(steps: request.stepsLeft)
    // The steps count although the new state may be refused.
    defer { request.didUse(steps: request.stepsLeft &- log.stepsLeft) }
    var scanner = JSONScanner(maxDepth: state.limits.maxDepth)
    /// The old handle of the element under each new handle.
    var sources: [UInt32] = []
    state.elements.discarded = old.elements.discarded
    let handles = old.elements.inOrderOfArrival(pace)
    successors = [UInt32](repeating: ElementTable.none, count: old.elements.endHandle, pace)
    state.deferRows(count: handles.count, pace)
    sources.reserveCapacity(handles.count)
    for (place, handle) in handles.enumerated() {
      // Also for an element that no bin accepts.
      pace.spend(2 &+ state.bins.count / 4)
      let record = old.elements.records[Int(handle)]
      guard let view = try? scanner.scan(record.text.text, pace) else { continue }
      defer { log.finish() }
      try state.update(view, index: place, at: record.text.changedAt, log)
      guard let successor = try state.find(identityOf: view, index: place) else { continue }
      while sources.count <= Int(successor) { sources.append(ElementTable.none) }
      sources[Int(successor)] = handle
    }
    state.elements.sortByChange(pace)
    state.placeRows(pace)
    evict(log)
    // Before the sections are compared: each element may have one of its own.
    if let keyed = state.keyed { try keyed.checkCount(state.limits) }
    _ = state.keyed?.endOperation()
    log.finish()
    for (successor, source) in sources.enumerated() where source != ElementTable.none {
      successors[Int(source)] = UInt32(successor)
      if successor & 63 == 0 { pace.spend() }
    }
  }

  /// Evicts elements that the new definition does not retain.
  private func evict(_ log: UndoLog) {
    let excess = state.excess
    if !excess.isEmpty { state.remove(excess, log) }
  }

  private mutating func compareSections() {
    var (olds, news) = (old.sectionRanges(pace), state.sectionRanges(pace))
    let common = Self.sectionsWithOneName(olds, news, pace)
    let kept = longestIncreasing(common.map(\.after)).map { common[$0] }
    let keptBefore = Set(kept.map(\.before))
    change.sectionsDeleted = olds.indices.filter { !keptBefore.contains($0) }.map(UInt32.init)
    // An array that grows copies everything at once.
    let (before, after) = (olds.reduce(0) { $0 + $1.count }, news.reduce(0) { $0 + $1.count })
    change.deleted.reserveCapacity(before)
    change.added.reserveCapacity(after)
    entered.reserveCapacity(after)
    left.reserveCapacity(before)
    if kept.count < common.count {
      change.transfers.reserveCapacity(min(before, after))
    } else if !kept.isEmpty {
      moved.reserveCapacity(min(before, after))
    }
    // The sections that are not in both definitions, or not in the same order.
    var reordered = [Int](repeating: -1, count: news.count, pace)
    for pair in common where !keptBefore.contains(pair.before) { reordered[pair.after] = pair.before }
    let known = Set(common.map(\.before))
    for section in olds.indices where !known.contains(section) { leave((section, olds[section])) }
    var placeOf: [UInt32] = []
    var next = 0
    for after in news.indices {
      if after == 0 || news[after].rows !== news[after - 1].rows {
        placeOf = news[after].rows.rowsByItem(upTo: state.elements.endHandle, pace)
      }
      if next < kept.count, kept[next].after == after {
        compareRows((kept[next].before, olds[kept[next].before]), (after, news[after]), placeOf)
        next += 1
      } else {
        change.sectionsAdded.append(SectionAddition(at: UInt32(after), name: news[after].name))
        let before = reordered[after]
        addRows((after, news[after]), since: before < 0 ? nil : (before, olds[before]), placeOf)
      }
    }
    if !moved.isEmpty { change.deleted.sort(pace, by: <) }
    pairEntered()
    pairMoves()
    change.transfers.sort(pace) { $0.from < $1.from }
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
    var places = [String: Int](minimumCapacity: few.count)
    for place in few.indices {
      pace.spend()
      if places[few[place].name] == nil { places[few[place].name] = place }
    }
    var pairs: [(before: Int, after: Int)] = []
    for place in many.indices {
      pace.spend()
      guard let other = places.removeValue(forKey: many[place].name) else { continue }
      pairs.append(olds.count < news.count ? (other, place) : (place, other))
      if places.isEmpty { break }
    }
    return pairs.sorted { $0.before < $1.before }
  }

  private mutating func enter(_ handle: UInt32, _ path: IndexPath) {
    entered.append((handle, UInt32(change.added.count)))
    change.added.append(path)
    if entered.count & 15 == 0 { pace.spend() }
  }

  /// Records that all rows of a section left it.
  private mutating func leave(_ section: (index: Int, rows: SectionRange)) {
    var row: UInt32 = 0
    section.rows.rows.forEach(in: section.rows.range) { handle in
      leave(handle, IndexPath(section: UInt32(section.index), row: row), isGone: true)
      row += 1
      if row & 15 == 0 { pace.spend() }
    }
  }

  private mutating func leave(_ handle: UInt32, _ path: IndexPath, isGone: Bool) {
    let successor = successors[Int(handle)]
    if successor != ElementTable.none { left.append((successor, handle, path, isGone)) }
  }

  /// Adds all rows of a new section, or of one that changed its order among the others.
  ///
  /// - Parameters:
  ///   - before: the section that is gone and had the same name.
  ///   - placeOf: the row of each new handle in the tree of the new section; `UInt32.max` if it has none.
  private mutating func addRows(
    _ after: (index: Int, rows: SectionRange), since before: (index: Int, rows: SectionRange)?, _ placeOf: [UInt32]
  ) {
    let first = change.added.count
    var isKnown = [Bool](repeating: false, count: before == nil ? 0 : after.rows.count, pace)
    var row: UInt32 = 0
    if let before {
      before.rows.rows.forEach(in: before.rows.range) { handle in
        let path = IndexPath(section: UInt32(before.index), row: row)
        row += 1
        if row & 15 == 0 { pace.spend() }
        let successor = Int(successors[Int(handle)])
        let place = successor < placeOf.count ? Int(placeOf[successor]) : -1
        guard after.rows.range.contains(place) else { return leave(handle, path, isGone: true) }
        isKnown[place - after.rows.start] = true
        let added = UInt32(truncatingIfNeeded: first + place - after.rows.start)
        change.transfers.append(Transfer(from: path, added: added, keepsElement: !differs(handle)))
      }
    }
    row = 0
    after.rows.rows.forEach(in: after.rows.range) { handle in
      let path = IndexPath(section: UInt32(after.index), row: row)
      if isKnown.isEmpty || !isKnown[Int(row)] { enter(handle, path) } else { change.added.append(path) }
      row += 1
    }
  }

  /// Pairs the rows of elements that left exactly one section and entered exactly one other (`Protocol/README.md`, "The
  /// change").
  private mutating func pairEntered() {
    if left.isEmpty || entered.isEmpty { return }
    left.sort(pace) { $0.handle < $1.handle }
    entered.sort(pace) { $0.handle < $1.handle }
    let known = moved.count
    var (next, place) = (0, 0)
    while next < left.count {
      pace.spend()
      let row = left[next]
      let others = left[next...].prefix { $0.handle == row.handle }.count
      next += others
      while place < entered.count, entered[place].handle < row.handle { place += 1 }
      let arrivals = entered[place...].prefix { $0.handle == row.handle }
      guard others == 1, arrivals.count == 1 else { continue }
      if row.isGone {
        change.transfers.append(
          Transfer(from: row.from, added: arrivals[place].added, keepsElement: !differs(row.old)))
      } else {
        moved.append((row.from, arrivals[place].added, !differs(row.old)))
      }
    }
    if moved.count > known { moved.sort(pace) { $0.from < $1.from } }
  }

  /// Pairs the moved rows with their indices in the finished list of deleted rows. Both lists ascend.
  private mutating func pairMoves() {
    var deleted = 0
    change.moves.reserveCapacity(moved.count)
    for (from, added, keepsType) in moved {
      while change.deleted[deleted] < from { deleted += 1 }
      change.moves.append(Move(deleted: UInt32(deleted), added: added, keepsElement: keepsType))
      if added & 31 == 0 { pace.spend() }
    }
  }

  /// Adds the changes of the rows of a section that stays.
  ///
  /// - Parameter placeOf: the row of each new handle in the tree of the new section; `UInt32.max` if it has none.
  private mutating func compareRows(
    _ before: (index: Int, rows: SectionRange), _ after: (index: Int, rows: SectionRange), _ placeOf: [UInt32]
  ) {
    var places: [Int] = []
    var sources: [(row: Int, handle: UInt32)] = []
    places.reserveCapacity(before.rows.count)
    sources.reserveCapacity(before.rows.count)
    var row = 0
    before.rows.rows.forEach(in: before.rows.range) { handle in
      let successor = Int(successors[Int(handle)])
      let place = successor < placeOf.count ? Int(placeOf[successor]) : -1
      if after.rows.range.contains(place) {
        places.append(place - after.rows.start)
        sources.append((row, handle))
      } else {
        let path = IndexPath(section: UInt32(before.index), row: UInt32(row))
        change.deleted.append(path)
        leave(handle, path, isGone: false)
      }
      row += 1
      if row & 15 == 0 { pace.spend() }
    }
    let staying = longestIncreasing(places) { pace.spend() }
    var stays = [Bool](repeating: false, count: after.rows.count, pace)
    for (number, index) in staying.enumerated() {
      stays[places[index]] = true
      if number & 63 == 0 { pace.spend() }
    }
    var isKnown = [Bool](repeating: false, count: after.rows.count, pace)
    for place in places { isKnown[place] = true }
    var placeInAdded = [UInt32](repeating: 0, count: stays.count, pace)
    row = 0
    after.rows.rows.forEach(in: after.rows.range) { handle in
      defer { row += 1 }
      if row & 31 == 0 { pace.spend() }
      if stays[row] { return }
      let path = IndexPath(section: UInt32(after.index), row: UInt32(row))
      if !isKnown[row] { return enter(handle, path) }
      placeInAdded[row] = UInt32(change.added.count)
      change.added.append(path)
    }
    for (place, source) in zip(places, sources) {
      if source.row & 31 == 0 { pace.spend() }
      if stays[place] { continue }
      let from = IndexPath(section: UInt32(before.index), row: UInt32(source.row))
      change.deleted.append(from)
      moved.append((from, placeInAdded[place], !differs(source.handle)))
    }
    for index in staying {
      pace.spend()
      guard differs(sources[index].handle) else { continue }
      change.updated.append(IndexPath(section: UInt32(after.index), row: UInt32(places[index])))
    }
  }

  /// Whether the type of an element differs. Its text is a copy.
  private func differs(_ handle: UInt32) -> Bool {
    if old.definition.type?.text == state.definition.type?.text { return false }
    let was = old.elements.text(of: handle)
    let now = state.elements.text(of: successors[Int(handle)])
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
  /// The rows of each section. O(sections).
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
