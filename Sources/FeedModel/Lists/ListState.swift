import FeedChange
import FeedJSON
import FeedQuery

/// The rows of an array or a single, in the order in which clients put them.
///
/// Each operation leaves its change in `step`, in the coordinates before it. The caller has checked rows unless stated
/// otherwise. Invariant: each element has exactly one row, and no two have the same identity, if there is any.
final class ListState: RowStore {
  private let seed: UInt64
  private(set) var definition: ListDefinition
  /// The index of identities; nil if elements have none.
  private(set) var identities: ListIdentities?
  /// Scratch buffer, reused for every element.
  private var keys = ByteBuffer()

  var rows: PositionTree { sections[0].rows }
  override var movesFewest: Bool { true }

  init(feed: String, definition: ListDefinition, limits: Limits, seed: UInt64) {
    (self.definition, self.seed) = (definition, seed)
    let elements = ElementTable()
    super.init(
      feed: feed, elements: elements, sections: [RowSection(name: feed, elements: elements, keyed: false)],
      type: definition.type, limits: limits)
    adopt(definition)
  }

  /// Creates a state with the same elements, under the same handles, and the same rows. O(n).
  init(copying other: ListState, _ pace: Pace) {
    (definition, seed) = (other.definition, other.seed)
    let elements = other.elements.copy(pace)
    identities = other.identities?.copy(elements, pace)
    super.init(
      feed: other.feed, elements: elements, sections: [other.sections[0].copy(elements, pace)], type: other.type,
      limits: other.limits)
    retention = other.retention
    deadlines = other.deadlines?.copy(elements, pace)
  }

  override func didAdd(_ handle: UInt32) { identities?.insert(handle) }
  override func willRemove(_ handle: UInt32) { identities?.remove(handle) }
  override func successor(of handle: UInt32) -> UInt32? { identities?.successor(of: handle) }

  override func restore(_ element: JSONView, at changed: Instant, _ log: UndoLog) throws(FeedError) -> UInt32 {
    try identities?.checkIsNew(element, index: elements.count)
    return addElement(try makeText(element), at: changed, log)
  }

  // MARK: Steps

  /// Inserts one element before `row`, or at the end if `row` is the count. O(log n).
  /// - Throws: `noIdentity`, `duplicateIdentity` or `limitExceeded`, without any effect.
  func insert(_ given: JSONView, at row: Int, index place: Int, moment: Instant, _ log: UndoLog) throws(FeedError) {
    let element = try compact(given, index: place)
    try identities?.checkIsNew(element, index: place)
    try insertNew(element, at: row, moment: moment, log)
  }

  /// Replaces the element with the identity of the given one, or appends it. O(log n).
  /// - Precondition: elements have identities.
  /// - Throws: `noIdentity` or `limitExceeded`, without any effect.
  func upsert(_ given: JSONView, index place: Int, moment: Instant, _ log: UndoLog) throws(FeedError) {
    step.removeAll(keepingCapacity: true)
    let element = try compact(given, index: place)
    guard let known = try identities?.find(identityOf: element, index: place), let row = rows.row(of: known) else {
      return try insertNew(element, at: rows.count, moment: moment, log)
    }
    if try exchange(known, element, moment: moment, log) {
      step.updated.append(IndexPath(section: 0, row: UInt32(row)))
    }
  }

  func remove(at row: Int, _ log: UndoLog) {
    step.removeAll(keepingCapacity: true)
    let handle = rows[row]
    removeRow(section: 0, at: row, log)
    removeElement(handle, log)
    step.deleted.append(IndexPath(section: 0, row: UInt32(row)))
  }

  /// Replaces the element of a row, unless it is equal. An element with another identity is a new row. O(log n).
  /// - Throws: `noIdentity`, `duplicateIdentity` or `limitExceeded`, without any effect.
  func replace(_ given: JSONView, at row: Int, index place: Int, moment: Instant, _ log: UndoLog) throws(FeedError) {
    step.removeAll(keepingCapacity: true)
    let element = try compact(given, index: place)
    let handle = rows[row]
    let known = try identities?.find(identityOf: element, index: place)
    if identities == nil || known == handle {
      if try exchange(handle, element, moment: moment, log) {
        step.updated.append(IndexPath(section: 0, row: UInt32(row)))
      }
      return
    }
    if known != nil, let identities { throw identities.duplicate(element, index: place) }
    try checkRoom(for: element, replacing: handle, log)
    let text = try makeText(element)
    remove(at: row, log)
    insertRow(addElement(text, at: moment, log), section: 0, at: row, key: 0, log)
    step.added.append(IndexPath(section: 0, row: UInt32(row)))
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

  /// Inserts a compact element. If it has an identity, this must be that of the last `find`, and new.
  private func insertNew(_ element: JSONView, at row: Int, moment: Instant, _ log: UndoLog) throws(FeedError) {
    step.removeAll(keepingCapacity: true)
    try addRow(element, at: row, moment: moment, log)
    step.added.append(IndexPath(section: 0, row: UInt32(row)))
  }

  /// Inserts a compact element like `insertNew`, but does not change `step`.
  func addRow(_ element: JSONView, at row: Int, moment: Instant, _ log: UndoLog) throws(FeedError) {
    try checkRoom(for: element, log)
    let handle = addElement(try makeText(element), at: moment, log)
    insertRow(handle, section: 0, at: row, key: 0, log)
  }

  /// Replaces the compact text of an element, with the identity of the last `find`. Returns whether the text changed.
  func exchange(_ handle: UInt32, _ element: JSONView, moment: Instant, _ log: UndoLog) throws(FeedError) -> Bool {
    if Self.equal(elements.text(of: handle).text, element.text) { return false }
    try checkRoom(for: element, replacing: handle, log)
    let text = try makeText(element)
    preserve(handle)
    exchangeText(handle, text, at: moment, log)
    if retention != nil { touch(handle, at: moment, log) }
    return true
  }

  /// Creates a version of a compact element with the identity of the last `find`, if there is one.
  private func makeText(_ element: JSONView) throws(FeedError) -> ElementText {
    keys.removeAll(keepingCapacity: true)
    deadlines?.appendKey(of: element, to: &keys)
    let none = UnsafeRawBufferPointer(start: nil, count: 0)
    let place = identities?.path.resolve(element)
    return try makeText(element, identity: identities?.bytes ?? none, at: place, keys: keys.bytes)
  }

  /// The state that a redefinition replaces.
  struct Rules {
    fileprivate let definition: ListDefinition
    fileprivate let identities: ListIdentities?
    fileprivate let deadlines: Deadlines?

    func hasOtherIdentity(than definition: ListDefinition) -> Bool { definition.id != self.definition.id }
  }

  var rules: Rules { Rules(definition: definition, identities: identities, deadlines: deadlines) }

  /// Sets the definition. If it is not the first, the caller must rewrite each row.
  func adopt(_ definition: ListDefinition, _ pace: Pace = Pace()) {
    (self.definition, type) = (definition, definition.type)
    identities = definition.id.map { ListIdentities(path: $0, feed: feed, elements: elements, seed: seed) }
    retain(definition.retain, keyIndex: 0, pace)
  }

  /// Restores a previous definition, after the rows got their previous texts.
  func restore(_ rules: Rules) {
    definition = rules.definition
    type = rules.definition.type
    identities = rules.identities
    retention = rules.definition.retain
    deadlines = rules.deadlines
  }

  /// Rewrites the text of a row's element for the current definition. Returns whether its type changed.
  /// - Throws: `noIdentity`, or `duplicateIdentity` if a row that was already rewritten has the same identity.
  func rewrite(at row: Int, _ log: UndoLog) throws(FeedError) -> Bool {
    let handle = rows[row]
    let old = elements.text(of: handle)
    let view: JSONView
    do {
      view = try scratch.scan(old.text)
    } catch {
      throw .internalError(reason: "a stored element does not parse: \(error.message)")
    }
    try identities?.checkIsNew(view, index: row)
    let text = try makeText(view)
    let differs = !Self.equal(old.type, text.type)
    preserve(handle)
    exchangeText(handle, text, at: old.changedAt, log)
    identities?.insert(handle)
    return differs
  }
}

/// The identities of an array's elements.
///
/// Invariant: the index holds exactly the living elements of the table, each by the identity stored with its text.
final class ListIdentities {
  let path: SingularPath
  private let feed: String
  private let elements: ElementTable
  private let seed: UInt64
  private var index = IdentityIndex()
  private var buffer = ByteBuffer()

  init(path: SingularPath, feed: String, elements: ElementTable, seed: UInt64) {
    (self.path, self.feed, self.elements, self.seed) = (path, feed, elements, seed)
  }

  /// Returns the identities of the same elements in another table, under the same handles. O(n).
  func copy(_ elements: ElementTable, _ pace: Pace) -> ListIdentities {
    let other = ListIdentities(path: path, feed: feed, elements: elements, seed: seed)
    other.index = index.copy(pace)
    return other
  }

  /// The canonical bytes of the identity of the last `find`.
  var bytes: UnsafeRawBufferPointer { buffer.bytes }
  var hashOfBytes: UInt32 { hash(buffer.bytes) }

  /// Returns the element with an identity that a request gives; nil if there is none.
  /// - Throws: `noIdentity` if the value is neither a string nor a number.
  func find(_ id: JSONView, index place: Int) throws(FeedError) -> UInt32? {
    if Identity.isTooLong(id, forElementsOf: elements.longest) { return nil }
    return try find(id, index: place, path: "")
  }

  /// Returns the element with the identity of `element`, a whole element of a request; nil if there is none.
  /// - Throws: `noIdentity`.
  func find(identityOf element: JSONView, index place: Int) throws(FeedError) -> UInt32? {
    guard let id = path.resolve(element) else {
      throw .noIdentity(feed: feed, index: place, path: path.text, found: "missing")
    }
    return try find(id, index: place, path: path.text)
  }

  /// Checks the identity of a new element.
  /// - Throws: `noIdentity`, or `duplicateIdentity` if an element has this identity.
  func checkIsNew(_ element: JSONView, index place: Int) throws(FeedError) {
    if try find(identityOf: element, index: place) != nil { throw duplicate(element, index: place) }
  }

  /// Returns the error for an element with the identity of another row.
  func duplicate(_ element: JSONView, index place: Int) -> FeedError {
    let id = path.resolve(element).map { String(decoding: $0.text, as: UTF8.self) } ?? ""
    return .duplicateIdentity(feed: feed, index: place, id: id)
  }

  private func find(_ id: JSONView, index place: Int, path: String) throws(FeedError) -> UInt32? {
    buffer.removeAll(keepingCapacity: true)
    guard Identity.append(id, to: &buffer) else {
      throw .noIdentity(feed: feed, index: place, path: path, found: id.kind.name)
    }
    return index.find(buffer.bytes, hash: hash(buffer.bytes), in: elements)
  }

  /// The living element with the identity of a handle, which may have been removed.
  func successor(of handle: UInt32) -> UInt32? {
    elements.text(of: handle).withIdentity { index.find($0, hash: hash($0), in: elements) }
  }

  /// Makes room for one more element. Lets `pace` stop meanwhile.
  func makeRoom(_ pace: Pace) { index.makeRoom(pace) }
  func insert(_ handle: UInt32) { index.insert(handle, hash: elements.text(of: handle).withIdentity(hash)) }
  func remove(_ handle: UInt32) { index.remove(handle, hash: elements.text(of: handle).withIdentity(hash)) }
  private func hash(_ identity: UnsafeRawBufferPointer) -> UInt32 { Identity.hash(identity, seed: seed) }
}
