import FeedChange

/// Enumerates every change, with all its moves and transfers, that lists at most `budget` rows and sections of a small feed.
package struct AllChanges {
  package var budget: Int
  /// The maximum number of added sections.
  package var sectionsAdded = 1

  package init(budget: Int, sectionsAdded: Int = 1) {
    self.budget = budget
    self.sectionsAdded = sectionsAdded
  }

  /// Returns all changes that fit a feed with these row counts.
  package func changes(from rowCounts: [Int]) -> [Change] {
    var result: [Change] = []
    let sections = (0..<rowCounts.count).map { UInt32($0) }
    for gone in Self.subsets(sections, upTo: budget) {
      let departed = gone.flatMap { section in
        (0..<rowCounts[Int(section)]).map { IndexPath(section: section, row: UInt32($0)) }
      }
      let rows = sections.filter { !gone.contains($0) }.flatMap { section in
        (0..<rowCounts[Int(section)]).map { IndexPath(section: section, row: UInt32($0)) }
      }
      for deleted in Self.subsets(rows, upTo: budget - gone.count) {
        var change = Change(deleted: deleted, sectionsDeleted: gone)
        let survivors = sections.filter { !gone.contains($0) }.map { section in
          rowCounts[Int(section)] - deleted.count { $0.section == section }
        }
        addSections(to: &change, survivors, departed, &result)
      }
    }
    return result
  }

  private func addSections(
    to change: inout Change, _ survivors: [Int], _ departed: [IndexPath], _ result: inout [Change]
  ) {
    for count in 0...max(0, min(sectionsAdded, budget - change.size)) {
      let places = (0..<survivors.count + count).map { UInt32($0) }
      for added in Self.subsets(places, upTo: count) where added.count == count {
        var next = change
        next.sectionsAdded = added.map { SectionAddition(at: $0, name: "s\($0)") }
        var counts = survivors
        for place in added { counts.insert(0, at: Int(place)) }
        addRows(to: next, counts, section: 0, departed, &result)
      }
    }
  }

  private func addRows(
    to change: Change, _ counts: [Int], section: Int, _ departed: [IndexPath], _ result: inout [Change]
  ) {
    if section == counts.count {
      update(change, counts, departed, &result)
      return
    }
    for count in 0...(budget - change.size) {
      let places = (0..<counts[section] + count).map { IndexPath(section: UInt32(section), row: UInt32($0)) }
      for added in Self.subsets(places, upTo: count) where added.count == count {
        var next = change
        next.added += added
        var after = counts
        after[section] += count
        addRows(to: next, after, section: section + 1, departed, &result)
      }
    }
  }

  private func update(_ change: Change, _ counts: [Int], _ departed: [IndexPath], _ result: inout [Change]) {
    let rows = counts.indices.flatMap { section in
      (0..<counts[section]).map { IndexPath(section: UInt32(section), row: UInt32($0)) }
    }
    for updated in Self.subsets(rows.filter { !change.added.contains($0) }, upTo: budget - change.size) {
      var next = change
      next.updated = updated
      move(next, from: 0, departed, &result)
    }
  }

  private func move(_ change: Change, from deleted: Int, _ departed: [IndexPath], _ result: inout [Change]) {
    if deleted == change.deleted.count { return transfer(change, departed, &result) }
    move(change, from: deleted + 1, departed, &result)
    for added in change.added.indices where !change.moves.contains(where: { Int($0.added) == added }) {
      var next = change
      next.moves.append(Move(deleted: UInt32(deleted), added: UInt32(added)))
      move(next, from: deleted + 1, departed, &result)
    }
  }

  /// - Parameter departed: rows of deleted sections.
  private func transfer(_ change: Change, _ departed: [IndexPath], _ result: inout [Change]) {
    guard let row = departed.first else { return result.append(change) }
    transfer(change, Array(departed.dropFirst()), &result)
    for added in change.added.indices.map({ UInt32($0) }) {
      if change.moves.contains(where: { $0.added == added }) || change.transfers.contains(where: { $0.added == added })
      {
        continue
      }
      var next = change
      next.transfers.append(Transfer(from: row, added: added, keepsElement: false))
      transfer(next, Array(departed.dropFirst()), &result)
    }
  }

  /// Returns all subsets of `values` with at most `limit` members, each in the order of `values`.
  package static func subsets<Value>(_ values: [Value], upTo limit: Int) -> [[Value]] {
    var result: [[Value]] = [[]]
    for value in values {
      result += result.filter { $0.count < limit }.map { $0 + [value] }
    }
    return result
  }
}
