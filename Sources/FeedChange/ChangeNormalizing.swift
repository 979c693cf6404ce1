import FeedJSON

extension Change {
  /// Returns the same change without moves that have no effect: those of rows that keep their order among the rows that
  /// stay. It removes as many moves as possible.
  ///
  /// A composition contains such moves when a row moves away and back. The row is listed as updated instead, unless the
  /// move keeps its element; then the row is not listed.
  ///
  /// O(size + m log m) for m moves.
  ///
  /// - Parameter step: called after each eight moves that are compared.
  public func normalizingMoves(step: () -> Void = {}) -> Change {
    let withoutEffect = movesWithoutEffect(step)
    if withoutEffect.isEmpty { return self }

    var removed = (
      deleted: [Bool](repeating: false, count: deleted.count), added: [Bool](repeating: false, count: added.count)
    )
    for place in withoutEffect {
      removed.deleted[Int(moves[place].deleted)] = true
      removed.added[Int(moves[place].added)] = true
    }
    var result = self
    let newDeleted = result.deleted.removeMarked(removed.deleted)
    let newAdded = result.added.removeMarked(removed.added)
    result.moves = moves.compactMap { move in
      if removed.deleted[Int(move.deleted)] { return nil }
      return Move(
        deleted: newDeleted[Int(move.deleted)], added: newAdded[Int(move.added)], keepsElement: move.keepsElement)
    }
    for place in result.transfers.indices {
      result.transfers[place].added = newAdded[Int(result.transfers[place].added)]
    }
    let replaced = withoutEffect.lazy.map { moves[$0] }.filter { !$0.keepsElement }.map { added[Int($0.added)] }
    result.updated = mergeAscending(updated, replaced.sorted())
    return result
  }

  /// The indexes of a largest set of moves whose rows keep their order among each other and among the rows that stay.
  private func movesWithoutEffect(_ step: () -> Void) -> [Int] {
    if moves.isEmpty { return [] }
    let gapBefore = deleted.gaps()
    let gapAfter = added.gaps()
    var map = SectionMap(removed: sectionsDeleted, inserted: sectionsAdded.map(\.at))
    let candidates = moves.indices.filter { place in
      let move = moves[place]
      let section = map.map(deleted[Int(move.deleted)].section)
      return section == added[Int(move.added)].section && gapBefore[Int(move.deleted)] == gapAfter[Int(move.added)]
    }
    let order = longestIncreasing(candidates.map { moves[$0].added }, step: step)
    return order.map { candidates[$0] }
  }
}

extension Array where Element == IndexPath {
  /// For each of these ascending rows, the number of rows of its section before it that are not in this list.
  package func gaps() -> [UInt32] {
    var start = 0
    return indices.map { place in
      if self[place].section != self[start].section { start = place }
      return self[place].row &- UInt32(truncatingIfNeeded: place - start)
    }
  }

  /// Removes the marked entries. Returns the new index of each old entry.
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

/// Returns the indexes of a longest strictly increasing subsequence of `values`. O(n log n).
///
/// - Parameter step: called after each eight values. Each takes about a microsecond; none grows or fills a large array.
@inlinable package func longestIncreasing<Value: Comparable>(_ values: [Value], step: () -> Void = {}) -> [Int] {
  /// `tails[k]` is the index of the smallest value that ends an increasing subsequence of length k + 1.
  var tails: [Int] = []
  tails.reserveCapacity(values.count)
  if values.indices.dropFirst().allSatisfy({ values[$0 - 1] < values[$0] }) {
    for index in values.indices {
      tails.append(index)
      if index & 63 == 0 { step() }
    }
    return tails
  }
  var previous: [Int] = []
  previous.reserveCapacity(values.count)
  for (index, value) in values.enumerated() {
    let length = tails.indices.partitionPoint { values[tails[$0]] < value }
    previous.append(length > 0 ? tails[length - 1] : -1)
    if length == tails.count { tails.append(index) } else { tails[length] = index }
    if index & 7 == 0 { step() }
  }
  // From the end: each is in its place when its successor is known.
  var next = tails.last ?? -1
  for place in tails.indices.reversed() {
    tails[place] = next
    if place & 31 == 0 { step() }
    next = previous[next]
  }
  return tails
}
