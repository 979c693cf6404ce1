import FeedChange
import FeedJSON

/// A feed whose rows are those of other feeds, interleaved by a pattern of types (Protocol/README.md, "Slots").
///
/// It has one section, whose list is not stored: ``SlotsLayout`` computes each row from the row counts.
final class SlotsKind: DerivedKind, SingleSectionKind {
  /// The state as of the last published commit. A class, so that using it counts one reference, not one for each member.
  private final class Published {
    let plan: SlotsPlan
    /// The row counts of the sections of each content, and the resulting layout.
    var counts: [SectionCounts]
    var layout: SlotsLayout { didSet { block = SlotsLayout.Block() } }
    /// The part of the layout that was looked up last. Most rows of a long content are in one, where no search is needed.
    private var block = SlotsLayout.Block()

    /// The row that shows an item; nil if no row does. O(log), O(1) in the block that was looked up last.
    @inline(__always)
    func row(of item: SlotsItem) -> Int? { block.row(of: item) ?? search(item) }

    @inline(never)
    private func search(_ item: SlotsItem) -> Int? {
      if let found = layout.block(with: item) { block = found }
      return layout.row(of: item)
    }

    init(plan: SlotsPlan, counts: [SectionCounts], layout: SlotsLayout) {
      (self.plan, self.counts, self.layout) = (plan, counts, layout)
    }
  }

  private var plan: SlotsPlan
  let shown: SlotsSection
  /// The published state; nil before the first commit.
  private var published: Published?

  init(name: String, plan: SlotsPlan, counts: RowCounts) {
    self.plan = plan
    shown = SlotsSection(name: name, plan: plan, counts: counts)
  }

  var wireName: String { "slots" }
  var definedAs: FeedDefinition.Content? { .slots(plan.definition) }
  var hasTypes: Bool { !plan.showsOwnTypes || plan.contents.contains { $0?.hasTypes ?? false } }
  var rows: RowStore? { nil }
  var contentTypes: [SlotsDefinition.Content] { plan.definition.contents }

  /// The numbers of types, with those that are not used.
  var typeCount: Int { plan.contents.count }

  var sources: [(place: Int, feed: Feed)] {
    plan.contents.enumerated().compactMap { type, feed in feed.map { (type, $0) } }
  }

  func origins(of rows: [TracedRow], _ pace: Pace) -> [(source: Feed, rows: [TracedRow])] {
    let layout = shown.layout
    var (ofTypes, indices) = ([[TracedRow]](repeating: [], count: typeCount), [[Int]](repeating: [], count: typeCount))
    for row in rows {
      let item = layout.item(at: Int(row.path.row))
      ofTypes[item.type].append(row)
      indices[item.type].append(item.index)
      if row.index & 15 == 15 { pace.spend() }
    }
    return plan.contents.enumerated().compactMap { type, content in
      guard let content, !indices[type].isEmpty else { return nil }
      return (content, ofTypes[type].moved(to: content.paths(ofFlat: indices[type], pace)))
    }
  }

  var stepsPerRow: Int { plan.definition.stepsPerRow }
  func sourcesWereRestored() { publish() }

  /// Rows of a type that keeps its feed stay, as far as the new plan shows them.
  func redefine(_ definition: FeedDefinition, of feed: Feed, in catalog: Catalog) throws(FeedError) {
    guard case .slots(let content) = definition.content else { throw conflict(of: feed, with: definition) }
    if plan.definition == content { return }
    let (former, layout, count, graph) = (plan, shown.layout, shown.count, catalog.graph)
    let before = graph.countedRows(of: feed)
    let followed = [published?.plan, former].compactMap { $0 }
    let fresh = try catalog.plan(content, for: feed, named: feed.name, following: followed)
    install(fresh, feed, graph)
    catalog.commit.logStructure { [unowned self] in install(former, feed, graph) }
    // By rules before 4, all rows of the contents count.
    let countsReading = catalog.commit.budget.countsReading
    let after = countsReading ? shown.count : fresh.contents.reduce(0) { $0 + ($1?.count ?? 0) }
    let counted = countsReading ? graph.countedRows(of: feed) : after
    try catalog.commit.budget.use(rows: before + counted, of: feed.number)
    try catalog.commit.budget.useManagedRows(of: [feed])
    let isRepeatable = graph.isRepeatable(feed.number)
    try catalog.checkRowsOfViews(above: feed, added: after - (isRepeatable ? count : 0))
    if !isRepeatable { try catalog.commit.budget.useStepsOfViews(above: feed.number, showing: [feed]) }
    let contents = [FlatChange](repeating: .none, count: fresh.contents.count)
    catalog.commit.finishOperation(
      on: feed.number, result: change(from: former, layout, contents, catalog.commit.pace),
      growth: isRepeatable ? nil : RowGrowth(feed: after))
    catalog.commit.publisher.open(feed.number)
  }

  private func install(_ plan: SlotsPlan, _ feed: Feed, _ graph: FeedGraph) {
    graph.relink(feed) { self.plan = plan }
    shown.install(plan)
  }

  // MARK: Changes

  var publishedSectionCount: Int { published == nil ? 0 : 1 }

  private func publish() {
    let counts = plan.contents.map { $0?.sectionCounts ?? SectionCounts([]) }
    published = Published(plan: plan, counts: counts, layout: shown.layout)
  }

  func derive(_ changes: borrowing SourceChanges, into change: inout Change) {
    guard let published else { return publish() }
    let former = published.plan
    if former === plan, changes.onlyUpdates {
      changes.forEach { type, shift, source in
        appendUpdates(source, shift: shift, of: type, published, to: &change.updated)
      }
      if let start = changes.start { change.updated.removeAll { !isReplaced($0.row, since: start) } }
      // Rows of one content are in order, except fixed rows.
      if change.updated.count > 1 { change.updated.sort() }
    } else {
      let start = changes.start
      change = self.change(from: former, published.layout, contents(of: changes, published), changes.pace) { row in
        start.map { former.showsOwnTypes || isReplaced(UInt32(row), since: $0) } ?? true
      }
      if former === plan { published.layout = shown.layout } else { publish() }
    }
  }

  /// The path here of a row of a content, as of the last published commit; nil if this feed does not show it. O(log).
  @inline(__always)
  func row(of path: IndexPath, type: Int) -> IndexPath? {
    guard let published else { return nil }
    let start = path.section == 0 ? 0 : published.counts[type].start(of: Int(path.section))
    let row = published.row(of: SlotsItem(type: type, index: start &+ Int(path.row)))
    return row.map { IndexPath(section: 0, row: UInt32(truncatingIfNeeded: $0)) }
  }

  /// The change from a layout of this plan or a former one to the current rows.
  /// - Parameter isReplaced: whether a row that a content lists as replaced shows another element or may show another type.
  private func change(
    from former: SlotsPlan, _ layout: SlotsLayout, _ contents: [FlatChange], _ pace: Pace?,
    isReplaced: (Int) -> Bool = { _ in true }
  ) -> Change {
    let retyped = former.showsOwnTypes == plan.showsOwnTypes ? [] : shown.rowsWithOwnType(pace)
    return layout.change(to: shown.layout, contents: contents, retyped: retyped, pace, isReplaced: isReplaced)
  }

  /// Whether a row that is listed as updated since `start` shows another element or type here; types may be hidden.
  private func isReplaced(_ row: UInt32, since start: Instant) -> Bool {
    plan.showsOwnTypes || shown.element(at: Int(row)).changedAt > start
  }

  /// Appends the rows that show updated rows of a content, of which none came, went or moved. O(updates · log).
  private func appendUpdates(
    _ source: borrowing Change, shift: UInt32, of type: Int, _ published: Published, to updated: inout [IndexPath]
  ) {
    var (section, start) = (UInt32(0), 0)
    for path in source.updated {
      if section != path.section &+ shift {
        section = path.section &+ shift
        start = published.counts[type].start(of: Int(section))
      }
      let item = SlotsItem(type: type, index: start + Int(path.row))
      guard let row = published.row(of: item) else { continue }
      updated.append(IndexPath(section: 0, row: UInt32(truncatingIfNeeded: row)))
    }
  }

  /// The change of each content. Also applies the changes to the published row counts.
  private func contents(of changes: borrowing SourceChanges, _ published: Published) -> [FlatChange] {
    var contents = [FlatChange](repeating: .none, count: plan.contents.count)
    let (former, pace) = (published.plan, changes.pace)
    changes.forEach { type, shift, source in
      // All rows of a content that the published plan does not have are added.
      guard former === plan || former.hasContent(of: plan, at: type) else { return }
      published.counts[type].follow(source, shift: shift, pace) { flat, _ in
        contents[type] = FlatChange(flat, pace)
      }
    }
    return contents
  }
}

/// The one section of a slots feed. Its rows are looked up in the contents, not stored.
final class SlotsSection: FeedSection {
  let name: String
  private var plan: SlotsPlan
  /// The last layout, with the row counts of the contents for which it was created.
  private var cached: (rows: [Int], layout: SlotsLayout)?
  /// The version of `counts` for which `cached` is valid.
  private var cachedVersion: UInt64 = 0
  private let counts: RowCounts

  init(name: String, plan: SlotsPlan, counts: RowCounts) { (self.name, self.plan, self.counts) = (name, plan, counts) }

  func install(_ plan: SlotsPlan) { (self.plan, cached) = (plan, nil) }

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
/// Every content is read once in order, as the layout shows it; the few fixed rows are retained from the start.
final class SlotsSnapshot: SectionSnapshot {
  let count: Int
  private var position = 0
  /// The row of the list that is the first of the snapshot.
  private let start: Int
  private let layout: SlotsLayout
  private let contents: [FeedSnapshot?]
  /// The types of rows by content; nil if rows have their own types.
  private let types: [QuotedName]?
  typealias Fixed = (element: ElementText, type: TypeTable.Code)
  private let fixed: [Int: Fixed]
  private let own: TypeTable
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

  func charge(to memory: SnapshotMemory) {
    let bytes = fixed.capacity * MemoryLayout<(Int, Fixed)>.stride
    charge = memory.hold(fixed.values.reduce(bytes) { $0 + $1.element.footprint })
    for content in contents { content?.charge(to: memory) }
  }

  func next(max: Int, bytes: Int, _ body: (Row) -> Void) -> Int {
    let end = min(position + Swift.max(max, 0), count)
    let first = position
    var left = bytes
    func read(_ row: Row) {
      body(row)
      left &-= row.text.count
    }
    while position < end && left > 0 {
      let type = layout.item(at: start + position).type
      let name = types?[type].bytes
      if let row = fixed[start + position] {
        read(Row(element: row.element, type: name ?? own.type(row.type, of: row.element)))
      } else {
        _ = contents[type]?.next(max: 1) { read(Row(element: $0.element, type: name ?? $0.type)) }
      }
      position += 1
    }
    return position - first
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
