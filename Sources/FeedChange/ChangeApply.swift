/// Applies a change to a copy of the feed.
///
/// - Parameter elements: the elements of `change.added`, then those of `change.updated`.
/// - Throws: where the change does not fit. `sections` is then unchanged. The copy has missed a change, so its owner must
///   ask for a snapshot.
///
/// O(size of the change + rows of the sections it touches).
public func apply<Element>(
  _ change: Change, to sections: inout [[Element]], elements: [Element]
) throws(ChangeError) {
  try change.validate(rowCounts: sections.map(\.count))
  let expected = change.added.count + change.updated.count
  guard elements.count == expected else { throw .elementCount(expected: expected, found: elements.count) }

  for run in change.deleted.runsOfSections().reversed() {
    sections[run.section].removeRows(change.deleted[run.places])
  }
  change.applySections(to: &sections) { _ in [] }
  for run in change.added.runsOfSections() {
    sections[run.section].insertRows(change.added[run.places], elements[run.places])
  }
  for (path, element) in zip(change.updated, elements[change.added.count...]) {
    sections[Int(path.section)][Int(path.row)] = element
  }
}

extension Change {
  /// Removes and inserts the sections of the change in a list with one entry for each section. Rows are not changed.
  ///
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

extension Array {
  /// The most rows that are removed or inserted one by one; more are done in one pass over the section.
  private static var rowsInPlace: Int { 2 }

  /// Removes the rows at `paths`, which are ascending and exist.
  fileprivate mutating func removeRows(_ paths: ArraySlice<IndexPath>) {
    if paths.count <= Self.rowsInPlace {
      for path in paths.reversed() { remove(at: Int(path.row)) }
      return
    }
    var next = paths.startIndex
    var kept = 0
    for row in indices {
      if next < paths.endIndex, Int(paths[next].row) == row {
        next += 1
      } else {
        swapAt(kept, row)
        kept += 1
      }
    }
    removeLast(count - kept)
  }

  /// Inserts `elements` at the rows of `paths`, which are ascending and not past the end.
  fileprivate mutating func insertRows(_ paths: ArraySlice<IndexPath>, _ elements: ArraySlice<Element>) {
    if paths.count <= Self.rowsInPlace {
      for (path, element) in zip(paths, elements) { insert(element, at: Int(path.row)) }
      return
    }
    var merged: [Element] = []
    merged.reserveCapacity(count + paths.count)
    var old = startIndex
    for (path, element) in zip(paths, elements) {
      let before = Int(path.row) - merged.count
      merged.append(contentsOf: self[old..<old + before])
      old += before
      merged.append(element)
    }
    merged.append(contentsOf: self[old...])
    self = merged
  }
}
