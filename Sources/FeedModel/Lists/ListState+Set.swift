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
