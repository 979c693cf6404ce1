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

  init(of sections: KeyedSections, since scope: KeyedSections.Scope, isStep: Bool) {
    (self.sections, self.scope, self.isStep) = (sections, scope, isStep)
  }

  private var table: KeyedSectionTable { sections.table }

  /// Converts a change of one section with all rows. `result` is empty. If the change is not a single step, the result may
  /// list moves of rows that did not move within their section.
  ///
  /// O((rows listed + sections touched) · log).
  func divide(_ flat: borrowing Change, into result: inout Change) {
    assert(flat.sectionsDeleted.isEmpty && flat.sectionsAdded.isEmpty, "the rows are in one section")
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
  private func divideRow(
    _ flat: borrowing Change, _ touched: KeyedSectionTable.Touched, into result: inout Change
  ) {
    let id = touched.id
    if table.rowCount(of: id) == 0 {
      result.sectionsDeleted.append(UInt32(indexBefore(ofEmptied: id, at: flat.deleted[0].row)))
      return
    }
    let section = UInt32(table.index(of: id))
    if touched.before == 0 {
      result.sectionsAdded.append(SectionAddition(at: section, name: sections.name(of: id)))
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
  ///
  /// - Parameter touched: the section that the row left, and the one that it entered if that is another.
  private func divideMove(
    _ from: UInt32, _ to: UInt32, _ keepsElement: Bool, _ touched: [KeyedSectionTable.Touched],
    into result: inout Change
  ) {
    let (left, entered) = (touched[0].id, touched[touched.count - 1].id)
    let (section, start) = (table.index(of: entered), UInt32(sections.start(of: entered)))
    let isNew = touched[touched.count - 1].before == 0
    if left == entered {
      result.deleted.append(IndexPath(section: UInt32(section), row: from - start))
    } else if table.rowCount(of: left) == 0 {
      result.sectionsDeleted.append(UInt32(indexBefore(ofEmptied: left, at: from)))
    } else {
      let index = table.index(of: left)
      let isShifted = section < index
      let startBefore = UInt32(sections.start(of: left)) - (isShifted ? 1 : 0)
      result.deleted.append(
        IndexPath(section: UInt32(isShifted && isNew ? index - 1 : index), row: from - startBefore))
    }
    if isNew { result.sectionsAdded.append(SectionAddition(at: UInt32(section), name: sections.name(of: entered))) }
    result.added.append(IndexPath(section: UInt32(section), row: to - start))
    if !result.deleted.isEmpty { result.moves.append(Move(deleted: 0, added: 0, keepsElement: keepsElement)) }
  }

  // MARK: Rows that stay in sections that stay

  /// Converts a change that replaces elements, and touches no section.
  private func divideUpdates(_ flat: borrowing Change, into result: inout Change) {
    assert(flat.onlyUpdates, "a row changed its section")
    if isDense(flat.updated.count) {
      var next = 0
      forEachSection { section in
        while next < flat.updated.count, Int(flat.updated[next].row) < section.start + section.count {
          let row = UInt32(Int(flat.updated[next].row) - section.start)
          result.updated.append(IndexPath(section: UInt32(section.index), row: row))
          next += 1
        }
      }
    } else {
      for index in flat.updated.indices { result.updated.append(sections.path(ofFlat: Int(flat.updated[index].row))) }
    }
  }

  /// Whether a pass over all sections is faster than to look up so many.
  private func isDense(_ count: Int) -> Bool { count > 16 && count > table.count / 8 }

  /// A section with rows.
  private struct Present {
    let id: UInt32
    let index: Int
    let start: Int
    let count: Int
  }

  /// Calls `body` with each section, in order.
  private func forEachSection(_ body: (Present) -> Void) {
    var (index, start) = (0, 0)
    table.forEach { id, count in
      body(Present(id: id, index: index, start: start, count: count))
      index += 1
      start += count
    }
  }

  // MARK: Many rows

  private func divided(_ flat: borrowing Change, _ touched: [KeyedSectionTable.Touched]) -> Change {
    let (changed, ids) = changedSections(touched)
    var division = SectionDivision(changed) { sections.name(of: ids[$0]) }
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
      if !division.update(row, from: Int(before.row)) { division.update(sections.path(ofFlat: row)) }
    }
    return division.finish()
  }

  /// A section without rows that had some, with its key and the section with rows that follows it.
  private struct Gone {
    let key: SectionKey
    let before: Int
    var index = 0
    var start = 0
    /// The section that now has the key, if there is one.
    var successor: UInt32?
  }

  /// The sections whose rows changed, in order, with the identifiers of those that have rows.
  private func changedSections(
    _ touched: [KeyedSectionTable.Touched]
  ) -> (changed: [SectionDivision.Changed], ids: [UInt32]) {
    var gone = goneSections()
    let present = isDense(touched.count) ? locateAll(&gone, touched.count) : locate(&gone, touched)
    var changed: [SectionDivision.Changed] = []
    var ids: [UInt32] = []
    changed.reserveCapacity(present.count + gone.count)
    ids.reserveCapacity(present.count + gone.count)
    // How many more rows and sections there were before the sections that follow.
    var (moreRows, moreSections) = (0, 0)
    func add(_ id: UInt32, before: Int, now: Int, index: Int, start: Int) {
      changed.append(
        .init(
          before: before, now: now, indexBefore: index + moreSections, index: index, startBefore: start + moreRows,
          start: start))
      ids.append(id)
      moreRows += before - now
      moreSections += (now == 0 ? 1 : 0) - (before == 0 ? 1 : 0)
    }
    var next = 0
    for section in present {
      while next < gone.count, gone[next].index <= section.index {
        add(KeyedSectionTable.none, before: gone[next].before, now: 0, index: gone[next].index, start: gone[next].start)
        next += 1
      }
      var before = table.rowCount(of: section.id, before: scope) ?? 0
      if next < gone.count, gone[next].successor == section.id {
        before = gone[next].before
        next += 1
      }
      add(section.id, before: before, now: section.count, index: section.index, start: section.start)
    }
    for section in gone[next...] {
      add(KeyedSectionTable.none, before: section.before, now: 0, index: section.index, start: section.start)
    }
    return (changed, ids)
  }

  /// The sections that had rows and have none, in order. They are not located.
  private func goneSections() -> [Gone] {
    var gone: [Gone] = []
    let emptied = table.emptied(in: scope)
    gone.reserveCapacity(emptied.count)
    for section in emptied.reversed() {
      guard let before = table.rowCount(of: section.id, before: scope), before > 0 else { continue }
      gone.append(Gone(key: SectionKey(SortOrder.key(0, in: section.version.keys)), before: before))
    }
    // Many rows are removed from the last to the first.
    gone.sort { $0.key < $1.key }
    return gone
  }

  /// Locates each section. Returns those of the touched sections that have rows, in order. O((gone + touched) · log).
  private func locate(_ gone: inout [Gone], _ touched: [KeyedSectionTable.Touched]) -> [Present] {
    for place in gone.indices { locate(&gone[place]) }
    var present: [Present] = []
    present.reserveCapacity(touched.count)
    for section in touched {
      let count = table.rowCount(of: section.id)
      if count == 0 { continue }
      let (index, start) = (table.index(of: section.id), sections.start(of: section.id))
      present.append(Present(id: section.id, index: index, start: start, count: count))
    }
    present.sort { $0.index < $1.index }
    return present
  }

  private func locate(_ gone: inout Gone) {
    let (rows, key) = (sections.flat.rows, gone.key)
    gone.start = rows.upperBound(key: key.greatest) { sections.compare(($0, key.greatest), key) > 0 }
    let (before, at) = rows.neighbours(of: gone.start)
    gone.index = at.map { table.index(of: table.section(of: $0.item)) } ?? table.count
    if let before, sections.compare(before, key) == 0 { gone.successor = table.section(of: before.item) }
  }

  /// Like `locate`, by one pass over all sections. O(gone + sections), or O(gone + rows) if many sections are gone.
  private func locateAll(_ gone: inout [Gone], _ count: Int) -> [Present] {
    if gone.count > sections.flat.count / 8 {
      locateByRows(&gone)
    } else {
      for place in gone.indices { locate(&gone[place]) }
    }
    var present: [Present] = []
    present.reserveCapacity(count)
    forEachSection { section in
      if table.rowCount(of: section.id, before: scope) != nil { present.append(section) }
    }
    return present
  }

  private func locateByRows(_ gone: inout [Gone]) {
    var next = 0
    var (row, index) = (0, -1)
    var last = KeyedSectionTable.none
    sections.flat.rows.forEachWithKey { handle, key in
      let id = table.section(of: handle)
      if id != last {
        last = id
        index += 1
        while next < gone.count {
          let order = sections.compare((handle, key), gone[next].key)
          if order < 0 { break }
          gone[next].index = order == 0 ? index + 1 : index
          gone[next].start = row
          if order == 0 { gone[next].successor = id }
          next += 1
        }
      }
      row += 1
    }
    for place in next..<gone.count { (gone[place].index, gone[place].start) = (table.count, row) }
  }
}
