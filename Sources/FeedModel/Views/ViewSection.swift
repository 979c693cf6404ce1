import FeedChange

/// The one section of a view.
///
/// Without a filter and a sort, its rows are looked up in the source. Otherwise they are in a ``ViewIndex``, which is
/// updated at the end of each commit. A read between two operations of a commit evaluates the rows again.
final class ViewSection: FeedSection {
  let name: String
  private(set) var plan: ViewPlan
  private var index: ViewIndex? { didSet { oldValue?.abandon() } }
  /// The version of the rows with which `index` was prepared; nil if it was not prepared, or it was published.
  private var preparedVersion: UInt64?
  /// The visible rows of the source, cached for one version of `counts`.
  private var preview: (plan: ViewPlan, version: UInt64, rows: [Int])?
  /// The rows that a view without an index shows, cached for a version of `counts`: views of views count them often.
  private var known: (version: UInt64, range: Range<Int>)?
  private let counts: RowCounts
  private var limits: Limits
  /// The change of the rows of the index. The memory is reused.
  private var scratch = Change()
  private let discarded: DiscardedElements
  /// Lets commits, not reads, stop while they build the index, follow a change or evaluate rows between two operations.
  private let pace: Pace

  init(name: String, plan: ViewPlan, counts: RowCounts, limits: Limits, _ discarded: DiscardedElements, _ pace: Pace) {
    (self.discarded, self.pace, self.name, self.plan, self.counts) = (discarded, pace, name, plan, counts)
    self.limits = limits
    counts.viewsExist()
  }

  deinit { index?.abandon() }

  private var window: ViewWindow { plan.definition.window }
  private var source: Feed { plan.source }

  /// Sets another plan. The index keeps the previous plan until `rebuild`.
  func install(_ plan: ViewPlan) {
    self.plan = plan
    // It retains the source of the previous plan. If that source shows this view, neither would ever be freed.
    preview = nil
    known = nil
  }

  /// Evaluates the filter under other limits from now on. The index keeps the former rows until `rebuild`.
  func use(_ limits: Limits) { (self.limits, preview) = (limits, nil) }

  // MARK: Rows

  private enum Rows {
    case source(Range<Int>)
    case index(ViewIndex, Range<Int>)
    case preview([Int])
  }

  private var rows: Rows {
    if plan.definition.isPlain { return .source(plainRange) }
    if let index, index.plan === plan, !counts.isChanging { return .index(index, window.range(of: index.count)) }
    return .preview(presentRows(counts.isChanging ? pace : Pace()))
  }

  /// The rows of the source that a view without an index shows.
  private var plainRange: Range<Int> {
    if let known, known.version == counts.version { return known.range }
    let range = window.range(of: source.count)
    known = (counts.version, range)
    return range
  }

  var count: Int {
    switch rows {
    case .source(let range), .index(_, let range): range.count
    case .preview(let rows): rows.count
    }
  }

  func row(at index: Int) -> Row {
    switch rows {
    case .source(let range): return source.row(atFlat: range.lowerBound + index)
    case .index(let kept, let range):
      let place = range.lowerBound + index
      return Row(element: kept.element(at: place), type: kept.type(at: place))
    case .preview(let rows): return source.row(atFlat: rows[index])
    }
  }

  /// The indices in the flattened order of the source of rows of this section. O(rows · log n).
  func sourceRows(of traced: [TracedRow], _ pace: Pace) -> [Int] {
    let rows = rows
    return traced.map(pace) { row in
      let index = Int(row.path.row)
      switch rows {
      case .source(let range): return range.lowerBound + index
      case .index(let kept, let range):
        if row.index & 15 == 15 { pace.spend() }
        return kept.sourceRow(at: range.lowerBound + index)
      case .preview(let rows): return rows[index]
      }
    }
  }

  func element(at index: Int) -> ElementText { row(at: index).element }
  func type(at index: Int) -> UnsafeRawBufferPointer { row(at: index).type }
  func forEach(in range: Range<Int>, _ body: (Row) -> Void) { for index in range { body(row(at: index)) } }

  /// The visible rows of the source, flattened, in the order of the view. O(n log n), cached for a version of the rows.
  func presentRows(_ pace: Pace = Pace()) -> [Int] {
    if plan.definition.isPlain { return Array(plainRange) }
    if let preview, preview.plan === plan, preview.version == counts.version { return preview.rows }
    let judge = ViewJudge(plan.definition, limits: limits)
    var entries = ViewEntries(most: source.count)
    var row: UInt32 = 0
    source.forEachRow {
      if judge.accepts($0.element, pace) { entries.append(row, judge) }
      row += 1
    }
    let sorted = entries.sorted(pace)
    var rows: [Int] = []
    rows.append(contentsOf: sorted[window.range(of: sorted.count)].lazy.map { Int($0.row) }, pace)
    preview = (plan, counts.version, rows)
    return rows
  }

  func makeJudge() -> ViewJudge { ViewJudge(plan.definition, limits: limits) }
  var stepsPerRow: Int { plan.definition.stepsPerRow(limits) }

  // MARK: Following the source

  /// The published rows of the source: those of the index, or those in the window of a view without an index.
  func publishedRows(of count: Int, as published: ViewPlan, _ pace: Pace) -> [Int] {
    let window = published.definition.window
    guard let index, index.plan === published else { return Array(window.range(of: count)) }
    return Array(window.range(of: index.count)).map(pace) {
      if $0 & 15 == 15 { pace.spend() }
      return index.sourceRow(at: $0)
    }
  }

  /// Creates the index of the current plan, unless it was prepared and no row has changed since.
  func rebuild() {
    preview = nil
    defer { preparedVersion = nil }
    if let index, index.plan === plan, preparedVersion == counts.rowVersion { return }
    index = plan.definition.isPlain ? nil : ViewIndex(plan, limits: limits, pace, discarded)
  }

  /// Creates the index of a new view before a commit makes it visible.
  func prepare() {
    if plan.definition.isPlain { return }
    index = ViewIndex(plan, limits: limits, pace, discarded)
    preparedVersion = counts.rowVersion
  }

  /// Adds the change of this section for a change of the source to `result`, which is empty.
  func follow(_ change: borrowing Change, before: Int, after: Int, into result: inout Change) {
    if preview != nil { preview = nil }
    let count = window.range(of: index?.count ?? before).count
    followSource(change, before: before, after: after, into: &result)
    result.moveFewestRows(of: count, pace)
  }

  /// Adds the change of this section, in which the rows move that the source or the index moved.
  @inline(__always)
  private func followSource(_ change: borrowing Change, before: Int, after: Int, into result: inout Change) {
    guard let index else { return window.follow(change, before: before, after: after, pace, into: &result) }
    let known = index.count
    if window.isWhole { return index.follow(change, pace, into: &result) }
    scratch.removeAll(keepingCapacity: true)
    index.follow(change, pace, into: &scratch)
    window.follow(scratch, before: known, after: index.count, pace, into: &result)
  }

  // MARK: Snapshots

  /// A snapshot of at most this many rows retains each of them.
  private static let smallWindow = 1024

  /// O(rows) for few rows; otherwise O(log n + rows / 100), and O(sections of the source) without an index.
  func makeSnapshot(of range: Range<Int>) -> any SectionSnapshot {
    if range.count > Self.smallWindow {
      switch rows {
      case .source(let window):
        return source.makeSnapshot(ofFlat: range.shifted(by: window.lowerBound))
      case .index(let index, let window):
        if let snapshot = index.makeSnapshot(of: range.shifted(by: window.lowerBound)) { return snapshot }
      case .preview: break
      }
    }
    var elements: [(text: ElementText, type: TypeTable.Code)] = []
    let types = TypeTable()
    forEach(in: range) { row in
      row.element.retain()
      elements.append((row.element, types.code(of: row.type, in: row.element)))
    }
    return RetainedRows(elements, types)
  }

  /// O(n log n).
  func checkInvariants() { index?.checkInvariants() }
}

/// Rows that were retained when the snapshot was made.
private final class RetainedRows: SectionSnapshot {
  private let rows: [(text: ElementText, type: TypeTable.Code)]
  private let types: TypeTable
  private var charge: SnapshotMemory.Share?
  private var position = 0

  init(_ rows: [(text: ElementText, type: TypeTable.Code)], _ types: TypeTable) {
    (self.rows, self.types) = (rows, types)
  }

  deinit { for row in rows { row.text.release() } }

  func charge(to memory: SnapshotMemory) {
    let bytes = rows.capacity * MemoryLayout<(ElementText, TypeTable.Code)>.stride
    charge = memory.hold(rows.reduce(bytes) { $0 + $1.text.footprint })
  }

  var count: Int { rows.count }

  func next(max: Int, bytes: Int, _ body: (Row) -> Void) -> Int {
    let end = min(position + Swift.max(max, 0), count)
    let start = position
    var left = bytes
    while position < end && left > 0 {
      let row = rows[position]
      body(Row(element: row.text, type: types.type(row.type, of: row.text)))
      left &-= row.text.text.count
      position += 1
    }
    return position - start
  }

  func skip(max: Int) -> Int {
    let skipped = min(Swift.max(max, 0), count - position)
    position += skipped
    return skipped
  }
}

/// Types of rows that are not part of their elements, such as those of slots feeds.
final class TypeTable {
  /// The number of a type; `own` means the type of the element itself.
  typealias Code = Int32
  static let own: Code = -1

  private var numbers: [[UInt8]: Code] = [:]
  private var memory: [UnsafeRawBufferPointer] = []

  deinit { for bytes in memory { bytes.deallocate() } }

  var isEmpty: Bool { memory.isEmpty }

  func code(of type: UnsafeRawBufferPointer, in element: ElementText) -> Code {
    let own = element.type
    if type.baseAddress == own.baseAddress && type.count == own.count || type.isEmpty && own.isEmpty { return Self.own }
    let name = Array(type)
    if let known = numbers[name] { return known }
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, name.count), alignment: 1)
    bytes.copyBytes(from: name)
    memory.append(UnsafeRawBufferPointer(rebasing: bytes[..<name.count]))
    numbers[name] = Code(memory.count - 1)
    return Code(memory.count - 1)
  }

  func type(_ code: Code, of element: ElementText) -> UnsafeRawBufferPointer {
    code == Self.own ? element.type : memory[Int(code)]
  }
}
