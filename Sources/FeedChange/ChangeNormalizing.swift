extension Change {
  /// The same change without the moves that move nothing: rows that stand, after it, where they stood among the rows that
  /// stay. As many rows as possible are let stay.
  ///
  /// Compositions leave such pairs behind, as when a row goes somewhere and comes back. A change does not tell whether the
  /// element of a moved row is another one now; with `asUpdates` these rows are listed in `updated`, without it they are not
  /// mentioned any more.
  ///
  /// O(size + m log m) for m moves.
  public func normalizingMoves(asUpdates: Bool) -> Change {
    let still = movesThatStay()
    if still.isEmpty { return self }

    var stays = (
      deleted: [Bool](repeating: false, count: deleted.count), added: [Bool](repeating: false, count: added.count)
    )
    for place in still {
      stays.deleted[Int(moves[place].deleted)] = true
      stays.added[Int(moves[place].added)] = true
    }
    var result = self
    let newDeleted = result.deleted.removeMarked(stays.deleted)
    let newAdded = result.added.removeMarked(stays.added)
    result.moves = moves.compactMap { move in
      if stays.deleted[Int(move.deleted)] { return nil }
      return Move(deleted: newDeleted[Int(move.deleted)], added: newAdded[Int(move.added)])
    }
    if asUpdates {
      let rows = added.indices.filter { stays.added[$0] }.map { added[$0] }
      result.updated = mergeAscending(updated, rows)
    }
    return result
  }

  /// The places in `moves` of a largest set of moves that keep their order among each other and among the surviving rows.
  private func movesThatStay() -> [Int] {
    if moves.isEmpty { return [] }
    let gapBefore = deleted.gaps()
    let gapAfter = added.gaps()
    var map = SectionMap(removed: sectionsDeleted, inserted: sectionsAdded.map(\.at))
    let candidates = moves.indices.filter { place in
      let move = moves[place]
      let section = map.map(deleted[Int(move.deleted)].section)
      return section == added[Int(move.added)].section && gapBefore[Int(move.deleted)] == gapAfter[Int(move.added)]
    }
    let order = longestIncreasing(candidates.map { moves[$0].added })
    return order.map { candidates[$0] }
  }
}

extension Array where Element == IndexPath {
  /// For every one of these ascending rows, how many unlisted rows of its section stand before it.
  fileprivate func gaps() -> [UInt32] {
    var start = 0
    return indices.map { place in
      if self[place].section != self[start].section { start = place }
      return self[place].row &- UInt32(truncatingIfNeeded: place - start)
    }
  }

  /// Removes the entries that are marked and returns the new place of every entry that was there.
  fileprivate mutating func removeMarked(_ marked: [Bool]) -> [UInt32] {
    var places: [UInt32] = []
    places.reserveCapacity(count)
    var kept = 0
    for place in indices {
      places.append(UInt32(truncatingIfNeeded: kept))
      if !marked[place] {
        self[kept] = self[place]
        kept += 1
      }
    }
    removeLast(count - kept)
    return places
  }
}

/// The indexes of one longest strictly increasing subsequence of `values`, ascending. O(n log n).
package func longestIncreasing<Value: Comparable>(_ values: [Value]) -> [Int] {
  if values.indices.dropFirst().allSatisfy({ values[$0 - 1] < values[$0] }) { return Array(values.indices) }
  /// `tails[k]` ends the subsequence of length k + 1 whose end is the smallest so far.
  var tails: [Int] = []
  var previous = [Int](repeating: -1, count: values.count)
  for (index, value) in values.enumerated() {
    var low = 0
    var high = tails.count
    while low < high {
      let middle = (low + high) / 2
      if values[tails[middle]] < value { low = middle + 1 } else { high = middle }
    }
    if low > 0 { previous[index] = tails[low - 1] }
    if low == tails.count { tails.append(index) } else { tails[low] = index }
  }
  var result: [Int] = []
  var next = tails.last ?? -1
  while next >= 0 {
    result.append(next)
    next = previous[next]
  }
  return result.reversed()
}
