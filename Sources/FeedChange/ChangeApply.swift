/// Applies a change to a copy of the feed, in the way that the protocol tells.
///
/// `elements` are those of `change.added` and then those of `change.updated`. When the change does not fit, the error says
/// where and `sections` is as it was: the reader has missed a change and must start over from a snapshot.
///
/// O(size of the change + rows of the sections it touches).
public func apply<Element>(
  _ change: Change, to sections: inout [[Element]], elements: [Element]
) throws(ChangeError) {
  try change.validate(rowCounts: sections.map(\.count))
  let expected = change.added.count + change.updated.count
  guard elements.count == expected else { throw .elementCount(expected: expected, found: elements.count) }

  for rows in change.deleted.runsOfSections().reversed() {
    sections[Int(change.deleted[rows.lowerBound].section)].removeRows(change.deleted[rows])
  }
  change.applySections(to: &sections) { _ in [] }
  for rows in change.added.runsOfSections() {
    sections[Int(change.added[rows.lowerBound].section)].insertRows(change.added[rows], elements[rows])
  }
  for (path, element) in zip(change.updated, elements[change.added.count...]) {
    sections[Int(path.section)][Int(path.row)] = element
  }
}

extension Change {
  /// Removes and inserts the sections of the change, which must fit, in any list with one entry a section: their rows, their
  /// names, their views. Rows are left alone.
  public func applySections<Section>(to sections: inout [Section], make: (SectionAddition) -> Section) {
    for section in sectionsDeleted.reversed() { sections.remove(at: Int(section)) }
    for addition in sectionsAdded { sections.insert(make(addition), at: Int(addition.at)) }
  }
}

extension Array where Element == IndexPath {
  /// The ranges of ascending paths that share a section.
  fileprivate func runsOfSections() -> [Range<Int>] {
    var runs: [Range<Int>] = []
    var start = 0
    for place in indices where place + 1 == count || self[place + 1].section != self[start].section {
      runs.append(start..<place + 1)
      start = place + 1
    }
    return runs
  }
}

extension Array {
  /// Up to so many rows are moved in place, each at the price of shifting what follows; more are done in one pass.
  private static var rowsInPlace: Int { 2 }

  /// Removes the rows at `paths`, ascending, all there.
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

  /// Inserts `elements` so that they stand at the rows of `paths`, ascending, none past the end.
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
