/// The index of the first section of each child in the list of all sections: the prefix sums of the section counts.
///
/// Invariant: unless unknown, there is one entry for each child and one for the end, ascending.
struct SectionStarts {
  /// Empty while unknown.
  private var starts: [Int] = []

  var isKnown: Bool { !starts.isEmpty }

  /// The number of all sections.
  var end: Int { starts[starts.count &- 1] }

  /// The index of the first section of the child at a place. For a hidden child, that of the next visible child.
  subscript(place: Int) -> Int { starts[place] }

  /// Discards the sums, because sections may have been added or removed.
  mutating func invalidate() {
    if !starts.isEmpty { starts.removeAll(keepingCapacity: true) }
  }

  /// Computes the prefix sums. Children outside `shown` count as having no sections.
  mutating func sum(_ children: [Feed], shown: Range<Int>) {
    assert(starts.isEmpty, "the starts are known already")
    var end = 0
    for (place, child) in children.enumerated() {
      starts.append(end)
      if shown.contains(place) { end += child.sectionCount }
    }
    starts.append(end)
    assert(starts.count == children.count + 1, "a child has no start")
  }

  /// The place of the child that has the section at `index`: the last child that begins at or before it. Hidden
  /// children and children without sections begin where the next child begins. O(log children).
  func place(ofSection index: Int) -> Int {
    var (low, high) = (0, starts.count &- 2)
    while low < high {
      let middle = (low &+ high &+ 1) / 2
      if starts[middle] <= index { low = middle } else { high = middle &- 1 }
    }
    return low
  }
}
