import FeedChange

extension Mirror {
  /// Takes in a part of a snapshot.
  /// - Returns: whether the series is complete now and the mirror shows its rows.
  @discardableResult
  public mutating func apply(_ part: SnapshotPart) throws(FeedFault) -> Bool {
    guard part.feed == feed else { throw .foreign(part.feed) }
    var next = progress
    try next.take(snapshot: part.revision, isReset: part.resetSections != nil, isLast: part.isLast)
    if let sections = part.resetSections {
      let fresh = IncomingSnapshot(sections: sections)
      try fresh.check(part)
      incoming = fresh
    } else {
      try incoming.check(part)
    }
    progress = next
    incoming.add(part)
    guard part.isLast else { return false }
    sections = incoming.sections
    incoming = IncomingSnapshot(sections: [])
    return true
  }

  /// Takes in a delta. O(size of the delta) plus a short walk for each section it touches; see ``ChunkedList``.
  public mutating func apply(_ delta: Delta) throws(FeedFault) {
    guard delta.feed == feed else { throw .foreign(delta.feed) }
    var next = progress
    try next.take(deltaFrom: delta.from, to: delta.revision)
    do throws(ChangeError) {
      try delta.change.validate(rowCounts: sections.map(\.rows.count))
    } catch {
      throw .misfit(error, revision: delta.revision)
    }
    let expected = delta.change.added.count + delta.change.updated.count
    guard delta.elements.count == expected else {
      throw .misfit(.elementCount(expected: expected, found: delta.elements.count), revision: delta.revision)
    }
    progress = next
    carryOut(delta)
  }

  /// Takes in a bookmark.
  public mutating func apply(_ bookmark: Bookmark) throws(FeedFault) {
    guard bookmark.feed == feed else { throw .foreign(bookmark.feed) }
    try progress.take(bookmark)
  }

  /// Takes in which rows are selected.
  public mutating func apply(_ selection: Selection) throws(FeedFault) {
    guard selection.feed == feed else { throw .foreign(selection.feed) }
    selected = selection.selected
  }

  /// Applies a delta that has been validated, in the order that the protocol gives.
  private mutating func carryOut(_ delta: Delta) {
    let change = delta.change
    for run in change.deleted.runsOfSections() {
      sections[run.section].rows.remove(change.deleted[run.places].lazy.map { Int($0.row) })
    }
    change.applySections(to: &sections) { Section(name: $0.name, rows: ChunkedList()) }
    let rows = rowsOf(delta)
    for run in change.added.runsOfSections() {
      sections[run.section].rows.insert(rows[run.places], at: change.added[run.places].lazy.map { Int($0.row) })
    }
    let updated = rows[change.added.count...]
    for run in change.updated.runsOfSections() {
      let places = run.places.lowerBound + change.added.count..<run.places.upperBound + change.added.count
      sections[run.section].rows.replace(
        change.updated[run.places].lazy.map { Int($0.row) }, with: updated[places])
    }
  }

  /// The rows that a delta brings: the added ones and then the updated ones.
  private func rowsOf(_ delta: Delta) -> [Row] {
    let added = delta.change.added.count
    var rows = delta.elements.indices.map { place in
      Row(
        element: delta.elements[place], type: delta.types?[place], origin: place < added ? .added : .updated,
        revision: delta.revision)
    }
    for move in delta.change.moves { rows[Int(move.added)].origin = .moved }
    return rows
  }
}

extension [IndexPath] {
  /// The ranges of ascending paths that share a section.
  fileprivate func runsOfSections() -> [(section: Int, places: Range<Int>)] {
    var runs: [(section: Int, places: Range<Int>)] = []
    var start = 0
    for place in indices where place + 1 == count || self[place + 1].section != self[start].section {
      runs.append((Int(self[start].section), start..<place + 1))
      start = place + 1
    }
    return runs
  }
}
