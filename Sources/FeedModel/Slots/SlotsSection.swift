import FeedJSON

/// The one section of a slots feed. Its rows are looked up in the contents, not stored.
final class SlotsSection: FeedSection {
  let name: String
  private var plan: SlotsPlan
  /// The last layout, with the row counts of the contents for which it was created.
  private var cached: (rows: [Int], layout: SlotsLayout)?
  /// The version of `counts` for which `cached` is valid.
  private var cachedVersion: UInt64 = 0
  private let counts: RowCounts

  init(name: String, plan: SlotsPlan, counts: RowCounts) {
    (self.name, self.plan, self.counts) = (name, plan, counts)
  }

  func install(_ plan: SlotsPlan) {
    (self.plan, cached) = (plan, nil)
  }

  /// The layout of the current contents. O(1) if no row and no section of any feed was added or removed since the last
  /// call; otherwise O(sections of the contents), and O(pattern · types) if their counts changed.
  var layout: SlotsLayout {
    if cachedVersion == counts.version, let cached { return cached.layout }
    let rows = plan.contents.map { $0?.count ?? 0 }
    cachedVersion = counts.version
    if let cached, cached.rows == rows { return cached.layout }
    let fresh = SlotsLayout(plan.rule, counts: rows, former: cached?.layout)
    cached = (rows, fresh)
    return fresh
  }

  var count: Int { layout.count }

  func row(at index: Int) -> Row { row(for: layout.item(at: index)) }

  func element(at index: Int) -> ElementText { element(of: layout.item(at: index)) }

  func type(at index: Int) -> UnsafeRawBufferPointer {
    let item = layout.item(at: index)
    return plan.showsOwnTypes ? row(for: item).type : plan.typeNames[item.type].bytes
  }

  /// The rows, ascending, whose type in their content is not the name of their type here. O(rows).
  func rowsWithOwnType(_ pace: Pace?) -> [Int] {
    let layout = layout
    return (0..<layout.count).filter { index in
      pace?.spend()
      let item = layout.item(at: index)
      return !RowStore.equal(content(of: item).row(atFlat: item.index).type, plan.typeNames[item.type].bytes)
    }
  }

  func forEach(in range: Range<Int>, _ body: (Row) -> Void) {
    let layout = layout
    for index in range { body(row(for: layout.item(at: index))) }
  }

  func makeSnapshot(of range: Range<Int>) -> any SectionSnapshot {
    let layout = layout
    let own = TypeTable()
    var fixed: [Int: SlotsSnapshot.Fixed] = [:]
    var next = layout.fixed.next(at: range.lowerBound)
    while let position = next, position < range.upperBound {
      let row = row(for: layout.item(at: position))
      row.element.retain()
      fixed[position] = (row.element, own.code(of: row.type, in: row.element))
      next = layout.fixed.next(at: position + 1)
    }
    let contents = plan.contents.enumerated().map { type, feed in
      feed?.makeSnapshot(ofFlat: layout.contentRows(of: type, in: range))
    }
    return SlotsSnapshot(
      range, of: layout, fixed: fixed, contents: contents, types: plan.showsOwnTypes ? nil : plan.typeNames, own: own)
  }

  private func content(of item: SlotsItem) -> Feed {
    guard let feed = plan.contents[item.type] else { preconditionFailure("a type without content has no rows") }
    return feed
  }

  private func row(for item: SlotsItem) -> Row {
    let feed = content(of: item)
    if plan.showsOwnTypes { return feed.row(atFlat: item.index) }
    return Row(element: feed.element(atFlat: item.index), type: plan.typeNames[item.type].bytes)
  }

  private func element(of item: SlotsItem) -> ElementText { content(of: item).element(atFlat: item.index) }
}

/// Rows of a slots feed when the snapshot was made: the layout at that time over snapshots of the contents.
///
/// A layout shows the rows of each type in order, except fixed rows. So every content is read once in order, and the
/// few fixed rows are retained from the start.
final class SlotsSnapshot: SectionSnapshot {
  let count: Int
  private var position = 0
  /// The row of the list that is the first of the snapshot.
  private let start: Int
  private let layout: SlotsLayout
  private let contents: [FeedSnapshot?]
  /// The types of rows by content; nil if rows have their own types.
  private let types: [QuotedName]?
  /// A retained element with the code of its type.
  typealias Fixed = (element: ElementText, type: TypeTable.Code)
  /// The fixed rows by row of the list.
  private let fixed: [Int: Fixed]
  private let own: TypeTable
  /// What is charged for the fixed rows.
  private var charge: SnapshotMemory.Share?

  /// - Parameter contents: the rows that the layout shows in `range`, without fixed rows.
  init(
    _ range: Range<Int>, of layout: SlotsLayout, fixed: [Int: Fixed], contents: [FeedSnapshot?], types: [QuotedName]?,
    own: TypeTable
  ) {
    (self.own, count, start, self.fixed, self.layout) = (own, range.count, range.lowerBound, fixed, layout)
    (self.contents, self.types) = (contents, types)
  }

  deinit { for row in fixed.values { row.element.release() } }

  /// The bytes of the fixed rows.
  private var ownBytes: Int {
    fixed.values.reduce(fixed.capacity * MemoryLayout<(Int, Fixed)>.stride) { $0 + $1.element.footprint }
  }

  func charge(to memory: SnapshotMemory) {
    charge = memory.hold(ownBytes)
    for content in contents { content?.charge(to: memory) }
  }

  func next(max: Int, _ body: (Row) -> Void) -> Int {
    let end = min(position + Swift.max(max, 0), count)
    let first = position
    while position < end {
      let type = layout.item(at: start + position).type
      let name = types?[type].bytes
      if let row = fixed[start + position] {
        body(Row(element: row.element, type: name ?? own.type(row.type, of: row.element)))
      } else {
        _ = contents[type]?.next(max: 1) { body(Row(element: $0.element, type: name ?? $0.type)) }
      }
      position += 1
    }
    return end - first
  }

  func skip(max: Int) -> Int {
    let end = min(position + Swift.max(max, 0), count)
    let first = position
    while position < end {
      if fixed[start + position] == nil { _ = contents[layout.item(at: start + position).type]?.skip(max: 1) }
      position += 1
    }
    return end - first
  }
}
