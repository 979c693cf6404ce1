extension Change {
  /// Removes and inserts the sections of the change in a list with one entry for each section. Rows are not changed.
  /// - Precondition: the change fits the list.
  public func applySections<Section>(to sections: inout [Section], make: (SectionAddition) -> Section) {
    for section in sectionsDeleted.reversed() { sections.remove(at: Int(section)) }
    for addition in sectionsAdded { sections.insert(make(addition), at: Int(addition.at)) }
  }
}

extension Array where Element == IndexPath {
  /// The ranges of ascending paths that share a section.
  package func runsOfSections() -> [(section: Int, places: Range<Int>)] {
    var runs: [(section: Int, places: Range<Int>)] = []
    var start = 0
    for place in indices where place + 1 == count || self[place + 1].section != self[start].section {
      runs.append((Int(self[start].section), start..<place + 1))
      start = place + 1
    }
    return runs
  }
}

extension Change {
  /// Checks the invariant of the change, and that it fits a feed with these row counts.
  /// - Throws: the first violation. O(size of the change + sections).
  public func validate(rowCounts: [Int]) throws(ChangeError) {
    try checkAscending(deleted, .deleted)
    try checkAscending(added, .added)
    try checkAscending(updated, .updated)
    try checkAscending(sectionsDeleted, .sectionsDeleted)
    try checkAscending(sectionsAdded.map(\.at), .sectionsAdded)
    var counts = rowCounts
    try checkDeleted(&counts)
    try checkSections(&counts)
    try checkAdded(&counts)
    try checkUpdated(counts)
    try checkMoves()
  }

  private func checkAscending<Value: Comparable>(_ values: [Value], _ list: ChangeError.List) throws(ChangeError) {
    for place in values.indices.dropFirst() where values[place - 1] >= values[place] {
      throw .notAscending(list, place: place)
    }
  }

  private func checkDeleted(_ counts: inout [Int]) throws(ChangeError) {
    var nextSection = 0
    for (place, path) in deleted.enumerated() {
      let section = Int(path.section)
      guard section < counts.count else { throw .sectionOutOfRange(.deleted, place: place, section: path.section) }
      while nextSection < sectionsDeleted.count, sectionsDeleted[nextSection] < path.section { nextSection += 1 }
      if nextSection < sectionsDeleted.count, sectionsDeleted[nextSection] == path.section {
        throw .rowOfDeletedSection(place: place, path)
      }
    }
    // In descending order, so that the rows removed from the count follow the row that is checked.
    for (place, path) in deleted.enumerated().reversed() {
      guard Int(path.row) < counts[Int(path.section)] else { throw .rowOutOfRange(.deleted, place: place, path) }
      counts[Int(path.section)] -= 1
    }
  }

  private func checkSections(_ counts: inout [Int]) throws(ChangeError) {
    for (place, section) in sectionsDeleted.enumerated().reversed() {
      guard Int(section) < counts.count else {
        throw .sectionOutOfRange(.sectionsDeleted, place: place, section: section)
      }
      counts.remove(at: Int(section))
    }
    for (place, addition) in sectionsAdded.enumerated() {
      guard Int(addition.at) <= counts.count else {
        throw .sectionOutOfRange(.sectionsAdded, place: place, section: addition.at)
      }
      counts.insert(0, at: Int(addition.at))
    }
  }

  private func checkAdded(_ counts: inout [Int]) throws(ChangeError) {
    for (place, path) in added.enumerated() {
      let section = Int(path.section)
      guard section < counts.count else { throw .sectionOutOfRange(.added, place: place, section: path.section) }
      guard Int(path.row) <= counts[section] else { throw .rowOutOfRange(.added, place: place, path) }
      counts[section] += 1
    }
  }

  private func checkUpdated(_ counts: [Int]) throws(ChangeError) {
    var next = 0
    for (place, path) in updated.enumerated() {
      let section = Int(path.section)
      guard section < counts.count else { throw .sectionOutOfRange(.updated, place: place, section: path.section) }
      guard Int(path.row) < counts[section] else { throw .rowOutOfRange(.updated, place: place, path) }
      while next < added.count, added[next] < path { next += 1 }
      if next < added.count, added[next] == path { throw .addedAndUpdated(place: place, path) }
    }
  }

  private func checkMoves() throws(ChangeError) {
    if moves.isEmpty { return }
    var taken = [Bool](repeating: false, count: added.count)
    for (place, move) in moves.enumerated() {
      guard Int(move.deleted) < deleted.count, Int(move.added) < added.count, !taken[Int(move.added)],
        place == 0 || moves[place - 1].deleted < move.deleted
      else { throw .badMove(place: place) }
      taken[Int(move.added)] = true
    }
  }
}

/// The reason why a change is malformed or does not fit a feed.
public enum ChangeError: Error, Equatable, Sendable {
  public enum List: String, Sendable {
    case deleted, added, updated
    case sectionsDeleted = "sections.deleted"
    case sectionsAdded = "sections.added"
  }

  /// An entry of the list is not greater than the one before it.
  case notAscending(List, place: Int)
  /// A row of the list does not exist, or would be inserted past the end.
  case rowOutOfRange(List, place: Int, IndexPath)
  /// A section of the list does not exist, or would be inserted past the end.
  case sectionOutOfRange(List, place: Int, section: UInt32)
  /// A row of `deleted` belongs to a deleted section.
  case rowOfDeletedSection(place: Int, IndexPath)
  /// A row of `updated` is also in `added`.
  case addedAndUpdated(place: Int, IndexPath)
  /// A move names an entry that does not exist or that an earlier move names, or is out of order.
  case badMove(place: Int)
  /// The number of elements is not that of `added` and `updated` together.
  case elementCount(expected: Int, found: Int)
}

extension ChangeError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .notAscending(let list, let place): "\(list.rawValue)[\(place)]: not greater than the entry before it"
    case .rowOutOfRange(let list, let place, let path): "\(list.rawValue)[\(place)]: row \(path) is out of range"
    case .sectionOutOfRange(let list, let place, let section):
      "\(list.rawValue)[\(place)]: section \(section) is out of range"
    case .rowOfDeletedSection(let place, let path): "deleted[\(place)]: row \(path) belongs to a deleted section"
    case .addedAndUpdated(let place, let path): "updated[\(place)]: row \(path) is also added"
    case .badMove(let place): "moves[\(place)]: does not pair an entry of deleted with an entry of added"
    case .elementCount(let expected, let found): "expected \(expected) elements, found \(found)"
    }
  }
}
