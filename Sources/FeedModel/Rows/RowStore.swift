import FeedChange
import FeedJSON
import FeedQuery

/// The elements and stored rows of a collection, an array, a single or a managed feed.
///
/// Only the engine's thread may use it. It is changed through logged primitives, so that commits can be undone.
public class RowStore {
  let feed: String
  let elements: ElementTable
  /// Constant, except for managed feeds, which add and remove sections.
  var sections: [RowSection]
  var type: SingularPath?
  var limits: Limits
  /// The keyed sections that divide the rows of `sections[0]`; nil if `sections` are the sections.
  let keyed: KeyedSections?
  /// The limits on kept elements, set by `retain`; nil keeps all.
  var retention: Retention? { didSet { maxRetained = retention?.count ?? .max } }
  private(set) var maxRetained = Int.max
  /// The elements with an expiry time; nil if the retention has no `until`.
  var deadlines: Deadlines?

  /// The bytes of the shortest elements over which the filters may take long; `Int.max` if there are none.
  let slowSize: Int

  var scratch = ElementScratch()
  /// The change of the last step; empty if that is in `row`.
  var step = Change()
  /// The change of the last step of a collection if it is that of one row.
  var row: ChangeOfOne?
  /// The element that the row of `row` shows, unless it was deleted.
  var shownElement: ElementText?

  init(
    feed: String, elements: ElementTable, sections: [RowSection], type: SingularPath?, limits: Limits,
    keyed: KeyedSections? = nil, slowSize: Int = .max
  ) {
    (self.feed, self.elements, self.sections, self.type, self.limits) = (feed, elements, sections, type, limits)
    (self.keyed, self.slowSize) = (keyed, slowSize)
  }

  deinit { AbandonedRows.charge(elements.memory, for: sections.lazy.map(\.rows)) }

  /// The number of elements, whether bins show them or not. O(1).
  public var elementCount: Int { elements.count }
  var isTimed: Bool { retention?.isTimed ?? false }

  /// The bytes of the longest element that the feed ever had. O(1).
  public var longestElement: Int { elements.longest }

  /// Empties the change of the last step.
  @inline(__always)
  func beginStep() { if row == nil { step.removeAll(keepingCapacity: true) } else { row = nil } }

  /// Called when an element was added, or when its removal was undone.
  func didAdd(_ handle: UInt32) {}
  func willRemove(_ handle: UInt32) {}

  /// Brings near the memory that a coming element needs, as far as its text tells. Has no other effect.
  func lookAhead(at text: UnsafeRawBufferPointer) {}

  /// Makes room for so many elements in an empty store.
  func reserve(_ count: Int, _ pace: Pace = Pace()) { elements.reserve(count) }

  /// Adds a stored, compact element without evaluating filters. It is in no section yet.
  func restore(_ element: JSONView, at changed: Instant, _ log: UndoLog) throws(FeedError) -> UInt32 {
    let none = UnsafeRawBufferPointer(start: nil, count: 0)
    return addElement(try makeText(element, identity: none, at: nil), at: changed, log)
  }

  /// The key prefix of an element in a section; 0 if rows are not sorted.
  func key(of handle: UInt32, section: Int) -> UInt64 { 0 }

  /// The current element with the identity of `handle`, which existed in the commit; nil if there is none.
  func successor(of handle: UInt32) -> UInt32? { nil }

  /// Whether changes of several steps move as few rows as possible. Such a store has one section.
  var movesFewest: Bool { false }
  func row(of handle: UInt32) -> Row { Row(elements.text(of: handle)) }

  /// An element, and the places of the rows that show it, ascending. O(sections · log n).
  func found(_ handle: UInt32) -> (row: Row, places: [IndexPath]) {
    if let keyed { return (row(of: handle), [keyed.path(of: handle)].compactMap { $0 }) }
    let places = sections.indices.compactMap { section in
      sections[section].rows.row(of: handle).map { IndexPath(section: UInt32(section), row: UInt32($0)) }
    }
    return (row(of: handle), places)
  }

  /// The number of rows of `sections`.
  var rowCount: Int { sections.reduce(0) { $0 + $1.count } }

  /// The path in `sections` of the row at an index in `0..<rowCount` of their rows.
  func path(ofFlat index: Int) -> IndexPath {
    var (section, row) = (0, index)
    while row >= sections[section].count {
      row -= sections[section].count
      section += 1
    }
    return IndexPath(section: UInt32(section), row: UInt32(row))
  }

  static func equal(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    a.count == b.count && SortOrder.compare(a, b) == 0
  }
}

/// The logged primitives. Each makes one step on rows or elements and logs how to undo it.
extension RowStore {
  private var reference: Unmanaged<RowStore> { .passUnretained(self) }

  func insertRow(_ handle: UInt32, section: Int, at row: Int, key: UInt64, _ log: UndoLog) {
    sections[section].rows.insert(handle, at: row, key: key)
    didInsertRow(handle, section: section, at: row, log)
  }

  /// - Parameter gap: a gap of the section, found since its rows changed last.
  func insertRow(_ handle: UInt32, section: Int, into gap: PositionTree.Gap, key: UInt64, _ log: UndoLog) {
    sections[section].rows.insert(handle, into: gap, key: key)
    didInsertRow(handle, section: section, at: gap.row, log)
  }

  @inline(__always)
  private func didInsertRow(_ handle: UInt32, section: Int, at row: Int, _ log: UndoLog) {
    var entry = UndoLog.Entry(
      step: .insertedRow, section: UInt32(section), row: UInt32(row), handle: handle, state: reference)
    if let keyed { entry.other = keyed.didInsert(handle, at: row, log) }
    log.append(entry)
  }

  func removeRow(section: Int, at row: Int, _ log: UndoLog) {
    let rows = sections[section].rows
    let key = rows.keyed ? rows.key(at: row) : 0
    let handle = rows.remove(at: row)
    var entry = UndoLog.Entry(
      step: .removedRow, section: UInt32(section), row: UInt32(row), handle: handle, key: key, state: reference)
    if let keyed { entry.other = keyed.didRemove(handle, at: row, log) }
    log.append(entry)
  }

  /// Logs the removal of a row before a bulk removal. Rows must be logged in descending order.
  func noteRemoval(section: Int, at row: Int, _ log: UndoLog) {
    let rows = sections[section].rows
    var entry = UndoLog.Entry(
      step: .removedRow, section: UInt32(section), row: UInt32(row), handle: rows[row],
      key: rows.keyed ? rows.key(at: row) : 0, state: reference)
    if let keyed { entry.other = keyed.willRemove(entry.handle, log) }
    log.append(entry)
  }

  func rekeyRow(section: Int, at row: Int, handle: UInt32, key: UInt64, _ log: UndoLog) {
    let rows = sections[section].rows
    let before = rows.key(at: row)
    guard before != key || keyed.map({ !$0.isPrepared(for: handle) }) ?? false else { return }
    rows.replace(at: row, with: handle, key: key)
    var entry = UndoLog.Entry(
      step: .rekeyedRow, section: UInt32(section), row: UInt32(row), handle: handle, key: before, state: reference)
    if let keyed { entry.other = keyed.didRekey(handle, at: row, log) }
    log.append(entry)
  }

  func addElement(_ text: ElementText, at moment: Instant, _ log: UndoLog) -> UInt32 {
    let handle = elements.add(text, at: moment)
    didAdd(handle)
    deadlines?.insert(handle)
    log.append(.init(step: .addedElement, handle: handle, state: reference))
    return handle
  }

  func removeElement(_ handle: UInt32, _ log: UndoLog) {
    let newer = elements.newer(than: handle)
    willRemove(handle)
    deadlines?.remove(handle)
    elements.retire(handle)
    log.append(.init(step: .removedElement, handle: handle, other: newer, state: reference))
  }

  /// Replaces the text of an element. Call ``preserve(_:)`` first, so that unfinished snapshots keep the former text. The undo log
  /// owns that text from here on, and releases it at once if it does not record.
  func exchangeText(_ handle: UInt32, _ text: ElementText, at moment: Instant, _ log: UndoLog) {
    text.changedAt = moment
    let before = elements.exchange(handle, text)
    deadlines?.didExchange(handle)
    log.append(.init(step: .exchangedText, handle: handle, text: before.bitPattern, state: reference))
  }

  /// Makes the element the most recently changed one.
  func touch(_ handle: UInt32, at moment: Instant, _ log: UndoLog) {
    let newer = elements.newer(than: handle)
    let changedAt = elements.text(of: handle).changedAt
    elements.reorder(handle, before: ElementTable.none, changedAt: moment)
    log.append(.init(step: .reordered, handle: handle, other: newer, at: changedAt, state: reference))
  }

  /// Undoes one step. All later entries have already been undone.
  func undo(_ entry: UndoLog.Entry) {
    switch entry.step {
    case .insertedRow:
      _ = sections[Int(entry.section)].rows.remove(at: Int(entry.row))
      keyed?.undoInsertion(of: entry.handle, at: Int(entry.row))
    case .removedRow:
      sections[Int(entry.section)].rows.insert(entry.handle, at: Int(entry.row), key: entry.key)
      keyed?.undoRemoval(of: entry.handle, from: entry.other, at: Int(entry.row))
    case .rekeyedRow:
      sections[Int(entry.section)].rows.replace(at: Int(entry.row), with: entry.handle, key: entry.key)
      keyed?.undoRekey(of: entry.handle, from: entry.other, at: Int(entry.row))
    case .addedElement:
      willRemove(entry.handle)
      deadlines?.remove(entry.handle)
      elements.retire(entry.handle)
      elements.free(entry.handle)
    case .removedElement:
      elements.revive(entry.handle, before: entry.other)
      didAdd(entry.handle)
      deadlines?.insert(entry.handle)
    case .exchangedText:
      guard let text = ElementText(bitPattern: entry.text) else { return }
      preserve(entry.handle)
      elements.exchange(entry.handle, text).release()
      deadlines?.didExchange(entry.handle)
    case .reordered:
      elements.reorder(entry.handle, before: entry.other, changedAt: entry.at)
    }
  }

  /// Releases the version that a step replaced, after the commit has taken effect.
  func finish(_ entry: UndoLog.Entry) {
    switch entry.step {
    case .exchangedText: ElementText(bitPattern: entry.text)?.release()
    case .removedElement: elements.free(entry.handle)
    default: break
    }
  }

  /// Lets unfinished snapshots capture the current version before it is exchanged.
  func preserve(_ handle: UInt32) {
    for section in sections.indices where sections[section].rows.hasSnapshots {
      sections[section].rows.contentWillChange(of: handle)
    }
  }
}

/// A section of stored rows: an ordered list of handles into the element table of the feed.
public final class RowSection: FeedSection {
  public let name: String
  public let isByValue: Bool
  let rows: PositionTree
  let elements: ElementTable

  init(name: String, elements: ElementTable, keyed: Bool, isByValue: Bool = false) {
    (self.name, self.isByValue, self.elements) = (name, isByValue, elements)
    rows = PositionTree(keyed: keyed)
  }

  private init(name: String, elements: ElementTable, rows: PositionTree, isByValue: Bool) {
    (self.name, self.isByValue, self.elements, self.rows) = (name, isByValue, elements, rows)
  }

  /// Returns a section with the same rows of a copy of the elements.
  func copy(_ elements: ElementTable, _ pace: Pace) -> RowSection {
    RowSection(name: name, elements: elements, rows: rows.copy(pace), isByValue: isByValue)
  }

  public var count: Int { rows.count }
  public func row(at index: Int) -> Row { Row(element(at: index)) }
  public func element(at index: Int) -> ElementText { elements.text(of: rows[index]) }
  public func type(at index: Int) -> UnsafeRawBufferPointer { element(at: index).type }

  public func forEach(in range: Range<Int>, _ body: (Row) -> Void) {
    rows.forEach(in: range) { body(Row(elements.text(of: $0))) }
  }

  /// The snapshot retains the versions of elements that change before it has read them.
  public func makeSnapshot(of range: Range<Int>) -> any SectionSnapshot {
    let elements = elements
    return rows.makeSnapshot(of: range) { elements.text(of: $0) }
  }
}

extension PositionTree {
  /// Returns a snapshot of the elements that the items of a range have, which it retains.
  /// - Parameter owner: what owns the elements, if `text` does not retain it.
  @inline(__always)
  func makeSnapshot(
    of range: Range<Int>, ownedBy owner: AnyObject? = nil, _ text: @escaping (UInt32) -> ElementText
  ) -> RowSnapshot {
    let rows = makeSnapshot(
      of: range,
      capture: { handle in
        let text = text(handle)
        text.retain()
        return text.bitPattern
      },
      release: { ElementText(bitPattern: $0)?.release() }, size: { ElementText(bitPattern: $0)?.footprint ?? 0 })
    return RowSnapshot(rows, ownedBy: owner)
  }
}

/// Rows in a position tree when the snapshot was made.
final class RowSnapshot: SectionSnapshot {
  let count: Int
  private let rows: PositionSnapshot
  /// What owns the elements, if the rows do not retain it.
  private let owner: AnyObject?

  init(_ rows: PositionSnapshot, ownedBy owner: AnyObject?) {
    (self.rows, self.owner, count) = (rows, owner, rows.count)
  }

  func next(max: Int, bytes: Int, _ body: (Row) -> Void) -> Int {
    var left = bytes
    return rows.next(max: max) { pattern in
      guard let element = ElementText(bitPattern: pattern) else { return false }
      body(Row(element))
      left &-= element.text.count
      return left <= 0
    }
  }

  func skip(max: Int) -> Int { rows.skip(max: max) }
  func charge(to memory: SnapshotMemory) { rows.charge(to: memory) }
}

/// One section of a collection with sections by value, made when it is asked for. Valid until the next mutation.
final class KeyedSection: FeedSection {
  private let id: UInt32
  private let owner: KeyedSections

  init(id: UInt32, owner: KeyedSections) { (self.id, self.owner) = (id, owner) }

  var name: String { owner.name(of: id) }
  var isByValue: Bool { true }
  var count: Int { owner.rowCount(of: id) }
  private func row(_ index: Int) -> Int { owner.start(of: id) + index }
  func row(at index: Int) -> Row { owner.flat.row(at: row(index)) }
  func element(at index: Int) -> ElementText { owner.flat.element(at: row(index)) }
  func type(at index: Int) -> UnsafeRawBufferPointer { owner.flat.type(at: row(index)) }
  func forEach(in range: Range<Int>, _ body: (Row) -> Void) { owner.flat.forEach(in: range.shifted(by: row(0)), body) }

  func makeSnapshot(of range: Range<Int>) -> any SectionSnapshot {
    owner.flat.makeSnapshot(of: range.shifted(by: row(0)))
  }
}
