import FeedChange
import FeedJSON

/// The sections of a collection with one section for each value of a key (`Protocol/README.md`, "Sections by value").
///
/// The rows of all sections are in one tree, ordered by the section key first, so an element costs the same in one
/// section as in many. A ``KeyedSectionTable`` finds sections by key. A section exists while it has rows.
///
/// Operations change rows of the first tree; `divide` converts the change to one of sections. For this purpose, each
/// section stores its row counts before the operation and before the commit.
///
/// Invariant: every row is counted in the section of its key.
final class KeyedSections {
  /// The period over which row counts are compared.
  enum Scope {
    case operation
    case commit
  }

  /// The number of the feed; set by `bind`.
  private(set) var number: FeedNumber = -1
  private unowned var graph: FeedGraph?
  let feed: String
  /// All rows, as one section.
  let flat: RowSection
  private var table = KeyedSectionTable()
  /// The section of each row, by handle.
  private var sectionOf: [UInt32] = []
  /// The section of the next row that is inserted or changed.
  private var prepared: UInt32 = 0

  private var scopes: (operation: UInt64, commit: UInt64) = (1, 1)
  private var touched: (operation: [UInt32], commit: [UInt32]) = ([], [])
  /// The number of sections before the operation.
  private var countBefore = 0
  /// Whether sections were added or removed since the feeds that show them were updated.
  private var isRestructured = false
  /// Whether the undo log of the commit lists this object.
  private var isListed = false
  /// The composed changes of the operations of the commit, as changes of one section.
  var operations = ChangeAccumulator()

  init(feed: String, flat: RowSection) {
    self.feed = feed
    self.flat = flat
  }

  /// Returns the same sections over a copy of their rows. The open commit must not have changed them. O(rows).
  func copy(_ flat: RowSection, _ pace: Pace) -> KeyedSections { KeyedSections(copying: self, flat, pace) }

  private init(copying other: KeyedSections, _ flat: RowSection, _ pace: Pace) {
    assert(!other.isListed, "the commit has changed the sections")
    (feed, self.flat, number, graph) = (other.feed, flat, other.number, other.graph)
    (sectionOf, scopes, countBefore) = (other.sectionOf, other.scopes, other.countBefore)
    table = other.table.copy(owner: self, pace)
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
  subscript(index: Int) -> KeyedSection { table[index] }

  private var elements: ElementTable { flat.elements }

  /// The handle of an existing row. O(log rows).
  func handle(at path: IndexPath) -> UInt32 {
    flat.rows[start(of: self[Int(path.section)]) + Int(path.row)]
  }

  func element(at path: IndexPath) -> ElementText { elements.text(of: handle(at: path)) }

  /// The path of a row; nil if the handle has no row. O(log rows).
  func path(of handle: UInt32) -> IndexPath? { flat.rows.row(of: handle).map { path(ofFlat: $0, handle) } }

  /// The path of a row of `flat`. O(log rows).
  func path(ofFlat row: Int) -> IndexPath { path(ofFlat: row, flat.rows[row]) }

  private func path(ofFlat row: Int, _ handle: UInt32) -> IndexPath {
    let section = table.section(sectionOf[Int(handle)])
    return IndexPath(section: UInt32(table.index(of: section)), row: UInt32(row - start(of: section)))
  }

  /// The number of rows before those of a section, which may be empty. O(log rows).
  func start(of section: KeyedSection) -> Int {
    section.key.withUnsafeBytes { key in
      flat.rows.upperBound(key: section.prefix) { other in
        SortOrder.compare(SortOrder.key(0, in: elements.text(of: other).keys), key) >= 0
      }
    }
  }

  // MARK: Mutations

  /// Finds or creates the section of the next row that is inserted or changed.
  ///
  /// - Parameters:
  ///   - known: the row, if it exists and may leave its section.
  ///   - name: returns the name of a new section.
  /// - Throws: `limitExceeded` if there are too many sections here or in a feed that shows this one.
  func prepare(
    _ key: UnsafeRawBufferPointer, for known: UInt32?, _ limits: Limits, name: () -> String
  ) throws(FeedError) {
    let present = known.map { table.section(sectionOf[Int($0)]) }
    if let present, present.key.withUnsafeBytes({ SortOrder.compare($0, key) == 0 }) {
      prepared = present.id
      return
    }
    if let found = table.find(key).section {
      prepared = found.id
      return
    }
    let count = present?.count == 1 ? table.count : table.count + 1
    try checkRoom(for: count, limits)
    prepared = table.emptySection(key, owner: self, name: name).id
  }

  /// Throws if there is no room for this number of sections.
  func checkRoom(for count: Int, _ limits: Limits) throws(FeedError) {
    guard count <= limits.maxSections else {
      throw .limitExceeded(
        limit: "maxSections", value: limits.maxSections,
        reason:
          "\(feed) would have \(counted(count, "section")); choose a \"section\" with fewer values, or start feedd with a "
          + "larger --max-sections")
    }
    try graph?.checkParents(of: graph?.table[number], sections: count - countBefore, limits)
  }

  /// Records that a row of the prepared section was inserted. Returns the section's identifier.
  func didInsert(_ handle: UInt32, _ log: UndoLog) -> UInt32 {
    note(log)
    add(handle, to: prepared)
    return prepared
  }

  /// Records that a row was removed or will be removed. Returns the identifier of its section.
  func didRemove(_ handle: UInt32, _ log: UndoLog) -> UInt32 {
    note(log)
    return remove(handle)
  }

  /// Whether a row is in the prepared section.
  func isPrepared(for handle: UInt32) -> Bool { sectionOf[Int(handle)] == prepared }

  /// Records that a row got another key in its place and now belongs to the prepared section. Returns the identifier of
  /// its previous section.
  func didRekey(_ handle: UInt32, _ log: UndoLog) -> UInt32 {
    note(log)
    let former = remove(handle)
    add(handle, to: prepared)
    return former
  }

  /// Adds a row to a section. Also undoes `didRemove`.
  func add(_ handle: UInt32, to id: UInt32) {
    while sectionOf.count <= Int(handle) { sectionOf.append(0) }
    sectionOf[Int(handle)] = id
    let section = table.section(id)
    touch(section)
    section.count += 1
    if section.count > 1 { return }
    table.didFill(section)
    isRestructured = true
  }

  /// Removes a row from its section. Also undoes `didInsert`. Returns the identifier of the section.
  @discardableResult
  func remove(_ handle: UInt32) -> UInt32 {
    let id = sectionOf[Int(handle)]
    let section = table.section(id)
    touch(section)
    section.count -= 1
    if section.count > 0 { return id }
    table.didEmpty(section)
    isRestructured = true
    return id
  }

  /// Counts a row that was inserted without the undo log: it was restored, or moved to a new state.
  func adopt(_ handle: UInt32, name: (ElementText) -> String) {
    let text = elements.text(of: handle)
    let key = SortOrder.key(0, in: text.keys)
    add(handle, to: (table.find(key).section ?? table.emptySection(key, owner: self) { name(text) }).id)
  }

  /// Ends a series of `adopt`.
  func didAdopt() {
    _ = endOperation()
    endCommit()
  }

  private func touch(_ section: KeyedSection) {
    if section.operation.scope != scopes.operation {
      section.operation = (scopes.operation, section.count)
      touched.operation.append(section.id)
    }
    if section.commit.scope != scopes.commit {
      section.commit = (scopes.commit, section.count)
      touched.commit.append(section.id)
    }
  }

  private func note(_ log: UndoLog) {
    if isListed { return }
    isListed = true
    log.append(self)
  }

  // MARK: Scopes

  /// Ends an operation or its rollback. Returns whether sections were added or removed since the last call.
  func endOperation() -> Bool {
    scopes.operation += 1
    touched.operation.removeAll(keepingCapacity: touched.operation.count <= 1024)
    countBefore = table.count
    defer { isRestructured = false }
    return isRestructured
  }

  /// Ends the commit: releases sections without rows.
  func endCommit() {
    isListed = false
    scopes.commit += 1
    touched.commit.removeAll(keepingCapacity: touched.commit.count <= 1024)
    if !operations.isEmpty { operations = ChangeAccumulator() }
    table.releaseEmpty()
    #if CHECK_INVARIANTS
      if flat.count <= 64 { checkInvariants() }
    #endif
  }

  // MARK: Changes

  /// Converts a change of the rows of `flat` since the beginning of a scope to a change of the sections. If the change
  /// is not a single step, it may list moves of rows that did not move within their section.
  ///
  /// O((rows listed + sections touched) · log).
  func divide(_ flat: borrowing Change, since scope: Scope) -> Change {
    assert(flat.sectionsDeleted.isEmpty && flat.sectionsAdded.isEmpty, "the rows are in one section")
    var division = SectionDivision(changedSections(since: scope))
    if division.isEmpty {
      return Change(updated: flat.updated.map { place(of: $0) })
    }
    for (index, path) in flat.deleted.enumerated() { division.delete(Int(path.row), index) }
    for (index, path) in flat.added.enumerated() { division.add(place(of: path), index) }
    for move in flat.moves { division.move(move) }
    var map = ChangeMap(backward: copy flat)
    for path in flat.updated {
      guard case .at(let before) = map.map(path) else { preconditionFailure("a row is added and updated") }
      let section = table.section(sectionOf[Int(self.flat.rows[Int(path.row)])])
      division.update(place(of: path), from: Int(before.row), in: section.id)
    }
    return division.finish()
  }

  private func place(of row: IndexPath) -> IndexPath {
    path(ofFlat: Int(row.row))
  }

  /// The sections whose rows changed in a scope, by key.
  private func changedSections(since scope: Scope) -> [SectionDivision.Changed] {
    var sections = (scope == .operation ? touched.operation : touched.commit).map(table.section)
    if sections.count > 1 { sections.sort { $0.key.lexicographicallyPrecedes($1.key) } }
    var changed: [SectionDivision.Changed] = []
    var (rows, gone, new) = (0, 0, 0)
    for section in sections {
      let before = scope == .operation ? section.operation.count : section.commit.count
      if before == 0 && section.count == 0 { continue }
      let index = section.count > 0 ? table.index(of: section) : table.place(of: section)
      changed.append(
        .init(
          id: section.id, name: section.name, before: before, now: section.count, indexBefore: index + gone - new,
          index: index, startBefore: start(of: section) + rows))
      rows += before - section.count
      if before > 0 && section.count == 0 { gone += 1 }
      if before == 0 { new += 1 }
    }
    return changed
  }

  // MARK: Snapshots

  /// Returns a snapshot of each section.
  func makeSnapshots() -> [any SectionSnapshot] {
    let rows = KeyedRows(flat.makeSnapshot())
    return (0..<count).map { KeyedSectionSnapshot(self[$0], rows) }
  }

  // MARK: Invariants

  /// O(rows · log).
  func checkInvariants() {
    table.checkInvariants()
    var row = 0
    for index in 0..<count {
      let section = self[index]
      precondition(section.count > 0 && start(of: section) == row, "a section begins elsewhere")
      for handle in row..<(row + section.count) {
        let handle = flat.rows[handle]
        precondition(sectionOf[Int(handle)] == section.id, "a row is in another section")
        let isOwn = section.key.withUnsafeBytes {
          SortOrder.compare(SortOrder.key(0, in: elements.text(of: handle).keys), $0) == 0
        }
        precondition(isOwn, "a row has another key than its section")
      }
      row += section.count
    }
    precondition(row == flat.count, "a row is in no section")
  }
}
