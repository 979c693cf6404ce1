import FeedChange
import FeedJSON

/// Replacing the content of a list by a small change that is cheap to compute.
extension ListState {
  /// Plans `set`: which rows stay, which get another element, and which are removed or added.
  ///
  /// The common prefix and suffix stay. Between them, rows with equal elements stay as far as their order allows. In
  /// each remaining gap, rows are replaced pairwise before any row is added or removed. O(n log n) in the rows between
  /// prefix and suffix.
  func plan(_ wanted: [JSONView]) -> ListPlan {
    let old = (0..<rows.count).map { elements.text(of: rows[$0]).text }
    var start = 0
    while start < min(old.count, wanted.count), Self.equal(old[start], wanted[start].text) { start += 1 }
    var end = 0
    while end < min(old.count, wanted.count) - start,
      Self.equal(old[old.count - 1 - end], wanted[wanted.count - 1 - end].text)
    { end += 1 }
    var plan = ListPlan()
    var (oldNext, newNext) = (start, start)
    for (oldRow, newRow) in matches(old, wanted, from: start, end: end) + [(old.count - end, wanted.count - end)] {
      plan.fillGap(old: oldNext..<oldRow, new: newNext..<newRow)
      (oldNext, newNext) = (oldRow + 1, newRow + 1)
    }
    return plan
  }

  /// Pairs of equal elements between the common prefix and suffix, ascending on both sides.
  private func matches(
    _ old: [UnsafeRawBufferPointer], _ wanted: [JSONView], from start: Int, end: Int
  ) -> [(Int, Int)] {
    var places: [[UInt8]: [Int]] = [:]
    for row in (start..<(old.count - end)).reversed() { places[Array(old[row]), default: []].append(row) }
    var pairs: [(old: Int, new: Int)] = []
    for row in start..<(wanted.count - end) {
      if let match = places[Array(wanted[row].text)]?.popLast() { pairs.append((match, row)) }
    }
    return longestIncreasing(pairs.map(\.old)).map { pairs[$0] }
  }
}

/// Replacing the content of an array with identities.
extension ListState {
  /// Executes `set` by identity and leaves the change in `step`. An element that stays keeps its row. As many of these
  /// rows as possible keep their place; the others move. O(n log n).
  ///
  /// - Parameter tick: returns the time of the next step.
  /// - Throws: `noIdentity`, `duplicateIdentity` for a repeated identity, `limitExceeded`. The caller rolls back.
  func setByIdentity(_ wanted: [JSONView], _ tick: () -> Instant, _ log: UndoLog) throws(FeedError) {
    step.removeAll(keepingCapacity: true)
    let known = try rowsByIdentity(of: wanted)
    let kept = wanted.indices.filter { known[$0] >= 0 }
    let staying = Set(longestIncreasing(kept.map { known[$0] }).map { kept[$0] })
    let stayingBefore = Set(staying.map { known[$0] })
    let movedBefore = Set(kept.lazy.filter { !staying.contains($0) }.map { known[$0] })
    let handles = known.map { $0 >= 0 ? rows[$0] : ElementTable.none }

    var places: [Int: UInt32] = [:]
    for row in 0..<rows.count where !stayingBefore.contains(row) {
      places[row] = UInt32(step.deleted.count)
      step.deleted.append(IndexPath(section: 0, row: UInt32(row)))
    }
    for path in step.deleted.reversed() {
      let handle = rows[Int(path.row)]
      removeRow(section: 0, at: Int(path.row), log)
      if !movedBefore.contains(Int(path.row)) { removeElement(handle, log) }
    }
    for (row, given) in wanted.enumerated() {
      let element = try compact(given, index: row)
      _ = try identities?.find(identityOf: element, index: row)
      let path = IndexPath(section: 0, row: UInt32(row))
      let now = tick()
      if known[row] < 0 {
        try addRow(element, at: row, now: now, log)
        step.added.append(path)
        continue
      }
      let isChanged = try exchange(handles[row], element, now: now, log)
      if staying.contains(row) {
        if isChanged { step.updated.append(path) }
        continue
      }
      insertRow(handles[row], section: 0, at: row, key: 0, log)
      let deleted = places[known[row]] ?? 0
      step.moves.append(Move(deleted: deleted, added: UInt32(step.added.count), keepsElement: !isChanged))
      step.added.append(path)
    }
    step.moves.sort { $0.deleted < $1.deleted }
  }

  /// The current row of the identity of each element; -1 for a new element.
  ///
  /// - Throws: `noIdentity`, or `duplicateIdentity` for a repeated identity.
  private func rowsByIdentity(of wanted: [JSONView]) throws(FeedError) -> [Int] {
    guard let identities else { return [] }
    var seen: Set<[UInt8]> = []
    var found: [Int] = []
    found.reserveCapacity(wanted.count)
    for (place, element) in wanted.enumerated() {
      let handle = try identities.find(identityOf: element, index: place)
      guard seen.insert(Array(identities.bytes)).inserted else { throw identities.duplicate(element, index: place) }
      found.append(handle.flatMap { rows.row(of: $0) } ?? -1)
    }
    return found
  }
}

/// The steps of a `set` on a list.
struct ListPlan {
  /// Old rows that are removed, ascending.
  private(set) var removed: [Int] = []
  /// New rows that are added, ascending.
  private(set) var added: [Int] = []
  /// Old rows whose elements are replaced, and their new rows.
  private(set) var replaced: [(old: Int, new: Int)] = []

  mutating func fillGap(old: Range<Int>, new: Range<Int>) {
    let common = min(old.count, new.count)
    for offset in 0..<common { replaced.append((old.lowerBound + offset, new.lowerBound + offset)) }
    removed.append(contentsOf: old.dropFirst(common))
    added.append(contentsOf: new.dropFirst(common))
  }
}
