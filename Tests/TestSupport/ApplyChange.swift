import FeedChange

/// Applies a change to a copy of the feed, row by row, as "The change" in `Protocol/README.md` says.
///
/// - Parameter elements: the elements of `change.added`, then those of `change.updated`.
/// - Throws: where the change does not fit. `sections` is then unchanged.
public func apply<Element>(
  _ change: Change, to sections: inout [[Element]], elements: [Element]
) throws(ChangeError) {
  try change.validate(rowCounts: sections.map(\.count))
  let expected = change.added.count + change.updated.count
  guard elements.count == expected else { throw .elementCount(expected: expected, found: elements.count) }
  for path in change.deleted.reversed() { sections[Int(path.section)].remove(at: Int(path.row)) }
  change.applySections(to: &sections) { _ in [] }
  for (path, element) in zip(change.added, elements) { sections[Int(path.section)].insert(element, at: Int(path.row)) }
  for (path, element) in zip(change.updated, elements[change.added.count...]) {
    sections[Int(path.section)][Int(path.row)] = element
  }
}
