import FeedChange

/// The sections of a collection with one section for each value of a key, in order, and the section of each row.
///
/// A section takes a few words here; its key and its name are those of its rows.
///
///     let id = table.make()
///     if table.addRow(handle, to: id) {                        // the first row
///       table.didFill(id, after: predecessor, first: handle)   // the section now follows its predecessor
///     }
///
/// A section that loses its last row stays without rows: rows with its key that come back in the same commit are in a new
/// section. Only an undo gives it rows again. `KeyedDivision` reports two sections with one key as one.
///
/// Invariant: `order` has exactly the sections with rows; other identifiers are free, or touched in the open commit.
final class KeyedSectionTable {
  static let none = UInt32.max

  private struct Record {
    var count: UInt32 = 0
    /// The handle of the first row, if there are rows.
    var first: UInt32 = 0
    /// The indices of the section in `touchedInOperation` and `touchedInCommit`, if it has the identifier there.
    var operation: UInt32 = 0
    var commit: UInt32 = 0
  }

  /// A section that a scope touched, with its row count before the scope.
  struct Touched {
    let id: UInt32
    let before: UInt32
  }

  struct Emptied {
    let id: UInt32
    /// The index that it had; -1 if it lost the row with many others.
    let index: Int
    /// A version of an element with the key of the section, which the undo log retains until the end of the commit.
    let version: ElementText
  }

  private var records: [Record] = []
  private var free: [UInt32] = []
  private let order: PositionTree
  private var sectionOf: [UInt32] = []
  /// The section that was added to the order last, and its index.
  private var latest: (id: UInt32, index: Int) = (none, 0)
  /// The sections that the open commit touched, each once.
  private var touchedInCommit: [Touched] = []
  /// Those that the open operation touched, unless it is the first of the commit.
  private var touchedInOperation: [Touched] = []
  /// Whether no earlier operation of the commit touched a section.
  private var isFirstOperation = true
  /// The sections that lost their last row in the open commit, in this order. An undo removes them in reverse.
  private var emptied: [Emptied] = []
  /// The number of `emptied` sections before the open operation.
  private var emptiedBefore = 0

  init() { order = PositionTree(keyed: false) }

  /// Creates a table with the same sections. The open commit must not have changed them. O(rows).
  init(copying other: KeyedSectionTable, _ pace: Pace) {
    assert(other.touchedInCommit.isEmpty, "the commit has changed the sections")
    (records, free, sectionOf) = (other.records, other.free, other.sectionOf)
    order = other.order.copy(pace)
  }

  // MARK: Sections with rows

  /// The number of sections with rows.
  var count: Int { order.count }

  /// The identifier of the section at an index in `0..<count`. O(log sections).
  subscript(index: Int) -> UInt32 { order[index] }

  /// The index of a section with rows. O(log sections).
  func index(of id: UInt32) -> Int {
    if id == latest.id { return latest.index }
    guard let index = order.row(of: id) else { preconditionFailure("a section without rows has no index") }
    return index
  }

  /// Calls `body` with the sections in order, each with its number of rows. O(sections).
  func forEach(_ body: (_ id: UInt32, _ count: Int) -> Void) {
    order.forEach(in: 0..<order.count) { body($0, Int(records[Int($0)].count)) }
  }

  /// Whether a pass over all sections is faster than to look up so many.
  func isDense(_ count: Int) -> Bool { count > 16 && count > order.count / 8 }
  func rowCount(of id: UInt32) -> Int { Int(records[Int(id)].count) }

  /// The handle of the first row of a section with rows.
  func first(of id: UInt32) -> UInt32 { records[Int(id)].first }
  func setFirst(_ handle: UInt32, of id: UInt32) { records[Int(id)].first = handle }

  /// The section of an existing row.
  func section(of handle: UInt32) -> UInt32 { sectionOf[Int(handle)] }

  /// Prefetches the memory of the section of a row. The result has no meaning; see `PositionTree.touch`.
  @inline(__always)
  func touchMemory(of handle: UInt32) -> UInt32 {
    let id = sectionOf[Int(handle)]
    return records[Int(id)].commit ^ order.touch(id)
  }

  /// Prefetches the memory of the section that `make` will return.
  @inline(__always)
  var nextMemory: UInt32 { free.last.map { records[Int($0)].commit ^ order.touch($0) } ?? 0 }

  // MARK: Mutations

  /// Returns the identifier of a new section. Amortized O(1).
  func make() -> UInt32 {
    if let id = free.popLast() { return id }
    records.append(Record())
    return UInt32(records.count - 1)
  }

  /// Appends a row to the last section, or to a new section, which `didAppendAll` makes one with rows. Not undoable; for a
  /// table that nothing has touched.
  func append(_ handle: UInt32, toLast isInLast: Bool) {
    setSection(of: handle, records.count - (isInLast ? 1 : 0))
    if isInLast {
      records[records.count - 1].count += 1
    } else {
      records.append(Record(count: 1, first: handle))
    }
  }

  /// Records that all rows were appended. O(sections).
  func didAppendAll(_ pace: Pace) {
    assert(order.count == 0, "sections were appended before")
    order.append(records.count, pace) { (UInt32($0), 0) }
  }

  private func setSection(of handle: UInt32, _ id: Int) {
    let place = Int(handle)
    if place >= sectionOf.count { growSectionOf(to: place + 1) }
    sectionOf[place] = UInt32(id)
  }

  /// Adds entries for at least `count` handles. Their number does not follow from the capacity: a list that is shared with a
  /// copy of the table can lose some of that when it grows.
  private func growSectionOf(to count: Int) {
    let grown = max(count, 2 * sectionOf.count, Self.fewestEntries)
    sectionOf.reserveCapacity(grown)
    sectionOf.append(contentsOf: repeatElement(0, count: grown - sectionOf.count))
  }

  private static let fewestEntries = 16

  /// Counts another row. Returns whether it is the only one; the caller must then call `didFill`.
  func addRow(_ handle: UInt32, to id: UInt32) -> Bool {
    touch(id)
    setSection(of: handle, Int(id))
    records[Int(id)].count += 1
    return records[Int(id)].count == 1
  }

  /// Counts one row less. Returns whether none is left; the caller must then call `didEmpty` or `didEmptyAll`.
  func removeRow(from id: UInt32) -> Bool {
    assert(records[Int(id)].count > 0, "a section has less than no rows")
    touch(id)
    records[Int(id)].count -= 1
    return records[Int(id)].count == 0
  }

  /// Records that a section got its first row. O(log sections).
  /// - Parameter predecessor: the section before it; `none` if it is the first one.
  func didFill(_ id: UInt32, after predecessor: UInt32, first: UInt32) {
    records[Int(id)].first = first
    var index = 0
    if predecessor == Self.none { order.insert(id, at: 0) } else { index = order.insert(id, after: predecessor) }
    latest = (id, index)
    // Only an undo gives rows to a section that lost all.
    if emptied.last?.id == id { emptied.removeLast() }
  }

  /// Records that a section lost its last row. O(log sections).
  /// - Parameter version: the version of an element whose key is that of the section; nil if the creation of the section is
  ///   undone.
  func didEmpty(_ id: UInt32, version: ElementText?) {
    guard let index = order.remove(id) else { preconditionFailure("a section without rows lost a row") }
    latest.id = Self.none
    if let version { emptied.append(Emptied(id: id, index: index, version: version)) }
  }

  /// Records that a section will lose its last row with many others. `didEmptyAll` must follow.
  func willEmpty(_ id: UInt32, version: ElementText) { emptied.append(Emptied(id: id, index: -1, version: version)) }

  /// Removes the sections without rows. O(sections).
  func didEmptyAll(_ pace: Pace) {
    latest.id = Self.none
    var gone: [Int] = []
    var index = 0
    order.forEach(in: 0..<order.count) { id in
      if records[Int(id)].count == 0 { gone.append(index) }
      index += 1
    }
    if !gone.isEmpty { order.removeAll(at: gone, pace) }
  }

  private func touch(_ id: UInt32) {
    let record = records[Int(id)]
    if !Self.has(touchedInCommit, id, at: record.commit) {
      records[Int(id)].commit = UInt32(touchedInCommit.count)
      touchedInCommit.append(Touched(id: id, before: record.count))
    }
    if isFirstOperation || Self.has(touchedInOperation, id, at: record.operation) { return }
    records[Int(id)].operation = UInt32(touchedInOperation.count)
    touchedInOperation.append(Touched(id: id, before: record.count))
  }

  private static func has(_ list: [Touched], _ id: UInt32, at place: UInt32) -> Bool {
    Int(place) < list.count && list[Int(place)].id == id
  }

  // MARK: Scopes

  /// The sections that a scope touched, each once.
  func touched(in scope: KeyedSections.Scope) -> [Touched] {
    scope == .operation && !isFirstOperation ? touchedInOperation : touchedInCommit
  }

  /// The number of rows of a section before a scope; nil if the scope has not touched it.
  func rowCount(of id: UInt32, before scope: KeyedSections.Scope) -> Int? {
    let record = records[Int(id)]
    if scope == .operation && !isFirstOperation {
      guard Self.has(touchedInOperation, id, at: record.operation) else { return nil }
      return Int(touchedInOperation[Int(record.operation)].before)
    }
    guard Self.has(touchedInCommit, id, at: record.commit) else { return nil }
    return Int(touchedInCommit[Int(record.commit)].before)
  }

  /// The sections that lost their last row in a scope, also those that the scope created, in the order in which they did.
  func emptied(in scope: KeyedSections.Scope) -> ArraySlice<Emptied> {
    emptied[(scope == .operation ? emptiedBefore : 0)...]
  }

  func endOperation() {
    Self.empty(&touchedInOperation)
    isFirstOperation = touchedInCommit.isEmpty
    emptiedBefore = emptied.count
  }

  /// Ends the commit: frees the identifiers of sections without rows. O(sections touched).
  func endCommit() {
    for index in touchedInCommit.indices where records[Int(touchedInCommit[index].id)].count == 0 {
      free.append(touchedInCommit[index].id)
    }
    Self.empty(&touchedInCommit)
    Self.empty(&emptied)
    endOperation()
  }

  /// Most lists have one entry or none, for which `removeAll` is slow.
  @inline(__always)
  private static func empty<Entry>(_ list: inout [Entry]) {
    if list.count == 1 {
      list.removeLast()
    } else if !list.isEmpty {
      list.removeAll(keepingCapacity: list.count <= 1024)
    }
  }

  /// O(sections).
  func checkInvariants() {
    precondition(records.count { $0.count > 0 } == order.count, "a section with rows is not in order")
    precondition((0..<order.count).allSatisfy { records[Int(order[$0])].count > 0 }, "a section in order has no rows")
    precondition(Set(free).count == free.count, "an identifier is free twice")
    precondition(free.allSatisfy { records[Int($0)].count == 0 }, "a section has a free identifier")
    precondition(emptied.allSatisfy { records[Int($0.id)].count == 0 }, "an emptied section has rows")
    precondition(emptiedBefore <= emptied.count, "the operation began with more emptied sections")
    if touchedInCommit.isEmpty {
      precondition(free.count + order.count == records.count, "an identifier is lost")
      precondition(emptied.isEmpty, "a section without rows is left")
    }
    for (list, place) in [(touchedInOperation, \Record.operation), (touchedInCommit, \Record.commit)] {
      precondition(
        list.indices.allSatisfy { Int(records[Int(list[$0].id)][keyPath: place]) == $0 }, "a touched section is lost")
    }
  }
}
