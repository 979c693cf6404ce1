import FeedChange

extension Change {
  /// Returns the change from the rows of one definition of a view to those of another, with as few rows as possible moved.
  ///
  /// - Parameters:
  ///   - before: the rows of the source that the view showed, by their present places in it; negative if they are gone.
  ///   - after: the rows of the source that the view shows.
  ///   - changed: the rows of the source whose element changed.
  ///   - pace: lets the computation stop, because the lists can be long.
  ///
  /// O(n log n).
  static func between(_ before: [Int], _ after: [Int], changed: Set<Int> = [], _ pace: Pace) -> Change {
    let common = commonRows(before, after, pace)
    let staying = longestIncreasing(common.map(pace, \.before)) { pace.spend() }
    var (staysBefore, staysAfter) = (
      [Bool](repeating: false, count: before.count, pace), [Bool](repeating: false, count: after.count, pace)
    )
    for (step, index) in staying.enumerated() {
      staysBefore[common[index].before] = true
      staysAfter[common[index].after] = true
      if step & 63 == 63 { pace.spend() }
    }
    var change = Change()
    // An array that grows copies everything at once.
    change.deleted.reserveCapacity(before.count - staying.count)
    change.added.reserveCapacity(after.count - staying.count)
    change.moves.reserveCapacity(common.count - staying.count)
    /// For each row before, its index in `deleted`.
    var placesInDeleted = [UInt32](repeating: 0, count: before.count, pace)
    for place in before.indices where !staysBefore[place] {
      placesInDeleted[place] = UInt32(change.deleted.count)
      change.deleted.append(IndexPath(section: 0, row: UInt32(place)))
      if place & 31 == 31 { pace.spend() }
    }
    var next = 0
    for (place, row) in after.enumerated() {
      if place & 15 == 15 { pace.spend() }
      let path = IndexPath(section: 0, row: UInt32(place))
      let former = next < common.count && common[next].after == place ? common[next].before : nil
      if former != nil { next += 1 }
      if staysAfter[place] {
        if changed.contains(row) { change.updated.append(path) }
        continue
      }
      if let former {
        change.moves.append(
          Move(
            deleted: placesInDeleted[former], added: UInt32(change.added.count), keepsElement: !changed.contains(row)))
      }
      change.added.append(path)
    }
    change.moves.sort(pace) { $0.deleted < $1.deleted }
    return change
  }

  /// The places of the rows that are in both lists, ascending by the place after.
  private static func commonRows(
    _ before: [Int], _ after: [Int], _ pace: Pace
  ) -> [(before: Int, after: Int)] {
    var places = [Int: Int](minimumCapacity: before.count)
    for (place, row) in before.enumerated() where row >= 0 {
      places[row] = place
      if place & 15 == 15 { pace.spend() }
    }
    var common: [(before: Int, after: Int)] = []
    common.reserveCapacity(min(before.count, after.count))
    for (place, row) in after.enumerated() {
      if let former = places[row] { common.append((former, place)) }
      if place & 15 == 15 { pace.spend() }
    }
    return common
  }
}
