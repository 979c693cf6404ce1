/// Finds the sections by value whose rows changed in a scope, in order.
///
/// A section that lost its last row and one that was created later can have the same key. They are one section, which
/// changed.
struct ChangedSections {
  private let sections: KeyedSections
  private let scope: KeyedSections.Scope

  init(of sections: KeyedSections, since scope: KeyedSections.Scope) {
    (self.sections, self.scope) = (sections, scope)
  }

  private var table: KeyedSectionTable { sections.table }

  /// A section that had rows and lost the last one.
  private struct Gone {
    /// The first eight bytes of its key.
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
  ///
  /// - Parameter touched: the sections that the scope touched.
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

  /// A touched section with rows.
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
