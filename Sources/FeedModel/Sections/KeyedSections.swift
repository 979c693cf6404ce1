import FeedChange
import FeedJSON

/// The sections of a collection with one section for each value of a key (`Protocol/README.md`, "Sections by value").
///
/// The rows of all sections are in one tree, ordered by the section key first, so an element costs the same in one
/// section as in many. A section exists while it has rows. Its neighbours in the tree tell the section of a new row, and
/// its first row tells where it begins, so only the search for the place of a row compares keys.
///
/// Operations change rows of the first tree; `divide` converts the change to one of sections. For this purpose, the table
/// stores the row counts of the sections before the operation and before the commit.
///
/// Invariant: every row is counted in the section of its key.
final class KeyedSections {
  /// The period over which row counts are compared.
  enum Scope {
    case operation
    case commit
  }

  private struct Prepared {
    /// The section of the row; `KeyedSectionTable.none` for a new one.
    var section = KeyedSectionTable.none
    /// The place of the row, if it enters the section.
    var place: (row: Int, key: UInt64)?
    /// The index of the section if it has no rows and the row is new, -1 if it is not known.
    var index = -1
  }

  /// The number of the feed; set by `bind`.
  private(set) var number: FeedNumber = -1
  private unowned var graph: FeedGraph?
  let feed: String
  /// All rows, as one section.
  let flat: RowSection
  private let names: SectionNames
  private let table: KeyedSectionTable
  /// The section of each row, by handle.
  private var sectionOf: [UInt32] = []
  /// The next row that is inserted or changed.
  private var prepared = Prepared()

  /// The number of sections before the operation.
  private var countBefore = 0
  /// Whether sections were added or removed since the feeds that show them were updated.
  private var isRestructured = false
  /// Whether the undo log of the commit lists this object.
  private var isListed = false
  /// The composed changes of the operations of the commit, as changes of one section.
  var operations = ChangeAccumulator()

  init(feed: String, flat: RowSection, names: SectionNames) {
    self.feed = feed
    self.flat = flat
    self.names = names
    table = KeyedSectionTable()
  }

  /// Returns the same sections over a copy of their rows. The open commit must not have changed them. O(rows).
  func copy(_ flat: RowSection, _ pace: Pace) -> KeyedSections { KeyedSections(copying: self, flat, pace) }

  private init(copying other: KeyedSections, _ flat: RowSection, _ pace: Pace) {
    assert(!other.isListed, "the commit has changed the sections")
    (feed, self.flat, names, number, graph) = (other.feed, flat, other.names, other.number, other.graph)
    (sectionOf, countBefore) = (other.sectionOf, other.countBefore)
    table = KeyedSectionTable(copying: other.table, pace)
  }

  /// Sets the feed of the sections. From now on, new sections must fit in the feeds that show this one.
  func bind(_ number: FeedNumber, _ graph: FeedGraph) {
    self.number = number
    self.graph = graph
  }

  // MARK: Sections and rows

  var count: Int { table.count }
  var rowCount: Int { flat.count }

  /// The section at an index in `0..<count`. O(log sections).
  subscript(index: Int) -> KeyedSection { KeyedSection(id: table[index], owner: self) }

  private var elements: ElementTable { flat.elements }

  /// The handle of an existing row. O(log rows).
  func handle(at path: IndexPath) -> UInt32 { flat.rows[start(of: table[Int(path.section)]) + Int(path.row)] }

  func element(at path: IndexPath) -> ElementText { elements.text(of: handle(at: path)) }

  /// The path of a row; nil if the handle has no row. O(log rows).
  func path(of handle: UInt32) -> IndexPath? { flat.rows.row(of: handle).map { path(ofFlat: $0, handle) } }

  /// The path of a row of `flat`. O(log rows).
  func path(ofFlat row: Int) -> IndexPath { path(ofFlat: row, flat.rows[row]) }

  private func path(ofFlat row: Int, _ handle: UInt32) -> IndexPath {
    let id = sectionOf[Int(handle)]
    return IndexPath(section: UInt32(table.index(of: id)), row: UInt32(row - start(of: id)))
  }

  /// The number of rows before those of a section with rows. O(log rows).
  func start(of id: UInt32) -> Int {
    guard let row = flat.rows.row(of: table.first(of: id)) else { preconditionFailure("the first row is gone") }
    return row
  }

  func rowCount(of id: UInt32) -> Int { table.rowCount(of: id) }

  /// The name of a section with rows.
  func name(of id: UInt32) -> String { names.name(of: elements.text(of: table.first(of: id))) }

  /// Whether the section key of an element is `key`.
  private func hasKey(_ handle: UInt32, _ key: UnsafeRawBufferPointer) -> Bool {
    SortOrder.compare(SortOrder.key(0, in: elements.text(of: handle).keys), key) == 0
  }

  /// The index where a section begins that has its first row at `row`.
  private func index(ofSectionAt row: Int) -> Int {
    row == 0 ? 0 : table.index(of: sectionOf[Int(flat.rows[row - 1])]) + 1
  }

  // MARK: Mutations

  /// Finds the section of the next row that is inserted or changed.
  ///
  /// - Parameters:
  ///   - keys: the sort keys of the row.
  ///   - known: the row, if it exists and may leave its section.
  ///   - isSorted: whether the rows of a section are sorted, so that a row can be the first of its section.
  ///   - place: returns the place of the row by its keys.
  /// - Throws: `limitExceeded` if there are too many sections here or in a feed that shows this one.
  func prepare(
    _ keys: UnsafeRawBufferPointer, for known: UInt32?, isSorted: Bool, _ limits: Limits,
    place: () -> (row: Int, key: UInt64)
  ) throws(FeedError) {
    let key = SortOrder.key(0, in: keys)
    if let known, hasKey(known, key) {
      prepared = Prepared(section: sectionOf[Int(known)])
      return
    }
    let place = place()
    var index = 0
    if place.row > 0 {
      let neighbour = flat.rows[place.row - 1]
      let section = sectionOf[Int(neighbour)]
      if hasKey(neighbour, key) {
        prepared = Prepared(section: section, place: place)
        return
      }
      index = known == nil ? table.index(of: section) + 1 : -1
    }
    if isSorted, place.row < flat.rows.count {
      let neighbour = flat.rows[place.row]
      if hasKey(neighbour, key) {
        prepared = Prepared(section: sectionOf[Int(neighbour)], place: place)
        return
      }
    }
    let leavesLast = known.map { table.rowCount(of: sectionOf[Int($0)]) == 1 } ?? false
    try checkRoom(for: leavesLast ? table.count : table.count + 1, limits)
    prepared = Prepared(section: table.findGone(key), place: place, index: known == nil ? index : -1)
  }

  /// The place of the prepared row if it enters its section. Valid until rows change.
  @inline(__always)
  var preparedPlace: (row: Int, key: UInt64)? { prepared.place }

  /// Throws if there is no room for this number of sections.
  func checkRoom(for count: Int, _ limits: Limits) throws(FeedError) {
    guard count <= limits.maxSections else {
      throw .limitExceeded(
        limit: "maxSections", value: limits.maxSections,
        reason:
          "\(feed) would have \(counted(count, "section")); choose a \"section\" with fewer values, or start feedd with a "
          + "larger --max-sections")
    }
    guard let graph, graph.hasParents(number) else { return }
    try graph.checkParents(of: graph.table[number], sections: count - countBefore, limits)
  }

  /// Records that a row of the prepared section was inserted at `row`. Returns the section's identifier.
  func didInsert(_ handle: UInt32, at row: Int, _ log: UndoLog) -> UInt32 {
    note(log)
    let id = takePrepared()
    add(handle, to: id, at: row, index: prepared.index)
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
    return remove(handle, next: row, version: elements.text(of: handle))
  }

  /// Records that a row will be removed. `didRemoveAll` must follow when the rows are removed. Returns the identifier of
  /// its section.
  func willRemove(_ handle: UInt32, _ log: UndoLog) -> UInt32 {
    note(log)
    return remove(handle, next: nil, version: elements.text(of: handle))
  }

  /// Finds the first rows of the sections after rows were removed. O(rows).
  func didRemoveAll(_ pace: Pace) {
    var last = KeyedSectionTable.none
    var row = 0
    flat.rows.forEach(in: 0..<flat.count) { handle in
      let id = sectionOf[Int(handle)]
      if id != last { table.setFirst(handle, of: id) }
      last = id
      row += 1
      if row & 31 == 0 { pace.spend() }
    }
  }

  /// Whether a row is in the prepared section.
  func isPrepared(for handle: UInt32) -> Bool { sectionOf[Int(handle)] == prepared.section }

  /// Records that the row at `row` got another key in its place and now belongs to the prepared section. Returns the
  /// identifier of its previous section.
  func didRekey(_ handle: UInt32, at row: Int, _ log: UndoLog) -> UInt32 {
    note(log)
    let former = remove(handle, next: row + 1, version: elements.text(of: handle))
    add(handle, to: takePrepared(), at: row)
    return former
  }

  /// Undoes `didRemove` and `willRemove`: the row is at `row` again.
  func undoRemoval(of handle: UInt32, from id: UInt32, at row: Int) { add(handle, to: id, at: row) }

  /// Undoes `didInsert`; the rows after it now begin at `row`.
  func undoInsertion(of handle: UInt32, at row: Int) { remove(handle, next: row, version: nil) }

  /// Undoes `didRekey`.
  func undoRekey(of handle: UInt32, from id: UInt32, at row: Int) {
    remove(handle, next: row + 1, version: nil)
    add(handle, to: id, at: row)
  }

  /// Adds the row at `row` to a section.
  ///
  /// - Parameter index: the index of the section if it has no other rows, -1 if it is not known.
  private func add(_ handle: UInt32, to id: UInt32, at row: Int, index: Int = -1) {
    while sectionOf.count <= Int(handle) { sectionOf.append(0) }
    sectionOf[Int(handle)] = id
    if !table.addRow(to: id) {
      if flat.rows.isItem(table.first(of: id), after: row) { table.setFirst(handle, of: id) }
      return
    }
    assert(index < 0 || index == self.index(ofSectionAt: row), "the prepared index is wrong")
    table.didFill(id, at: index >= 0 ? index : self.index(ofSectionAt: row), first: handle)
    isRestructured = true
  }

  /// Removes a row from its section. Returns the identifier of the section.
  ///
  /// - Parameters:
  ///   - next: the row after it; nil if rows will be removed later.
  ///   - version: see `KeyedSectionTable.didEmpty`.
  @discardableResult
  private func remove(_ handle: UInt32, next: Int?, version: ElementText?) -> UInt32 {
    let id = sectionOf[Int(handle)]
    if !table.removeRow(from: id) {
      if let next, table.first(of: id) == handle { table.setFirst(flat.rows[next], of: id) }
      return id
    }
    table.didEmpty(id, version: version)
    isRestructured = true
    return id
  }

  /// Finds the sections of all rows, which were inserted without the undo log into an empty list. O(rows).
  func adopt(_ pace: Pace) {
    assert(table.count == 0, "there are sections already")
    var last: (id: UInt32, handle: UInt32)?
    var row = 0
    flat.rows.forEach(in: 0..<flat.count) { handle in
      while sectionOf.count <= Int(handle) { sectionOf.append(0) }
      var id = last?.id ?? 0
      if let last, hasKey(last.handle, SortOrder.key(0, in: elements.text(of: handle).keys)) {
        table.appendRow(to: id)
      } else {
        id = table.append(first: handle)
      }
      sectionOf[Int(handle)] = id
      last = (id, handle)
      row += 1
      if row & 15 == 0 { pace.spend() }
    }
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

  /// Ends the commit.
  func endCommit() {
    isListed = false
    prepared = Prepared()
    if !operations.isEmpty { operations = ChangeAccumulator() }
    table.endCommit()
    #if CHECK_INVARIANTS
      if flat.count <= 64 { checkInvariants() }
    #endif
  }

  // MARK: Changes

  /// Converts a change of the rows of `flat` since the beginning of a scope to a change of the sections, in `result`,
  /// which is empty. If the change is not a single step, it may list moves of rows that did not move within their
  /// section.
  ///
  /// O((rows listed + sections touched) · log).
  func divide(_ flat: borrowing Change, since scope: Scope, into result: inout Change) {
    assert(flat.sectionsDeleted.isEmpty && flat.sectionsAdded.isEmpty, "the rows are in one section")
    let touched = scope == .operation ? table.touched.operation : table.touched.commit
    if touched.isEmpty {
      for index in flat.updated.indices { result.updated.append(path(ofFlat: Int(flat.updated[index].row))) }
    } else if touched.count == 1, flat.updated.isEmpty, flat.added.count + flat.deleted.count == 1 {
      divideRow(flat, touched[0], into: &result)
    } else {
      result = divided(flat, touched)
    }
  }

  /// Converts a change of one row that was added or deleted.
  private func divideRow(
    _ flat: borrowing Change, _ touched: KeyedSectionTable.Touched, into result: inout Change
  ) {
    let id = touched.id
    if table.rowCount(of: id) == 0 {
      let index = table.formerIndex(of: id) ?? index(ofSectionAt: Int(flat.deleted[0].row))
      result.sectionsDeleted.append(UInt32(index))
      return
    }
    let section = UInt32(table.index(of: id))
    if touched.before == 0 {
      result.sectionsAdded.append(SectionAddition(at: section, name: name(of: id)))
      result.added.append(IndexPath(section: section, row: 0))
    } else if flat.added.isEmpty {
      result.deleted.append(IndexPath(section: section, row: flat.deleted[0].row - UInt32(start(of: id))))
    } else {
      result.added.append(IndexPath(section: section, row: flat.added[0].row - UInt32(start(of: id))))
    }
  }

  private func divided(_ flat: borrowing Change, _ touched: [KeyedSectionTable.Touched]) -> Change {
    let (changed, ids) = changedSections(touched)
    var division = SectionDivision(changed) { name(of: ids[$0]) }
    division.reserve(deleted: flat.deleted.count, added: flat.added.count)
    for index in flat.deleted.indices { division.delete(Int(flat.deleted[index].row), index) }
    for index in flat.added.indices { division.add(Int(flat.added[index].row), index) }
    for index in flat.moves.indices { division.move(flat.moves[index]) }
    if flat.updated.isEmpty { return division.finish() }
    var map = ChangeMap(backward: copy flat)
    for index in flat.updated.indices {
      let row = Int(flat.updated[index].row)
      guard case .at(let before) = map.map(flat.updated[index]) else {
        preconditionFailure("a row is added and updated")
      }
      if !division.update(row, from: Int(before.row)) { division.update(path(ofFlat: row)) }
    }
    return division.finish()
  }

  /// The sections whose rows changed, in order, with their identifiers.
  private func changedSections(
    _ touched: [KeyedSectionTable.Touched]
  ) -> (changed: [SectionDivision.Changed], ids: [UInt32]) {
    let places = places(of: touched)
    var changed: [SectionDivision.Changed] = []
    var ids: [UInt32] = []
    changed.reserveCapacity(places.count)
    ids.reserveCapacity(places.count)
    var (rows, gone, new) = (0, 0, 0)
    for (place, index, start) in places {
      let (before, now) = (touched[place].before, table.rowCount(of: touched[place].id))
      changed.append(
        .init(
          before: before, now: now, indexBefore: index + gone - new, index: index, startBefore: start + rows,
          start: start))
      ids.append(touched[place].id)
      rows += before - now
      if now == 0 { gone += 1 }
      if before == 0 { new += 1 }
    }
    return (changed, ids)
  }

  /// The places in `touched` of the sections that have or had rows, in order, each with the index and the start that the
  /// section has, or would have.
  private func places(of touched: [KeyedSectionTable.Touched]) -> [(place: Int, index: Int, start: Int)] {
    var having: [(key: Int, place: Int)] = []
    var gone: [(key: Int, place: Int)] = []
    having.reserveCapacity(touched.count)
    for (place, section) in touched.enumerated() {
      if table.rowCount(of: section.id) > 0 {
        having.append((table.index(of: section.id), place))
      } else if section.before > 0 {
        gone.append((table.goneIndex(of: section.id), place))
      }
    }
    having.sort { $0.key < $1.key }
    gone.sort { $0.key < $1.key }
    var places: [(place: Int, index: Int, start: Int)] = []
    places.reserveCapacity(having.count + gone.count)
    var next = 0
    var (row, index) = (0, 0)
    for (_, place) in gone {
      guard let key = table.goneKey(of: touched[place].id) else { preconditionFailure("a section has no key") }
      if !isBefore(key, row: row) {
        row = firstRow(after: key)
        index = row < flat.count ? table.index(of: sectionOf[Int(flat.rows[row])]) : table.count
      }
      while next < having.count, having[next].key < index {
        places.append((having[next].place, having[next].key, start(of: touched[having[next].place].id)))
        next += 1
      }
      places.append((place, index, row))
    }
    for (index, place) in having[next...] { places.append((place, index, start(of: touched[place].id))) }
    return places
  }

  /// Whether a section key is less than that of the row at `row`, or there is no such row.
  private func isBefore(_ key: UnsafeRawBufferPointer, row: Int) -> Bool {
    row == flat.count || isAfter(key, flat.rows[row])
  }

  /// The first row whose section key is greater than `key`, which no row has. O(log rows).
  private func firstRow(after key: UnsafeRawBufferPointer) -> Int {
    flat.rows.upperBound(key: SortOrder.prefix(of: key)) { isAfter(key, $0) }
  }

  /// Whether the section key of an element is greater than `key`.
  private func isAfter(_ key: UnsafeRawBufferPointer, _ handle: UInt32) -> Bool {
    SortOrder.compare(SortOrder.key(0, in: elements.text(of: handle).keys), key) > 0
  }

  // MARK: Snapshots

  /// Returns a snapshot of each section.
  func makeSnapshots() -> [any SectionSnapshot] {
    let rows = KeyedRows(flat.makeSnapshot())
    return table.rowCounts.map { KeyedSectionSnapshot(count: $0, rows) }
  }

  // MARK: Invariants

  /// O(rows · log).
  func checkInvariants() {
    table.checkInvariants()
    var row = 0
    for index in 0..<count {
      let id = table[index]
      precondition(rowCount(of: id) > 0 && start(of: id) == row, "a section begins elsewhere")
      let key = SortOrder.key(0, in: elements.text(of: flat.rows[row]).keys)
      precondition(row == 0 || !isBefore(key, row: row - 1), "sections are out of order")
      for row in row..<(row + rowCount(of: id)) {
        let handle = flat.rows[row]
        precondition(sectionOf[Int(handle)] == id, "a row is in another section")
        precondition(hasKey(handle, key), "a row has another key than its section")
      }
      row += rowCount(of: id)
    }
    precondition(row == flat.count, "a row is in no section")
  }
}
