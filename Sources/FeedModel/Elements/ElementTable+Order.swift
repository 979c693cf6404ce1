/// The orders of arrival and of change.
extension ElementTable {
  /// The living elements in the order in which they arrived. O(n log n), or O(n) when they are in that order already.
  func inOrderOfArrival() -> [UInt32] {
    sorted { $0.arrival }
  }

  /// So many of the elements that changed last longest ago, or all; ascending by the time of change. O(count).
  func longestUnchanged(_ count: Int) -> [UInt32] {
    var found: [UInt32] = []
    var next = oldest
    while found.count < count, next != Self.none {
      found.append(next)
      next = records[Int(next)].newer
    }
    return found
  }

  /// Puts the order of change right after elements were added in another one. O(n log n), or O(n) when it is right.
  func sortByChange() {
    for handle in sorted(by: { $0.changedAt.nanoseconds }) { moveToNewest(handle) }
  }

  /// The living elements, ascending by a number of theirs; those with equal ones by arrival.
  private func sorted(by number: (ElementText) -> UInt64) -> [UInt32] {
    var keys: [(number: UInt64, arrival: UInt64, handle: UInt32)] = []
    keys.reserveCapacity(count)
    var isSorted = true
    forEach { handle in
      let text = records[Int(handle)].text
      let key = (number: number(text), arrival: text.arrival, handle: handle)
      if let last = keys.last, (key.number, key.arrival) < (last.number, last.arrival) { isSorted = false }
      keys.append(key)
    }
    if !isSorted { keys.sort { ($0.number, $0.arrival) < ($1.number, $1.arrival) } }
    return keys.map(\.handle)
  }
}
