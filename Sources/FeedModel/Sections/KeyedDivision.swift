import FeedChange

/// Converts a change of all rows of a collection with sections by value to a change of the sections, after the change.
///
///     KeyedDivision(of: keyed, since: .operation, isStep: true).divide(change, into: &result)
///
/// The changes of one row, which are most of all, are converted directly. For others, it finds the sections that changed, in
/// order, and lets `SectionDivision` divide the rows among them. The rows before the change are known only by the counts of
/// the sections that it touched, and by the keys of those that have no rows any more.
struct KeyedDivision {
  private let sections: KeyedSections
  private let scope: KeyedSections.Scope
  /// Whether the change is a single step: of one row, or the deletion of several.
  private let isStep: Bool
  private let pace: Pace

  init(of sections: KeyedSections, since scope: KeyedSections.Scope, isStep: Bool, _ pace: Pace) {
    (self.sections, self.scope, self.isStep, self.pace) = (sections, scope, isStep, pace)
  }

  private var table: KeyedSectionTable { sections.table }

  /// Converts a change of one section with all rows. `result` is empty. If the change is not a single step, the result may
  /// list moves of rows that did not move within their section.
  ///
  /// O((rows listed + sections touched) · log).
  func divide(_ flat: borrowing Change, into result: inout Change) {
    assert(flat.hasSameSections, "the rows are in one section")
    let touched = table.touched(in: scope)
    if touched.isEmpty {
      divideUpdates(flat, into: &result)
    } else if touched.count == 1, flat.updated.isEmpty, flat.added.count + flat.deleted.count == 1 {
      divideRow(flat, touched[0], into: &result)
    } else if isStep, flat.moves.count == 1 {
      divideMove(flat.deleted[0].row, flat.added[0].row, flat.moves[0].keepsElement, touched, into: &result)
    } else if isStep, flat.updated.count == 1 {
      divideMove(flat.updated[0].row, flat.updated[0].row, false, touched, into: &result)
    } else {
      result = divided(flat, touched)
    }
  }

  // MARK: One row

  /// Converts a change of one row that was added or deleted.
  private func divideRow(_ flat: borrowing Change, _ touched: KeyedSectionTable.Touched, into result: inout Change) {
    let id = touched.id
    if table.rowCount(of: id) == 0 {
      result.sectionsDeleted.append(UInt32(indexBefore(ofEmptied: id, at: flat.deleted[0].row)))
      return
    }
    let section = UInt32(table.index(of: id))
    if touched.before == 0 {
      result.sectionsAdded.append(sections.addition(of: id, at: section))
      result.added.append(IndexPath(section: section, row: 0))
    } else if flat.added.isEmpty {
      result.deleted.append(IndexPath(section: section, row: flat.deleted[0].row - UInt32(sections.start(of: id))))
    } else {
      result.added.append(IndexPath(section: section, row: flat.added[0].row - UInt32(sections.start(of: id))))
    }
  }

  /// The index of the only section that lost all rows, which began at `row`, if no other section changed before.
  private func indexBefore(ofEmptied id: UInt32, at row: UInt32) -> Int {
    if let last = table.emptied(in: scope).last, last.id == id, last.index >= 0 { return last.index }
    return row == 0 ? 0 : table.index(of: table.section(of: sections.flat.rows[Int(row) - 1])) + 1
  }

  /// Converts a single step that took a row from one place to another, of which at least one section is different.
  /// - Parameter touched: the section that the row left, and the one that it entered if that is another.
  private func divideMove(
    _ from: UInt32, _ to: UInt32, _ keepsElement: Bool, _ touched: [KeyedSectionTable.Touched],
    into result: inout Change
  ) {
    let (left, entered) = (touched[0].id, touched[touched.count - 1].id)
    let (section, start) = (table.index(of: entered), UInt32(sections.start(of: entered)))
    let isNew = touched[touched.count - 1].before == 0
    var gone: IndexPath?
    if left == entered {
      result.deleted.append(IndexPath(section: UInt32(section), row: from - start))
    } else if table.rowCount(of: left) == 0 {
      let index = UInt32(indexBefore(ofEmptied: left, at: from))
      result.sectionsDeleted.append(index)
      gone = IndexPath(section: index, row: 0)
    } else {
      let index = table.index(of: left)
      let isShifted = section < index
      let startBefore = UInt32(sections.start(of: left)) - (isShifted ? 1 : 0)
      result.deleted.append(IndexPath(section: UInt32(isShifted && isNew ? index - 1 : index), row: from - startBefore))
    }
    if isNew { result.sectionsAdded.append(sections.addition(of: entered, at: UInt32(section))) }
    result.added.append(IndexPath(section: UInt32(section), row: to - start))
    if let gone {
      result.transfers.append(Transfer(from: gone, added: 0, keepsElement: keepsElement))
    } else {
      result.moves.append(Move(deleted: 0, added: 0, keepsElement: keepsElement))
    }
  }

  // MARK: Rows that stay in sections that stay

  /// Converts a change that replaces elements, and touches no section.
  private func divideUpdates(_ flat: borrowing Change, into result: inout Change) {
    assert(flat.onlyUpdates, "a row changed its section")
    if isStep && flat.updated.count == 1 {
      return result.updated.append(sections.path(ofPrepared: Int(flat.updated[0].row)))
    }
    guard table.isDense(flat.updated.count) else {
      for index in flat.updated.indices { result.updated.append(sections.path(ofFlat: Int(flat.updated[index].row))) }
      return
    }
    result.updated.reserveCapacity(flat.updated.count)
    var (next, section, start) = (0, UInt32(0), UInt32(0))
    table.forEach { _, count in
      while next < flat.updated.count, flat.updated[next].row < start + UInt32(count) {
        result.updated.append(IndexPath(section: section, row: flat.updated[next].row - start))
        next += 1
      }
      section += 1
      start += UInt32(count)
    }
  }

  // MARK: Many rows

  private func divided(_ flat: borrowing Change, _ touched: [KeyedSectionTable.Touched]) -> Change {
    let changed = ChangedSections(of: sections, since: scope).find(touched)
    var division = SectionDivision(changed) { sections.addition(of: $0, at: $1) }
    division.reserve(deleted: flat.deleted.count, added: flat.added.count)
    for index in flat.deleted.indices {
      division.delete(flat.deleted[index].row, index)
      if index & 31 == 31 { pace.spend() }
    }
    for index in flat.added.indices {
      division.add(flat.added[index].row, index)
      if index & 31 == 31 { pace.spend() }
    }
    for index in flat.moves.indices {
      division.move(flat.moves[index])
      if index & 31 == 31 { pace.spend() }
    }
    if flat.updated.isEmpty { return division.finish() }
    var map = ChangeMap(backward: copy flat)
    for index in flat.updated.indices {
      let row = flat.updated[index].row
      guard case .at(let before) = map.map(flat.updated[index]) else {
        preconditionFailure("a row is added and updated")
      }
      if !division.update(row, from: before.row) { division.update(sections.path(ofFlat: Int(row))) }
      if index & 7 == 7 { pace.spend() }
    }
    return division.finish()
  }
}

/// Finds the sections by value whose rows changed in a scope, in order.
///
/// A section that lost its last row and one that was created later can have the same key: one section, which changed.
private struct ChangedSections {
  private let sections: KeyedSections
  private let scope: KeyedSections.Scope

  init(of sections: KeyedSections, since scope: KeyedSections.Scope) { (self.sections, self.scope) = (sections, scope) }

  private var table: KeyedSectionTable { sections.table }

  /// A section that had rows and lost the last one.
  private struct Gone {
    let prefix: UInt64
    let version: ElementText
    let before: UInt32
    /// The index that it would have now, and the number of rows before it.
    var index: UInt32 = 0
    var start: UInt32 = 0
    /// The section that now has the key; `KeyedSectionTable.none` if there is none.
    var successor = KeyedSectionTable.none

    var key: SectionKey { SectionKey(SortOrder.key(0, in: version.keys)) }
    static func < (a: Gone, b: Gone) -> Bool { a.prefix == b.prefix ? a.key < b.key : a.prefix < b.prefix }
  }

  /// Returns the sections that changed. O(sections + rows), or O(touched · log rows) if few are touched.
  func find(_ touched: [KeyedSectionTable.Touched]) -> [SectionDivision.Changed] {
    let gone = goneSections()
    var changed: [SectionDivision.Changed] = []
    changed.reserveCapacity(touched.count)
    // How many more rows and sections there were before the sections that follow.
    var (moreRows, moreSections) = (UInt32(0), UInt32(0))
    func add(_ id: UInt32, before: UInt32, now: UInt32, index: UInt32, start: UInt32) {
      changed.append(
        .init(
          id: id, before: before, now: now, indexBefore: index &+ moreSections, index: index,
          startBefore: start &+ moreRows, start: start))
      moreRows &+= before &- now
      moreSections &+= (now == 0 ? 1 : 0) &- (before == 0 ? 1 : 0)
    }
    var next = 0
    func addGone(upTo index: UInt32) {
      while next < gone.count, gone[next].index <= index {
        add(KeyedSectionTable.none, before: gone[next].before, now: 0, index: gone[next].index, start: gone[next].start)
        next += 1
      }
    }
    forEachPresent(touched) { section in
      addGone(upTo: section.index)
      var before = section.before
      if next < gone.count, gone[next].successor == section.id {
        before = gone[next].before
        next += 1
      }
      add(section.id, before: before, now: section.count, index: section.index, start: section.start)
    }
    addGone(upTo: .max)
    return changed
  }

  private struct Present {
    let id: UInt32
    let before: UInt32
    let count: UInt32
    let index: UInt32
    let start: UInt32
  }

  /// Calls `body` with the touched sections that have rows, in order.
  private func forEachPresent(_ touched: [KeyedSectionTable.Touched], _ body: (Present) -> Void) {
    if table.isDense(touched.count) {
      var (index, start) = (UInt32(0), UInt32(0))
      table.forEach { id, count in
        if let before = table.rowCount(of: id, before: scope) {
          body(Present(id: id, before: UInt32(before), count: UInt32(count), index: index, start: start))
        }
        index += 1
        start += UInt32(count)
      }
      return
    }
    var present: [Present] = []
    present.reserveCapacity(touched.count)
    for section in touched {
      let (id, count) = (section.id, table.rowCount(of: section.id))
      if count == 0 { continue }
      present.append(
        Present(
          id: id, before: section.before, count: UInt32(count), index: UInt32(table.index(of: id)),
          start: UInt32(sections.start(of: id))))
    }
    present.sort { $0.index < $1.index }
    for section in present { body(section) }
  }

  // MARK: Sections without rows

  /// The sections that had rows and have none, in order.
  private func goneSections() -> [Gone] {
    var gone: [Gone] = []
    let emptied = table.emptied(in: scope)
    gone.reserveCapacity(emptied.count)
    // Many rows are removed from the last to the first.
    for section in emptied.reversed() {
      guard let before = table.rowCount(of: section.id, before: scope), before > 0 else { continue }
      let prefix = SortOrder.prefix(of: SortOrder.key(0, in: section.version.keys))
      gone.append(Gone(prefix: prefix, version: section.version, before: UInt32(before)))
    }
    gone.sort(by: <)
    if gone.count > 16 && gone.count > sections.flat.count / 8 {
      locateAll(&gone)
    } else {
      for place in gone.indices { locate(&gone[place]) }
    }
    return gone
  }

  /// O(log rows).
  private func locate(_ gone: inout Gone) {
    let (rows, key) = (sections.flat.rows, gone.key)
    let start = rows.gap(key: key.greatest) { sections.compare(($0, key.greatest), key) > 0 }
    let (before, after) = rows.neighbours(of: start)
    gone.start = UInt32(start.row)
    gone.index = UInt32(after.map { table.index(of: table.section(of: $0.item)) } ?? table.count)
    if let before, sections.compare(before, key) == 0 { gone.successor = table.section(of: before.item) }
  }

  /// Like `locate`, by one pass over all rows. O(gone + rows).
  private func locateAll(_ gone: inout [Gone]) {
    if sections.flat.count == 0 { return }
    var next = 0
    var (row, index) = (UInt32(0), UInt32(0))
    var last = KeyedSectionTable.none
    sections.flat.rows.forEachWithKey { handle, key in
      defer { row += 1 }
      let id = table.section(of: handle)
      if id == last { return }
      if row > 0 { index += 1 }
      last = id
      while next < gone.count {
        let order = sections.compare((handle, key), gone[next].key)
        if order < 0 { break }
        gone[next].index = order == 0 ? index + 1 : index
        gone[next].start = row
        if order == 0 { gone[next].successor = id }
        next += 1
      }
    }
    for place in next..<gone.count { (gone[place].index, gone[place].start) = (index + 1, row) }
  }
}
