import FeedChange
import FeedJSON
import FeedQuery

/// The rows of an array or a single: elements without identity, in the order in which clients put them.
///
/// Each operation leaves its change in `step`, in the coordinates before the operation. Rows count from 0; the caller
/// has checked them unless stated otherwise.
final class ListState: RowStore {
  var rows: PositionTree { sections[0].rows }

  init(feed: String, type: SingularPath?, limits: Limits) {
    let elements = ElementTable()
    super.init(
      feed: feed, elements: elements, sections: [RowSection(name: feed, elements: elements, keyed: false)], type: type,
      limits: limits)
  }

  /// Inserts one element before `row`, or at the end if `row` is the count. O(log n).
  func insert(_ given: JSONView, at row: Int, index place: Int, now: Instant, _ log: UndoLog) throws(FeedError) {
    step.removeAll(keepingCapacity: true)
    let element = try compact(given, index: place)
    try checkRoom(for: element, isNew: true)
    let handle = addElement(try makeText(element), hash: 0, at: now, log)
    insertRow(handle, section: 0, at: row, key: 0, log)
    step.added.append(IndexPath(section: 0, row: UInt32(row)))
  }

  /// Removes one row. O(log n).
  func remove(at row: Int, _ log: UndoLog) {
    step.removeAll(keepingCapacity: true)
    let handle = rows[row]
    removeRow(section: 0, at: row, log)
    removeElement(handle, log)
    step.deleted.append(IndexPath(section: 0, row: UInt32(row)))
  }

  /// Replaces the element of a row. An equal element is no change. O(log n).
  func replace(_ given: JSONView, at row: Int, index place: Int, now: Instant, _ log: UndoLog) throws(FeedError) {
    step.removeAll(keepingCapacity: true)
    let element = try compact(given, index: place)
    let handle = rows[row]
    if Self.equal(elements.text(of: handle).text, element.text) { return }
    try checkRoom(for: element, isNew: false)
    let text = try makeText(element)
    preserve(handle)
    exchangeText(handle, text, at: now, log)
    step.updated.append(IndexPath(section: 0, row: UInt32(row)))
  }

  /// Moves a row to `target`, its index after the move. O(log n).
  func move(from row: Int, to target: Int, _ log: UndoLog) {
    step.removeAll(keepingCapacity: true)
    if row == target { return }
    let handle = rows[row]
    removeRow(section: 0, at: row, log)
    insertRow(handle, section: 0, at: target, key: 0, log)
    step.deleted.append(IndexPath(section: 0, row: UInt32(row)))
    step.added.append(IndexPath(section: 0, row: UInt32(target)))
    step.moves.append(Move(deleted: 0, added: 0, keepsElement: true))
  }

  fileprivate func makeText(_ element: JSONView) throws(FeedError) -> ElementText {
    let none = UnsafeRawBufferPointer(start: nil, count: 0)
    return try makeText(element, identity: none, keys: none)
  }
}

extension ListState {
  /// Resolves the type of a row's element again. Returns whether it changed.
  func retype(at row: Int, _ log: UndoLog) throws(FeedError) -> Bool {
    let handle = rows[row]
    let old = elements.text(of: handle)
    let view: JSONView
    do {
      view = try scanner.scan(old.text)
    } catch {
      throw .internalError(reason: "a stored element does not parse: \(error.message)")
    }
    let text = try makeText(view)
    let differs = !Self.equal(old.type, text.type)
    preserve(handle)
    exchangeText(handle, text, at: old.changedAt, log)
    return differs
  }
}
