import FeedJSON

extension Change {
  /// Returns the same change without moves that have no effect: those of rows that keep their order among the rows that
  /// stay. It removes as many moves as possible.
  ///
  /// So the change of two states can be made by listing all rows as deleted and added, and those of both states as moved.
  /// A composition contains such moves when a row moves away and back. The row is listed as updated instead, unless the
  /// move keeps its element; then the row is not listed.
  ///
  /// O(size + m log m) for m moves.
  /// - Parameters:
  ///   - inOrderAfter: whether the rows that stay are searched in their order after the change. Of several largest sets, another
  ///     one is found then: of two rows that change places, the one that is last after the change, and not before it.
  ///   - step: called after each eight moves that are compared, and after about as much other work.
  public func normalizingMoves(inOrderAfter: Bool = false, step: () -> Void = {}) -> Change {
    let withoutEffect = movesWithoutEffect(inOrderAfter, step)
    if withoutEffect.isEmpty { return self }

    var removed = (
      deleted: [Bool](repeating: false, count: deleted.count), added: [Bool](repeating: false, count: added.count)
    )
    // Ascending, as the added rows of these moves are.
    var replaced: [IndexPath] = []
    replaced.reserveCapacity(withoutEffect.count)
    for (number, place) in withoutEffect.enumerated() {
      if number & 63 == 63 { step() }
      let move = moves[place]
      removed.deleted[Int(move.deleted)] = true
      removed.added[Int(move.added)] = true
      if !move.keepsElement { replaced.append(added[Int(move.added)]) }
    }
    var result = Change(sectionsDeleted: sectionsDeleted, sectionsAdded: sectionsAdded)
    let newDeleted = deleted.copy(to: &result.deleted, without: removed.deleted, step)
    let newAdded = added.copy(to: &result.added, without: removed.added, step)
    result.moves.reserveCapacity(moves.count - withoutEffect.count)
    for (number, move) in moves.enumerated() {
      if number & 63 == 63 { step() }
      if removed.deleted[Int(move.deleted)] { continue }
      result.moves.append(
        Move(deleted: newDeleted[Int(move.deleted)], added: newAdded[Int(move.added)], keepsElement: move.keepsElement))
    }
    result.transfers.reserveCapacity(transfers.count)
    for (number, known) in transfers.enumerated() {
      if number & 63 == 63 { step() }
      result.transfers.append(
        Transfer(from: known.from, added: newAdded[Int(known.added)], keepsElement: known.keepsElement))
    }
    result.updated = mergeAscending(updated, replaced)
    return result
  }

  /// The indexes of a largest set of moves whose rows keep their order among each other and among the rows that stay.
  private func movesWithoutEffect(_ inOrderAfter: Bool, _ step: () -> Void) -> [Int] {
    if moves.isEmpty { return [] }
    let gapBefore = deleted.gaps(step)
    let gapAfter = added.gaps(step)
    var map = SectionMap(removed: sectionsDeleted, inserted: sectionsAdded.map(\.at))
    var candidates: [Int] = []
    var places: [UInt32] = []
    candidates.reserveCapacity(moves.count)
    places.reserveCapacity(moves.count)
    for (number, move) in moves.enumerated() {
      if number & 63 == 63 { step() }
      let section = map.map(deleted[Int(move.deleted)].section)
      guard section == added[Int(move.added)].section, gapBefore[Int(move.deleted)] == gapAfter[Int(move.added)]
      else { continue }
      candidates.append(number)
      places.append(move.added)
    }
    if inOrderAfter { sortByAdded(&candidates, &places, step) }
    var order = longestIncreasing(places, step: step)
    for index in order.indices {
      if index & 255 == 255 { step() }
      order[index] = candidates[order[index]]
    }
    return order
  }

  /// Sorts moves by the rows that they add, and sets `places` to the rows that they delete.
  private func sortByAdded(_ candidates: inout [Int], _ places: inout [UInt32], _ step: () -> Void) {
    var moveOf: [Int32] = []
    moveOf.reserveCapacity(added.count)
    while moveOf.count < added.count {
      moveOf.append(contentsOf: repeatElement(-1, count: Swift.min(1024, added.count - moveOf.count)))
      step()
    }
    for (number, index) in candidates.enumerated() {
      moveOf[Int(places[number])] = Int32(truncatingIfNeeded: index)
      if number & 63 == 63 { step() }
    }
    candidates.removeAll(keepingCapacity: true)
    places.removeAll(keepingCapacity: true)
    for (number, index) in moveOf.enumerated() {
      if number & 63 == 63 { step() }
      if index < 0 { continue }
      candidates.append(Int(index))
      places.append(moves[Int(index)].deleted)
    }
  }
}

extension Array where Element == IndexPath {
  /// For each of these ascending rows, the number of rows of its section before it that are not in this list.
  /// - Parameter step: called after about a microsecond of work.
  package func gaps(_ step: () -> Void = {}) -> [UInt32] {
    var gaps: [UInt32] = []
    gaps.reserveCapacity(count)
    var start = 0
    for place in indices {
      if self[place].section != self[start].section { start = place }
      gaps.append(self[place].row &- UInt32(truncatingIfNeeded: place - start))
      if place & 255 == 255 { step() }
    }
    return gaps
  }

  /// Copies the entries that are not marked to an empty list. Returns the new index of each entry.
  fileprivate func copy(to kept: inout Self, without marked: [Bool], _ step: () -> Void) -> [UInt32] {
    var places: [UInt32] = []
    places.reserveCapacity(count)
    kept.reserveCapacity(count)
    for place in indices {
      places.append(UInt32(truncatingIfNeeded: kept.count))
      if !marked[place] { kept.append(self[place]) }
      if place & 255 == 255 { step() }
    }
    return places
  }
}

/// Returns the indexes of a longest strictly increasing subsequence of `values`. O(n log n).
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
