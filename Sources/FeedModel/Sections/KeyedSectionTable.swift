import FeedChange

/// The sections of a collection with one section for each value of a key, in order.
///
/// A section takes a few words here; its key and its name are those of its rows.
///
///     let id = table.make()
///     if table.addRow(to: id) {                      // the first row
///       table.didFill(id, at: index, first: handle)  // the section is now at `index`
///     }
///
/// Invariant: `order` has exactly the sections with rows. `gone` has the sections that lost all rows in the open commit
/// and have a known key, by key. Identifiers of sections without rows are free, or were touched in the open commit.
final class KeyedSectionTable {
  /// The identifier of no section.
  static let none = UInt32.max

  private struct Record {
    /// The number of rows.
    var count: UInt32 = 0
    /// The handle of the first row, if there are rows.
    var first: UInt32 = 0
    /// A retained version of an element with the key of the section, set when the section loses its last row; until the
    /// end of the commit. 0 for none.
    var version: UInt = 0
    /// Whether the open operation and the open commit touched the section.
    var isTouched = (operation: false, commit: false)
  }

  /// A section that a scope touched, with its row count before the scope.
  struct Touched {
    let id: UInt32
    let before: Int
  }

  private var records: [Record] = []
  private var free: [UInt32] = []
  private let order: PositionTree
  private let gone = PositionTree(keyed: true)
  /// The section that was added to the order or removed from it last, and its index.
  private var latest: (id: UInt32, index: Int) = (none, 0)
  /// The sections that the open operation and the open commit touched, each once.
  private(set) var touched: (operation: [Touched], commit: [Touched]) = ([], [])

  init() { order = PositionTree(keyed: false) }

  /// Creates a table with the same sections. The open commit must not have changed them. O(sections).
  init(copying other: KeyedSectionTable, _ pace: Pace) {
    assert(other.touched.commit.isEmpty, "the commit has changed the sections")
    (records, free) = (other.records, other.free)
    order = other.order.copy(pace)
  }

  deinit {
    for section in touched.commit { ElementText(bitPattern: records[Int(section.id)].version)?.release() }
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

  /// The index that a section without rows had, if the order has not changed since.
  func formerIndex(of id: UInt32) -> Int? { id == latest.id ? latest.index : nil }

  /// The numbers of rows of the sections, in order. O(sections).
  var rowCounts: [Int] {
    var counts: [Int] = []
    counts.reserveCapacity(order.count)
    order.forEach(in: 0..<order.count) { counts.append(Int(records[Int($0)].count)) }
    return counts
  }

  /// The number of rows of a section.
  func rowCount(of id: UInt32) -> Int { Int(records[Int(id)].count) }

  /// The handle of the first row of a section with rows.
  func first(of id: UInt32) -> UInt32 { records[Int(id)].first }

  func setFirst(_ handle: UInt32, of id: UInt32) { records[Int(id)].first = handle }

  // MARK: Mutations

  /// Returns the identifier of a new section. Amortized O(1).
  func make() -> UInt32 {
    if let id = free.popLast() { return id }
    records.append(Record())
    return UInt32(records.count - 1)
  }

  /// Appends a new section with one row.
  func append(first: UInt32) -> UInt32 {
    let id = make()
    (records[Int(id)].count, records[Int(id)].first) = (1, first)
    latest = (id, order.count)
    order.insert(id, at: order.count)
    return id
  }

  /// Counts another row. Returns whether it is the only one; the caller must then call `didFill`.
  func addRow(to id: UInt32) -> Bool {
    touch(id)
    records[Int(id)].count += 1
    return records[Int(id)].count == 1
  }

  /// Counts another row of a section that was just appended.
  func appendRow(to id: UInt32) { records[Int(id)].count += 1 }

  /// Counts one row less. Returns whether none is left; the caller must then call `didEmpty`.
  func removeRow(from id: UInt32) -> Bool {
    assert(records[Int(id)].count > 0, "a section has less than no rows")
    touch(id)
    records[Int(id)].count -= 1
    return records[Int(id)].count == 0
  }

  /// Records that a section got its first row. O(log sections).
  func didFill(_ id: UInt32, at index: Int, first: UInt32) {
    records[Int(id)].first = first
    order.insert(id, at: index)
    latest = (id, index)
    if gone.count > 0, let place = gone.row(of: id) { _ = gone.remove(at: place) }
  }

  /// Records that a section lost its last row. O(log sections).
  ///
  /// - Parameter version: the version of an element whose key is that of the section; nil if a step is undone.
  func didEmpty(_ id: UInt32, version: ElementText?) {
    let index = index(of: id)
    _ = order.remove(at: index)
    latest = (id, index)
    if records[Int(id)].version == 0, let version {
      version.retain()
      records[Int(id)].version = version.bitPattern
    }
    // Without a version, the section was created in this commit, and its creation is undone.
    guard let key = goneKey(of: id) else { return }
    gone.insert(id, at: placeInGone(key), key: SortOrder.prefix(of: key))
  }

  private func touch(_ id: UInt32) {
    let record = records[Int(id)]
    if record.isTouched.operation { return }
    records[Int(id)].isTouched.operation = true
    touched.operation.append(Touched(id: id, before: Int(record.count)))
    if record.isTouched.commit { return }
    records[Int(id)].isTouched.commit = true
    touched.commit.append(Touched(id: id, before: Int(record.count)))
  }

  // MARK: Sections that lost all rows

  /// The key of a section that lost its last row in this commit; nil if it is not known.
  func goneKey(of id: UInt32) -> UnsafeRawBufferPointer? {
    ElementText(bitPattern: records[Int(id)].version).map { SortOrder.key(0, in: $0.keys) }
  }

  /// The place of a section among those that lost all rows, by key. O(log sections).
  func goneIndex(of id: UInt32) -> Int {
    guard let index = gone.row(of: id) else { preconditionFailure("a section with rows is not gone") }
    return index
  }

  /// The section with a key that lost all rows in this commit; `none` if there is none. O(log sections).
  func findGone(_ key: UnsafeRawBufferPointer) -> UInt32 {
    let place = placeInGone(key)
    guard place > 0, let found = goneKey(of: gone[place - 1]), SortOrder.compare(found, key) == 0 else {
      return Self.none
    }
    return gone[place - 1]
  }

  private func placeInGone(_ key: UnsafeRawBufferPointer) -> Int {
    // Many rows are removed from the last to the first.
    if gone.count == 0 || isGone(gone[0], after: key) { return 0 }
    return gone.upperBound(key: SortOrder.prefix(of: key)) { isGone($0, after: key) }
  }

  private func isGone(_ id: UInt32, after key: UnsafeRawBufferPointer) -> Bool {
    goneKey(of: id).map { SortOrder.compare($0, key) > 0 } ?? false
  }

  // MARK: Scopes

  /// Ends an operation. O(sections touched).
  func endOperation() {
    for index in touched.operation.indices { records[Int(touched.operation[index].id)].isTouched.operation = false }
    touched.operation.removeAll(keepingCapacity: touched.operation.count <= 1024)
  }

  /// Ends the commit: frees the identifiers of sections without rows. O(sections touched).
  func endCommit() {
    assert(touched.operation.isEmpty, "the operation has not ended")
    if gone.count > 64 { gone.removeAll() }
    while gone.count > 0 { _ = gone.remove(at: gone.count - 1) }
    for index in touched.commit.indices {
      let id = touched.commit[index].id
      let record = records[Int(id)]
      ElementText(bitPattern: record.version)?.release()
      records[Int(id)].version = 0
      records[Int(id)].isTouched.commit = false
      if record.count == 0 { free.append(id) }
    }
    touched.commit.removeAll(keepingCapacity: touched.commit.count <= 1024)
  }

  /// O(sections).
  func checkInvariants() {
    precondition(records.count { $0.count > 0 } == order.count, "a section with rows is not in order")
    precondition((0..<order.count).allSatisfy { records[Int(order[$0])].count > 0 }, "a section in order has no rows")
    precondition(Set(free).count == free.count, "an identifier is free twice")
    precondition(free.allSatisfy { records[Int($0)].count == 0 }, "a section has a free identifier")
    if touched.commit.isEmpty {
      precondition(free.count + order.count == records.count, "an identifier is lost")
      precondition(gone.count == 0 && records.allSatisfy { $0.version == 0 }, "a section without rows is left")
    }
    precondition(
      touched.commit.allSatisfy { records[Int($0.id)].isTouched.commit }, "a touched section is not marked")
  }
}
