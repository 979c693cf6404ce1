import FeedChange
import FeedJSON

/// The sections of a collection with one section for each value of a key (`Protocol/README.md`, "Sections by value").
///
/// The rows of all sections are in one tree, ordered by the section key first, so an element costs the same in one
/// section as in many. A section exists while it has rows. Its neighbours in the tree tell the section of a new row, and
/// its first row tells where it begins, so only the search for the place of a row compares keys.
///
/// Operations change rows of the first tree; `divide` converts the change to one of sections.
///
/// Invariant: every row is counted in the section of its key.
final class KeyedSections {
  /// The period over which row counts are compared.
  enum Scope {
    case operation
    case commit
  }

  private struct Prepared {
    /// The row, if it exists and keeps its section.
    var known: UInt32?
    /// The section of the row; `KeyedSectionTable.none` for a new one.
    var section = KeyedSectionTable.none
    /// The place of the row, if it enters the section.
    var place: (gap: PositionTree.Gap, key: UInt64)?
    /// The section before a new one, `none` if there is none; nil if unknown.
    var predecessor: UInt32?
  }

  /// The number of the feed; set by `bind`.
  private(set) var number: FeedNumber = -1
  private unowned var graph: FeedGraph?
  let feed: String
  /// All rows, as one section.
  let flat: RowSection
  let table: KeyedSectionTable
  private let names: SectionNames
  /// The next row that is inserted or changed.
  private var prepared = Prepared()
  /// Receives the result of prefetches, so that they are not optimized away.
  private var touched: UInt32 = 0
  /// Whether a bulk removal removes the first row of a section that has others.
  private var losesFirstRows = false

  private var countBefore = 0
  /// Whether sections were added or removed since the feeds that show them were updated.
  private var isRestructured = false
  /// Whether the undo log of the commit lists this object.
  private var isListed = false
  /// The composed changes of the operations of the commit, as changes of one section.
  var operations = ChangeAccumulator()

  init(feed: String, flat: RowSection, names: SectionNames) {
    (self.feed, self.flat, self.names) = (feed, flat, names)
    table = KeyedSectionTable()
  }

  /// Creates the same sections over a copy of their rows. The open commit must not have changed them. O(rows).
  init(copying other: KeyedSections, _ flat: RowSection, _ pace: Pace) {
    assert(!other.isListed, "the commit has changed the sections")
    (feed, self.flat, names, number, graph) = (other.feed, flat, other.names, other.number, other.graph)
    countBefore = other.countBefore
    table = KeyedSectionTable(copying: other.table, pace)
  }

  /// Sets the feed of the sections. From now on, new sections must fit in the feeds that show this one.
  func bind(_ number: FeedNumber, _ graph: FeedGraph) { (self.number, self.graph) = (number, graph) }

  // MARK: Sections and rows

  var count: Int { table.count }

  /// The section at an index in `0..<count`. O(log sections).
  subscript(index: Int) -> KeyedSection { KeyedSection(id: table[index], owner: self) }

  /// The handle of an existing row. O(log rows).
  func handle(at path: IndexPath) -> UInt32 {
    let id = table[Int(path.section)]
    return path.row == 0 ? table.first(of: id) : flat.rows[start(of: id) + Int(path.row)]
  }

  func element(at path: IndexPath) -> ElementText { flat.elements.text(of: handle(at: path)) }

  /// The path of a row; nil if the handle has no row. O(log rows).
  func path(of handle: UInt32) -> IndexPath? { flat.rows.row(of: handle).map { path(ofFlat: $0, handle) } }

  /// The path of a row of `flat`. O(log rows).
  func path(ofFlat row: Int) -> IndexPath { path(ofFlat: row, flat.rows[row]) }

  /// The path of the row at `row`, which was prepared last and stays in its section. O(log rows).
  func path(ofPrepared row: Int) -> IndexPath {
    guard let known = prepared.known else { return path(ofFlat: row) }
    assert(flat.rows[row] == known && isPrepared(for: known), "another row was prepared")
    return path(ofFlat: row, known)
  }

  private func path(ofFlat row: Int, _ handle: UInt32) -> IndexPath {
    let id = table.section(of: handle)
    let isFirst = table.first(of: id) == handle
    return IndexPath(section: UInt32(table.index(of: id)), row: isFirst ? 0 : UInt32(row - start(of: id)))
  }

  /// The number of rows before those of a section with rows. O(log rows).
  func start(of id: UInt32) -> Int {
    guard let row = flat.rows.row(of: table.first(of: id)) else { preconditionFailure("the first row is gone") }
    return row
  }

  func rowCount(of id: UInt32) -> Int { table.rowCount(of: id) }
  func name(of id: UInt32) -> String { names.name(of: flat.elements.text(of: table.first(of: id))) }

  /// The insertion of a section with rows at an index.
  func addition(of id: UInt32, at index: UInt32) -> SectionAddition {
    names.withName(of: flat.elements.text(of: table.first(of: id))) {
      SectionAddition(at: index, name: $0, isByValue: true)
    }
  }

  /// Calls `body` with the name, as UTF-8, and the row count of each section in order. O(sections).
  func forEach(_ body: (_ name: UnsafeRawBufferPointer, _ count: Int) -> Void) {
    table.forEach { id, count in
      names.withName(of: flat.elements.text(of: table.first(of: id))) { body($0, count) }
    }
  }

  /// Calls `body` with the row count of each section in order. O(sections).
  func forEachCount(_ body: (_ count: Int) -> Void) { table.forEach { _, count in body(count) } }

  /// Compares the section key of an existing row with a key: negative if it is before, 0 if it is equal.
  /// - Parameter row: the row, with its key in the tree.
  @inline(__always)
  func compare(_ row: PositionTree.Entry, _ key: SectionKey) -> Int32 {
    key.comparePrefix(row.key) ?? SortOrder.compare(self.key(of: row.item), key.bytes)
  }

  private func key(of handle: UInt32) -> UnsafeRawBufferPointer {
    SortOrder.key(0, in: flat.elements.text(of: handle).keys)
  }

  // MARK: Mutations

  /// Finds the section of the next row that is inserted or changed.
  /// - Parameters:
  ///   - known: the row, if it exists and may leave its section.
  ///   - isSorted: whether the rows of a section are sorted, so that a row can be the first of its section.
  func prepare(
    _ keys: UnsafeRawBufferPointer, for known: UInt32?, isSorted: Bool,
    place: () -> (gap: PositionTree.Gap, key: UInt64)
  ) {
    let key = SectionKey(SortOrder.key(0, in: keys))
    if let known, SortOrder.compare(self.key(of: known), key.bytes) == 0 {
      prepared = Prepared(known: known, section: table.section(of: known))
      return
    }
    touched = table.nextMemory
    let place = place()
    let (before, after) = flat.rows.neighbours(of: place.gap)
    if let before, compare(before, key) == 0 {
      prepared = Prepared(section: table.section(of: before.item), place: place)
      return
    }
    if isSorted, let after, compare(after, key) == 0 {
      prepared = Prepared(section: table.section(of: after.item), place: place)
      return
    }
    prepared = Prepared(place: place)
    // The row itself leaves before the new section is added.
    if before?.item != known || known == nil {
      prepared.predecessor = before.map { table.section(of: $0.item) } ?? KeyedSectionTable.none
    }
  }

  /// The place of the prepared row if it enters its section. Valid until rows change.
  @inline(__always)
  var preparedPlace: (gap: PositionTree.Gap, key: UInt64)? { prepared.place }

  /// Throws if the operation has added sections and there are now too many of them, here or in a feed that shows this one.
  ///
  /// The steps of an operation may add more: rows that leave sections may be among those that follow.
  @inline(__always)
  func checkGrowth(_ limits: Limits) throws(FeedError) { if count > countBefore { try checkAll(limits) } }

  private func checkAll(_ limits: Limits) throws(FeedError) {
    try checkCount(limits)
    guard let graph, graph.hasParents(number) else { return }
    let feed = graph.table[number]
    graph.sectionsDidChange(of: feed)
    try graph.checkSections(above: feed, limits)
  }

  /// Throws if there are too many sections, whatever feeds show them.
  func checkCount(_ limits: Limits) throws(FeedError) {
    guard count <= limits.maxSections else {
      throw limits.exceeded(
        \.maxSections, "\(feed) would have \(counted(count, "section")); choose a \"section\" with fewer values")
    }
  }

  /// Records that a row of the prepared section was inserted at `row`. Returns the section's identifier.
  func didInsert(_ handle: UInt32, at row: Int, _ log: UndoLog) -> UInt32 {
    note(log)
    let id = takePrepared()
    add(handle, to: id, at: row, after: prepared.predecessor)
    return id
  }

  private func takePrepared() -> UInt32 {
    prepared.place = nil
    if prepared.section == KeyedSectionTable.none { prepared.section = table.make() }
    return prepared.section
  }

  /// Records that a row was removed; the rows after it now begin at `row`. Returns the identifier of its section.
  func didRemove(_ handle: UInt32, at row: Int, _ log: UndoLog) -> UInt32 {
    note(log)
    return remove(handle, next: row, version: flat.elements.text(of: handle))
  }

  /// Records that a row will be removed with many others, before `didRemoveAll`. Returns the identifier of its section.
  func willRemove(_ handle: UInt32, _ log: UndoLog) -> UInt32 {
    note(log)
    let id = table.section(of: handle)
    if table.removeRow(from: id) {
      table.willEmpty(id, version: flat.elements.text(of: handle))
      isRestructured = true
    } else if table.first(of: id) == handle {
      losesFirstRows = true
    }
    return id
  }

  /// Records that many rows were removed. O(rows).
  func didRemoveAll(_ pace: Pace) {
    if isRestructured { table.didEmptyAll(pace) }
    if losesFirstRows { findFirstRows(pace) }
    losesFirstRows = false
  }

  private func findFirstRows(_ pace: Pace) {
    var last = KeyedSectionTable.none
    var row = 0
    flat.rows.forEach(in: 0..<flat.count) { handle in
      let id = table.section(of: handle)
      if id != last { table.setFirst(handle, of: id) }
      last = id
      row += 1
      if row & 31 == 0 { pace.spend() }
    }
  }

  func isPrepared(for handle: UInt32) -> Bool { table.section(of: handle) == prepared.section }

  /// Records that a row got another key in its place and enters the prepared section. Returns its previous one.
  func didRekey(_ handle: UInt32, at row: Int, _ log: UndoLog) -> UInt32 {
    if isPrepared(for: handle) { return prepared.section }
    note(log)
    let former = remove(handle, next: row + 1, version: flat.elements.text(of: handle))
    add(handle, to: takePrepared(), at: row, after: prepared.predecessor)
    return former
  }

  /// Undoes `didRemove` and `willRemove`: the row is at `row` again.
  func undoRemoval(of handle: UInt32, from id: UInt32, at row: Int) { add(handle, to: id, at: row, after: nil) }

  /// Undoes `didInsert`; the rows after it now begin at `row`.
  func undoInsertion(of handle: UInt32, at row: Int) { remove(handle, next: row, version: nil) }

  func undoRekey(of handle: UInt32, from id: UInt32, at row: Int) {
    if table.section(of: handle) == id { return }
    remove(handle, next: row + 1, version: nil)
    add(handle, to: id, at: row, after: nil)
  }

  /// Adds the row at `row` to a section.
  /// - Parameter predecessor: the section before it if it has no other rows, `KeyedSectionTable.none` if it is the first
  ///   one; nil if unknown.
  private func add(_ handle: UInt32, to id: UInt32, at row: Int, after predecessor: UInt32?) {
    if !table.addRow(handle, to: id) {
      if flat.rows.isItem(table.first(of: id), after: row) { table.setFirst(handle, of: id) }
      return
    }
    let known = predecessor ?? self.predecessor(ofSectionAt: row)
    assert(known == self.predecessor(ofSectionAt: row), "the prepared section is at another place")
    table.didFill(id, after: known, first: handle)
    isRestructured = true
  }

  /// The section before the one that has its first row at `row`.
  private func predecessor(ofSectionAt row: Int) -> UInt32 {
    row == 0 ? KeyedSectionTable.none : table.section(of: flat.rows[row - 1])
  }

  /// Removes a row from its section. Returns the identifier of the section.
  /// - Parameters:
  ///   - next: the row after it.
  ///   - version: see `KeyedSectionTable.didEmpty`.
  @discardableResult
  private func remove(_ handle: UInt32, next: Int, version: ElementText?) -> UInt32 {
    let id = table.section(of: handle)
    if !table.removeRow(from: id) {
      if table.first(of: id) == handle { table.setFirst(flat.rows[next], of: id) }
      return id
    }
    table.didEmpty(id, version: version)
    isRestructured = true
    return id
  }

  /// Finds the sections of all rows, which were inserted without the undo log into an empty list. O(rows).
  func adopt(_ pace: Pace) {
    assert(table.count == 0, "there are sections already")
    var last: SectionKey?
    var row = 0
    flat.rows.forEachWithKey { handle, key in
      let isInLast = last.map { compare((handle, key), $0) == 0 } ?? false
      table.append(handle, toLast: isInLast)
      if !isInLast { last = SectionKey(self.key(of: handle)) }
      row += 1
      if row & 15 == 0 { pace.spend() }
    }
    table.didAppendAll(pace)
    isRestructured = false
    countBefore = table.count
  }

  private func note(_ log: UndoLog) {
    if isListed { return }
    isListed = true
    log.append(self)
  }

  // MARK: Scopes

  /// Ends an operation or its rollback. Returns whether sections were added or removed since the last call.
  func endOperation() -> Bool {
    table.endOperation()
    countBefore = table.count
    defer { isRestructured = false }
    return isRestructured
  }

  func endCommit() {
    isListed = false
    if !operations.isEmpty { operations = ChangeAccumulator() }
    table.endCommit()
    #if CHECK_INVARIANTS
      if flat.count <= 64 { checkInvariants() }
    #endif
  }

  // MARK: Snapshots

  /// Returns a snapshot of all sections. O(sections + rows / 100).
  func makeSnapshot() -> SectionsSnapshot {
    var counts: [UInt32] = []
    counts.reserveCapacity(table.count)
    table.forEach { _, count in counts.append(UInt32(count)) }
    return SectionsSnapshot(flat.makeSnapshot(), counts: counts)
  }

  // MARK: Invariants

  /// O(rows · log).
  func checkInvariants() {
    table.checkInvariants()
    var row = 0
    for index in 0..<count {
      let id = table[index]
      precondition(rowCount(of: id) > 0 && start(of: id) == row, "a section begins elsewhere")
      let key = SectionKey(key(of: flat.rows[row]))
      if let before = flat.rows.neighbours(of: flat.rows.gap(before: row)).before {
        precondition(compare(before, key) < 0, "sections are out of order")
      }
      for row in row..<(row + rowCount(of: id)) {
        let handle = flat.rows[row]
        precondition(table.section(of: handle) == id, "a row is in another section")
        precondition(compare((handle, flat.rows.key(at: row)), key) == 0, "a row has another key than its section")
      }
      row += rowCount(of: id)
    }
    precondition(row == flat.count, "a row is in no section")
  }
}
