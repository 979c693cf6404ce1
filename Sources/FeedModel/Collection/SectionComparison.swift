import FeedChange
import FeedJSON

/// The change from the sections of a collection to those of its redefined copy.
///
/// Sections with the same name are the same section if they kept their order among each other; other sections are deleted and
/// added. O(n log n).
struct SectionComparison {
  /// A section, by its index and its rows.
  private typealias Section = (index: Int, rows: SectionRange)

  private(set) var change = Change()
  private let old, new: CollectionState
  /// The handle in the new state for every old handle, or `ElementTable.none`.
  private let successors: [UInt32]
  /// Rows that moved within sections that stay, or from one to another: the old path, the index in `change.added`, and
  /// whether the type stays.
  private var moved: [(from: IndexPath, added: UInt32, keepsType: Bool)] = []
  /// Rows that left their section, by the new handles of their elements.
  private var left: [(handle: UInt32, old: UInt32, from: IndexPath)] = []
  /// Rows that entered a section which they were not in, by the handles of their elements.
  private var entered: [(handle: UInt32, added: UInt32)] = []
  private let pace: Pace

  /// - Parameter successors: the handle in the new state for every old handle, or `ElementTable.none`.
  init(of old: CollectionState, with new: CollectionState, _ successors: [UInt32], _ pace: Pace) {
    (self.old, self.new, self.successors, self.pace) = (old, new, successors, pace)
    compareSections()
  }

  private mutating func compareSections() {
    var (olds, news) = (old.sectionRanges(pace), new.sectionRanges(pace))
    let common = Self.sectionsWithOneName(olds, news, pace)
    /// For each new section the old one of the same name, or -1; and for each old section, whether there is a new one.
    var former = [Int](repeating: -1, count: news.count, pace)
    var returns = [Bool](repeating: false, count: olds.count, pace)
    for pair in common {
      former[pair.after] = pair.before
      returns[pair.before] = true
    }
    var (staysBefore, staysAfter) = (
      [Bool](repeating: false, count: olds.count, pace), [Bool](repeating: false, count: news.count, pace)
    )
    for pair in longestIncreasing(common.map(\.after)) {
      staysBefore[common[pair].before] = true
      staysAfter[common[pair].after] = true
    }
    // An array that grows copies everything at once.
    let (before, after) = (olds.reduce(0) { $0 + $1.count }, news.reduce(0) { $0 + $1.count })
    change.deleted.reserveCapacity(before)
    change.added.reserveCapacity(after)
    left.reserveCapacity(before)
    entered.reserveCapacity(after)
    if staysBefore.contains(true) { moved.reserveCapacity(min(before, after)) }
    if staysBefore.contains(false) { change.transfers.reserveCapacity(min(before, after)) }
    for index in olds.indices where !staysBefore[index] {
      change.sectionsDeleted.append(UInt32(index))
      if !returns[index] { leave((index, olds[index])) }
    }
    var placeOf: [UInt32] = []
    for index in news.indices {
      if index == 0 || news[index].rows !== news[index - 1].rows {
        placeOf = news[index].rows.rowsByItem(upTo: new.elements.endHandle, pace)
      }
      let before = former[index] < 0 ? nil : (former[index], olds[former[index]])
      if let before, staysAfter[index] {
        compareRows(before, (index, news[index]), placeOf)
      } else {
        change.sectionsAdded.append(
          SectionAddition(at: UInt32(index), name: news[index].name, isByValue: new.keyed != nil))
        addRows((index, news[index]), since: before, placeOf)
      }
    }
    if !moved.isEmpty { change.deleted.sort(pace, by: <) }
    pairCrossings(staysBefore)
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

  // MARK: Rows that leave and enter

  private mutating func enter(_ handle: UInt32, _ path: IndexPath) {
    entered.append((handle, UInt32(change.added.count)))
    change.added.append(path)
    if entered.count & 15 == 0 { pace.spend() }
  }

  private mutating func leave(_ handle: UInt32, _ path: IndexPath) {
    let successor = successors[Int(handle)]
    if successor != ElementTable.none { left.append((successor, handle, path)) }
  }

  /// Records that all rows of a section left it.
  private mutating func leave(_ section: Section) {
    forEachRow(of: section) { comparison, handle, path in comparison.leave(handle, path) }
  }

  /// Calls `body` with the rows of an old section.
  private mutating func forEachRow(
    of section: Section, _ body: (inout SectionComparison, UInt32, IndexPath) -> Void
  ) {
    var row: UInt32 = 0
    section.rows.rows.forEach(in: section.rows.range) { handle in
      body(&self, handle, IndexPath(section: UInt32(section.index), row: row))
      row += 1
      if row & 15 == 0 { pace.spend() }
    }
  }

  /// The row of an old element in a new section, from 0 on; nil if it has none.
  ///
  /// - Parameter placeOf: the row of each new handle in the tree of the new section; `UInt32.max` if it has none.
  private func row(of handle: UInt32, in section: SectionRange, _ placeOf: [UInt32]) -> Int? {
    let successor = Int(successors[Int(handle)])
    guard successor < placeOf.count, section.range.contains(Int(placeOf[successor])) else { return nil }
    return Int(placeOf[successor]) - section.start
  }

  /// Adds all rows of a new section, or of one that changed its order among the others.
  ///
  /// - Parameter before: the section that is gone and had the same name.
  private mutating func addRows(_ after: Section, since before: Section?, _ placeOf: [UInt32]) {
    let first = change.added.count
    var isKnown = [Bool](repeating: false, count: before == nil ? 0 : after.rows.count, pace)
    if let before {
      forEachRow(of: before) { comparison, handle, path in
        guard let row = comparison.row(of: handle, in: after.rows, placeOf) else {
          return comparison.leave(handle, path)
        }
        isKnown[row] = true
        comparison.change.transfers.append(
          Transfer(
            from: path, added: UInt32(truncatingIfNeeded: first + row), keepsElement: !comparison.differs(handle)))
      }
    }
    var row = 0
    after.rows.rows.forEach(in: after.rows.range) { handle in
      let path = IndexPath(section: UInt32(after.index), row: UInt32(row))
      if isKnown.isEmpty || !isKnown[row] { enter(handle, path) } else { change.added.append(path) }
      row += 1
    }
  }

  /// Pairs the rows of elements that left exactly one section and entered exactly one other (`Protocol/README.md`, "The
  /// change").
  ///
  /// - Parameter stays: whether each old section stays.
  private mutating func pairCrossings(_ stays: [Bool]) {
    if left.isEmpty || entered.isEmpty { return }
    var crossings = [Crossing](repeating: Crossing(), count: new.elements.endHandle, pace)
    for (place, row) in left.enumerated() {
      crossings[Int(row.handle)].didLeave(UInt32(truncatingIfNeeded: place))
      if place & 63 == 63 { pace.spend() }
    }
    for (place, row) in entered.enumerated() {
      crossings[Int(row.handle)].didEnter(row.added)
      if place & 63 == 63 { pace.spend() }
    }
    let known = moved.count
    for (place, row) in left.enumerated() {
      if place & 31 == 31 { pace.spend() }
      guard let (_, added) = crossings[Int(row.handle)].pair else { continue }
      if stays[Int(row.from.section)] {
        moved.append((row.from, added, !differs(row.old)))
      } else {
        change.transfers.append(Transfer(from: row.from, added: added, keepsElement: !differs(row.old)))
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

  // MARK: Sections that stay

  /// Adds the changes of the rows of a section that stays.
  private mutating func compareRows(_ before: Section, _ after: Section, _ placeOf: [UInt32]) {
    var places: [Int] = []
    var sources: [(path: IndexPath, handle: UInt32)] = []
    places.reserveCapacity(before.rows.count)
    sources.reserveCapacity(before.rows.count)
    forEachRow(of: before) { comparison, handle, path in
      if let row = comparison.row(of: handle, in: after.rows, placeOf) {
        places.append(row)
        sources.append((path, handle))
      } else {
        comparison.change.deleted.append(path)
        comparison.leave(handle, path)
      }
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
    var row = 0
    after.rows.rows.forEach(in: after.rows.range) { handle in
      defer { row += 1 }
      if row & 31 == 0 { pace.spend() }
      if stays[row] { return }
      let path = IndexPath(section: UInt32(after.index), row: UInt32(row))
      if !isKnown[row] { return enter(handle, path) }
      placeInAdded[row] = UInt32(change.added.count)
      change.added.append(path)
    }
    for (number, source) in sources.enumerated() {
      if number & 31 == 0 { pace.spend() }
      if stays[places[number]] { continue }
      change.deleted.append(source.path)
      moved.append((source.path, placeInAdded[places[number]], !differs(source.handle)))
    }
    for index in staying {
      pace.spend()
      guard differs(sources[index].handle) else { continue }
      change.updated.append(IndexPath(section: UInt32(after.index), row: UInt32(places[index])))
    }
  }

  /// Whether the type of an element differs. Its text is a copy.
  private func differs(_ handle: UInt32) -> Bool {
    if old.definition.type?.text == new.definition.type?.text { return false }
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
