extension Change {
  /// The same change for the feed's rows in one flat list: all paths are of section 0, counted over the sections in order, and the
  /// rows of deleted sections are listed.
  ///
  /// - Parameters:
  ///   - before: the row counts of the sections before the change.
  ///   - after: those after it.
  ///
  /// O(size + sections + rows of deleted sections).
  public func flattened(before: [Int], after: [Int]) -> Change {
    let startsBefore = before.starts()
    let startsAfter = after.starts()
    func flat(_ path: IndexPath, _ starts: [Int]) -> IndexPath {
      IndexPath(section: 0, row: UInt32(truncatingIfNeeded: starts[Int(path.section)]) &+ path.row)
    }
    var result = Change()
    var places: [UInt32] = []
    places.reserveCapacity(deleted.count)
    var next = 0
    for section in sectionsDeleted {
      while next < deleted.count, deleted[next].section < section {
        places.append(UInt32(truncatingIfNeeded: result.deleted.count))
        result.deleted.append(flat(deleted[next], startsBefore))
        next += 1
      }
      for row in 0..<before[Int(section)] {
        result.deleted.append(flat(IndexPath(section: section, row: UInt32(truncatingIfNeeded: row)), startsBefore))
      }
    }
    for path in deleted[next...] {
      places.append(UInt32(truncatingIfNeeded: result.deleted.count))
      result.deleted.append(flat(path, startsBefore))
    }
    result.added = added.map { flat($0, startsAfter) }
    result.updated = updated.map { flat($0, startsAfter) }
    result.moves = moves.map { Move(deleted: places[Int($0.deleted)], added: $0.added) }
    return result
  }
}

extension Array where Element == Int {
  /// For every section the row, in one flat list, of its first row.
  fileprivate func starts() -> [Int] {
    var sum = 0
    return map { count in
      defer { sum += count }
      return sum
    }
  }
}
