import FeedChange

/// A composed or segmented feed: its children, flattened to one list of sections. A composed feed shows all children, a
/// segmented feed shows the active child or none (Protocol/README.md, "Composed and segmented").
///
/// A child may be any feed or bin, and a child of several feeds, but only once of each.
public final class ProviderKind: DerivedKind {
  enum Form: String {
    case composed
    case segmented
  }

  /// The visible children, each with its number of sections.
  typealias Structure = [(feed: Feed, sections: Int)]

  let number: FeedNumber
  let form: Form
  private(set) var children: [Feed]
  /// The index of the active child of a segmented feed; -1 for none.
  private(set) var current: Int
  /// The structure after the last commit; nil before the first.
  private var published: Structure?
  /// Whether children or their sections may have been added or removed since the last commit.
  private var isRestructured = false
  private var starts = ChildStarts()
  /// The first row of each child in flattened order, for a version of `counts`.
  private var rowStarts = ChildStarts()
  private var rowStartsVersion: UInt64 = 0
  private let counts: RowCounts

  init(number: FeedNumber, form: Form, children: [Feed], current: Int = -1, counts: RowCounts) {
    (self.counts, self.number, self.form, self.children, self.current) = (counts, number, form, children, current)
  }

  public var isSegmented: Bool { form == .segmented }

  /// The visible children of a segmented feed whose active child is at `current`.
  static func shown(_ children: [Feed], _ current: Int) -> [Feed] {
    children.indices.contains(current) ? [children[current]] : []
  }

  private var shownPlaces: Range<Int> {
    if form == .composed { return children.indices }
    return children.indices.contains(current) ? current..<current + 1 : 0..<0
  }

  var shown: [Feed] { Array(children[shownPlaces]) }
  var structure: Structure { shown.map { ($0, $0.sectionCount) } }
  private func sumStarts() { if !starts.isKnown { starts.sum(children, shown: shownPlaces) { $0.sectionCount } } }

  /// Counts the rows of the children, unless no row was added or removed since the last time: below many levels, each of them would
  /// count all rows below it for each row that is looked up.
  private func sumRowStarts() {
    if rowStarts.isKnown && rowStartsVersion == counts.version { return }
    // A child may run a filter to count its rows and stop for others, who may invalidate or ask for the sums: so this takes them.
    var sums = ChildStarts()
    swap(&sums, &rowStarts)
    sums.invalidate()
    sums.sum(children, shown: shownPlaces) { $0.count }
    rowStarts = sums
    rowStartsVersion = counts.version
  }

  // MARK: Rows

  public var wireName: String { form.rawValue }

  public var definedAs: FeedDefinition.Content? {
    let names = children.map(\.name)
    return form == .composed ? .composed(children: names) : .segmented(children: names, current: current)
  }

  public var sectionCount: Int {
    sumStarts()
    return starts.end
  }

  public func section(at index: Int) -> any FeedSection {
    let place = place(ofSection: index)
    return children[place].section(at: index &- starts[place])
  }

  public var rowCount: Int {
    sumRowStarts()
    return rowStarts.end
  }

  public func locate(_ index: Int) -> (section: any FeedSection, row: Int) {
    let place = place(ofRow: index)
    return children[place].kind.locate(index &- rowStarts[place])
  }

  public func path(ofFlat index: Int) -> IndexPath {
    let place = place(ofRow: index)
    sumStarts()
    return children[place].kind.path(ofFlat: index &- rowStarts[place]).shifted(by: UInt32(starts[place]))
  }

  private func place(ofRow index: Int) -> Int {
    sumRowStarts()
    precondition(index < rowStarts.end, "there is no row \(index)")
    return rowStarts.place(of: index)
  }

  func origins(of rows: [TracedRow], _ pace: Pace) -> [(source: Feed, rows: [TracedRow])] {
    var found: [Int: [TracedRow]] = [:]
    var next = 0
    while next < rows.count {
      let place = place(ofSection: Int(rows[next].path.section))
      let (first, end) = (UInt32(starts[place]), UInt32(starts[place + 1]))
      let ofOthers = rows[next...].firstIndex { !(first..<end).contains($0.path.section) } ?? rows.count
      found[place, default: []] += rows[next..<ofOthers].lazy.map {
        TracedRow(path: IndexPath(section: $0.path.section - first, row: $0.path.row), index: $0.index)
      }
      pace.spend(1 + (ofOthers - next) / 128)
      next = ofOthers
    }
    return found.sorted { $0.key < $1.key }.map { (children[$0.key], $0.value) }
  }

  public func makeSnapshots() -> [SectionsSnapshot] {
    var snapshots: [SectionsSnapshot] = []
    appendSnapshots(to: &snapshots)
    return snapshots
  }

  /// Appends to the list of the highest feed: below many levels, each of them would copy the list of the one below.
  private func appendSnapshots(to snapshots: inout [SectionsSnapshot]) {
    for place in shownPlaces {
      let kind = children[place].kind
      if let provider = kind as? ProviderKind {
        provider.appendSnapshots(to: &snapshots)
      } else {
        snapshots += kind.makeSnapshots()
      }
    }
  }

  public func element(at path: IndexPath) -> ElementText {
    let place = place(ofSection: Int(path.section))
    return children[place].element(at: IndexPath(section: path.section &- UInt32(starts[place]), row: path.row))
  }

  public func type(at path: IndexPath) -> UnsafeRawBufferPointer {
    let place = place(ofSection: Int(path.section))
    return children[place].type(at: IndexPath(section: path.section &- UInt32(starts[place]), row: path.row))
  }

  private func place(ofSection index: Int) -> Int {
    sumStarts()
    return starts.place(of: index)
  }

  public var hasTypes: Bool { shownPlaces.contains { children[$0].hasTypes } }
  public var rows: RowStore? { nil }
  public var bins: [Feed] { [] }

  // MARK: Structure

  var sources: [(place: Int, feed: Feed)] { children.enumerated().map { ($0, $1) } }
  func shows(_ place: Int) -> Bool { shownPlaces.contains(place) }

  static let stepsPerRow = 100
  var stepsPerRow: Int { Self.stepsPerRow }

  func offset(ofSectionsAt place: Int) -> Int? {
    sumStarts()
    return starts[place]
  }

  func install(_ children: [Feed], current: Int, _ graph: FeedGraph) {
    let feed = graph.table[number]
    graph.relink(feed) { (self.children, self.current) = (children, current) }
    _ = sourceSectionsDidChange()
    graph.sectionsDidChange(of: feed)
  }

  func sourceSectionsDidChange() -> Bool {
    starts.invalidate()
    rowStarts.invalidate()
    isRestructured = true
    return true
  }

  func sourcesWereRestored() {
    starts.invalidate()
    rowStarts.invalidate()
    publish()
  }

  private func publish() {
    published = structure
    isRestructured = false
  }

  // MARK: Changes

  var publishedSectionCount: Int { published?.reduce(0) { $0 + $1.sections } ?? 0 }

  func derive(_ changes: borrowing SourceChanges, into change: inout Change) {
    guard let before = published else { return publish() }
    if isRestructured {
      change = restructuring(from: before, changes, changes.pace ?? Pace(), pairsRows: true)
      publish()
      changes.pace?.spend(children.count / Self.childrenOfAUnit)
      return
    }
    sumStarts()
    changes.forEach { place, shift, source in
      let start = starts[place] + Int(shift)
      if shows(place) { change.append(source, before: start, after: start) }
    }
  }

  func shareChange(ofSourceAt place: Int, _ pace: Pace) -> Int? {
    guard let before = published, shows(place) else { return nil }
    if isRestructured {
      defer { pace.spend(children.count / Self.childrenOfAUnit) }
      let (after, own) = (structure, place - shownPlaces.lowerBound)
      let isSame =
        before.count == after.count
        && before.indices.allSatisfy {
          before[$0].feed === after[$0].feed && ($0 == own || before[$0].sections == after[$0].sections)
        }
      if !isSame { return nil }
      publish()
    }
    sumStarts()
    return starts[place]
  }

  /// The change from a previous structure to the current one, including the changes of the children that stay.
  /// - Parameter pairsRows: whether the rows of children that change their order are paired, for the feeds above.
  func restructuring(
    from before: Structure, _ changes: borrowing SourceChanges, _ pace: Pace, pairsRows: Bool = false
  ) -> Change {
    let after = structure
    let places = Dictionary(uniqueKeysWithValues: after.enumerated().map { ($1.feed.number, $0) })
    let common = before.indices.compactMap { place in
      places[before[place].feed.number].map { (before: place, after: $0) }
    }
    let staying = longestIncreasing(common.map(\.after)).map { common[$0] }
    let formerStarts = pairsRows ? firstSections(of: common, before) : [:]
    var own: [Int: Change] = [:]
    let first = shownPlaces.lowerBound
    changes.forEach { place, shift, change in
      own[place - first, default: Change()].append(change, before: Int(shift), after: Int(shift))
    }
    var change = Change()
    var (oldPlace, newPlace, oldSection, newSection) = (0, 0, 0, 0)
    for (old, new) in staying + [(before.count, after.count)] {
      while oldPlace < old {
        change.removeSections(before[oldPlace].sections, at: &oldSection)
        oldPlace += 1
      }
      while newPlace < new {
        let (row, section) = (change.added.count, newSection)
        change.addSections(of: after[newPlace].feed, at: &newSection, pace)
        if let former = formerStarts[newPlace] {
          change.transferRows(from: row, of: own[newPlace] ?? .empty, before: former, after: section, pace)
        }
        newPlace += 1
      }
      guard old < before.count else { break }
      if let own = own[new] { change.append(own, before: oldSection, after: newSection) }
      oldSection += before[old].sections
      newSection += after[new].sections
      (oldPlace, newPlace) = (old + 1, new + 1)
    }
    if formerStarts.count > 1 { change.transfers.sort(pace) { $0.from < $1.from } }
    return change
  }

  /// The first section before a change of each child that was visible before and after it, by its place after the change.
  private func firstSections(of common: [(before: Int, after: Int)], _ before: Structure) -> [Int: Int] {
    var starts: [Int] = []
    var section = 0
    for child in before {
      starts.append(section)
      section += child.sections
    }
    return Dictionary(uniqueKeysWithValues: common.map { ($0.after, starts[$0.before]) })
  }
}

extension Change {
  /// Lists all sections of a feed with all their rows as added from `section` on, and advances `section` past them.
  fileprivate mutating func addSections(of feed: Feed, at section: inout Int, _ pace: Pace) {
    for content in feed.sections {
      sectionsAdded.append(SectionAddition(at: UInt32(section), name: content.name, isByValue: content.isByValue))
      added.append(rows: content.count, of: section, pace)
      section += 1
    }
  }

  /// Pairs the rows of a child whose sections were all deleted and added again.
  /// - Parameters:
  ///   - first: the index in `added` of the first row of the child. Only its rows follow.
  ///   - before: its first section before the change.
  ///   - after: its first section after the change.
  fileprivate mutating func transferRows(from first: Int, of child: Change, before: Int, after: Int, _ pace: Pace) {
    /// The rows before the change of the entries of `child.added` that are not new.
    var origins: [Int: (row: IndexPath, keepsElement: Bool)] = [:]
    for move in child.moves { origins[Int(move.added)] = (child.deleted[Int(move.deleted)], move.keepsElement) }
    for known in child.transfers { origins[Int(known.added)] = (known.from, known.keepsElement) }
    var backward = ChangeMap(backward: child)
    var nextUpdated = 0
    for index in first..<added.count {
      if index & 15 == 15 { pace.spend() }
      let row = IndexPath(section: added[index].section &- UInt32(after), row: added[index].row)
      while nextUpdated < child.updated.count, child.updated[nextUpdated] < row { nextUpdated += 1 }
      let isUpdated = nextUpdated < child.updated.count && child.updated[nextUpdated] == row
      let origin: (row: IndexPath, keepsElement: Bool)? =
        switch backward.map(row) {
        case .at(let former): (former, !isUpdated)
        case .listed(let entry): origins[entry]
        case .sectionGone: nil
        }
      guard let origin else { continue }
      transfers.append(
        Transfer(
          from: origin.row.shifted(by: UInt32(before)), added: UInt32(truncatingIfNeeded: index),
          keepsElement: origin.keepsElement))
    }
  }
}

/// Where each child begins in the list of all sections, or of all rows: the prefix sums of its counts.
///
/// Invariant: unless unknown, there is one entry for each child and one for the end, ascending.
struct ChildStarts {
  /// Empty while unknown.
  private var starts: [Int] = []

  var isKnown: Bool { !starts.isEmpty }
  var end: Int { starts[starts.count &- 1] }

  /// The index of the first section or row of the child at a place. For a hidden child, that of the next visible child.
  subscript(place: Int) -> Int { starts[place] }

  /// Discards the sums, because sections or rows may have been added or removed.
  mutating func invalidate() { if !starts.isEmpty { starts.removeAll(keepingCapacity: true) } }

  /// Computes the prefix sums. Children outside `shown` count as having nothing.
  mutating func sum(_ children: [Feed], shown: Range<Int>, _ count: (Feed) -> Int) {
    assert(starts.isEmpty, "the starts are known already")
    var end = 0
    for (place, child) in children.enumerated() {
      starts.append(end)
      if shown.contains(place) { end += count(child) }
    }
    starts.append(end)
    assert(starts.count == children.count + 1, "a child has no start")
  }

  /// The place of the child that has the section or row at `index`: the last child that begins at or before it. Hidden
  /// children and empty children begin where the next child begins. O(log children).
  func place(of index: Int) -> Int { (0..<starts.count &- 1).partitionPoint { starts[$0] <= index } &- 1 }
}
