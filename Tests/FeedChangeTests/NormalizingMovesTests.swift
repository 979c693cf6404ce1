import TestSupport
import Testing

@testable import FeedChange

/// Removal of moves without effect, compared with every subset of the moves.
struct NormalizingMovesTests {
  /// Removes the given moves from the change; nil if the rows would then be in another order.
  private func letting(_ places: [Int], stayIn change: Change, of feed: TokenFeed) -> Change? {
    var result = change
    let moves = places.map { change.moves[$0] }
    result.deleted = change.deleted.indices.filter { i in !moves.contains { Int($0.deleted) == i } }
      .map { change.deleted[$0] }
    result.added = change.added.indices.filter { i in !moves.contains { Int($0.added) == i } }.map { change.added[$0] }
    result.updated = (change.updated + moves.map { change.added[Int($0.added)] }).sorted()
    result.moves = change.moves.indices.filter { !places.contains($0) }.compactMap { place in
      let move = change.moves[place]
      guard let from = result.deleted.firstIndex(of: change.deleted[Int(move.deleted)]),
        let to = result.added.firstIndex(of: change.added[Int(move.added)])
      else { return nil }
      return Move(deleted: UInt32(from), added: UInt32(to))
    }
    result.transfers = change.transfers.compactMap { known in
      result.added.firstIndex(of: change.added[Int(known.added)]).map {
        Transfer(from: known.from, added: UInt32($0), keepsElement: known.keepsElement)
      }
    }
    return roots(feed, result) == roots(feed, change) ? result : nil
  }

  /// The rows after the change, each as its token before the change, 0 for a new row.
  private func roots(_ feed: TokenFeed, _ change: Change) -> [[Int]] {
    guard (try? change.validate(rowCounts: feed.rowCounts)) != nil else { return [] }
    let old = Set(feed.sections.flatMap { $0.rows.map(\.token) })
    let after = feed.applying(change)
    return after.sections.map { section in
      section.rows.map { old.contains($0.token) ? $0.token : after.origins[$0.token] ?? 0 }
    }
  }

  private func check(_ change: Change, of feed: TokenFeed, _ note: String) {
    let possible = AllChanges.subsets(Array(change.moves.indices), upTo: change.moves.count)
      .compactMap { letting($0, stayIn: change, of: feed) }
    let best = possible.map(\.moves.count).min() ?? change.moves.count
    let result = change.normalizingMoves()
    expect(
      possible.contains(where: result.isIdentical) && result.moves.count == best, "\(note): \(change) became \(result)")
    var keeping = change
    for place in keeping.moves.indices { keeping.moves[place].keepsElement = true }
    let silent = keeping.normalizingMoves()
    expect(silent.updated == change.updated && silent.deleted == result.deleted && silent.added == result.added)
  }

  @Test(arguments: [[1], [2], [3], [1, 1], [2, 1]])
  func smallChangesLoseMostMoves(_ rowCounts: [Int]) {
    let feed = TokenFeed(rowCounts: rowCounts)
    for change in AllChanges(budget: 4, sectionsAdded: 1).changes(from: rowCounts) where !change.moves.isEmpty {
      check(change, of: feed, "\(rowCounts)")
    }
  }

  @Test(arguments: UInt64(1)...100)
  func randomChangesLoseMostMoves(_ seed: UInt64) {
    var changes = RandomChanges(random: SeededRandom(seed: seed), rows: 5)
    for _ in 0..<10 {
      let feed = TokenFeed(rowCounts: [4, 2])
      let change = changes.next(for: feed.rowCounts)
      check(change, of: feed, "seed \(seed)")
    }
  }

}

/// The change that a resuming watcher receives: composed, and without moves that have no effect. A row is listed as updated
/// only if its element was replaced. A row that moved away and back unchanged is not listed.
struct ReturningRowTests {
  /// A feed of values: each stored element has a unique value.
  private struct Values {
    var sections: [[Int]]
    private var last: Int

    init(rowCounts: [Int]) {
      var last = 0
      sections = rowCounts.map { count in
        (0..<count).map { _ in
          last += 1
          return last
        }
      }
      self.last = last
    }

    /// Applies a change. A move that keeps its element keeps the value; all other listed rows get new values.
    mutating func apply(_ change: Change) throws {
      var elements: [Int] = []
      for place in change.added.indices {
        if let move = change.moves.first(where: { Int($0.added) == place }), move.keepsElement {
          let source = change.deleted[Int(move.deleted)]
          elements.append(sections[Int(source.section)][Int(source.row)])
        } else {
          last += 1
          elements.append(last)
        }
      }
      for _ in change.updated {
        last += 1
        elements.append(last)
      }
      try TestSupport.apply(change, to: &sections, elements: elements)
    }
  }

  /// Whether `change` turns `before` into `after`, and lists as updated only rows whose value is another one.
  private func isExact(_ change: Change, _ before: Values, _ after: Values) throws -> Bool {
    var sections = before.sections
    let paths = change.added + change.updated
    try apply(change, to: &sections, elements: paths.map { after.sections[Int($0.section)][Int($0.row)] })
    var backward = ChangeMap(backward: change)
    let unchanged = change.updated.contains { path in
      guard case .at(let old) = backward.map(path) else { return true }
      return before.sections[Int(old.section)][Int(old.row)] == after.sections[Int(path.section)][Int(path.row)]
    }
    let moves = change.moves.allSatisfy { move in
      let (old, new) = (change.deleted[Int(move.deleted)], change.added[Int(move.added)])
      let same = before.sections[Int(old.section)][Int(old.row)] == after.sections[Int(new.section)][Int(new.row)]
      return same == move.keepsElement
    }
    return sections == after.sections && !unchanged && moves && change.normalizingMoves() == change
  }

  /// The change with every choice of which of its moves keep their elements.
  private func variants(_ change: Change) -> [Change] {
    AllChanges.subsets(Array(change.moves.indices), upTo: change.moves.count).map { keeping in
      var variant = change
      for place in keeping { variant.moves[place].keepsElement = true }
      return variant
    }
  }

  @Test(arguments: [[2], [3], [1, 1], [2, 1]])
  func everyPairOfSmallChangesIsComposedExactly(_ rowCounts: [Int]) throws {
    let all = AllChanges(budget: rowCounts == [2] ? 3 : 2, sectionsAdded: 1)
    let before = Values(rowCounts: rowCounts)
    var seconds: [[Int]: [Change]] = [:]
    for first in all.changes(from: rowCounts).flatMap(variants) {
      var middle = before
      try middle.apply(first)
      let shape = middle.sections.map(\.count)
      let changes = seconds[shape] ?? AllChanges(budget: 2, sectionsAdded: 0).changes(from: shape).flatMap(variants)
      seconds[shape] = changes
      for second in changes {
        var after = middle
        try after.apply(second)
        let change = compose(first, second).normalizingMoves()
        if try !isExact(change, before, after) {
          Issue.record("\(rowCounts): \(first) then \(second) composed to \(change)")
          return
        }
      }
    }
  }

  @Test(arguments: UInt64(1)...60)
  func randomHistoriesAreComposedExactly(_ seed: UInt64) throws {
    // Without sections that come and go no pair of moves is lost, in whatever order changes are composed.
    var changes = RandomChanges(random: SeededRandom(seed: seed), rows: Int(seed % 3) + 1, sections: 0)
    var random = SeededRandom(seed: seed &+ 1000)
    var start = Values(rowCounts: [3, 4])
    var feed = start
    var accumulator = ChangeAccumulator()
    for step in 0..<60 {
      var change = changes.next(for: feed.sections.map(\.count))
      if !change.sectionsAdded.isEmpty || !change.sectionsDeleted.isEmpty { continue }
      for place in change.moves.indices { change.moves[place].keepsElement = Bool.random(using: &random) }
      try feed.apply(change)
      accumulator.add(change)
      if step % 5 == 4 {
        let change = accumulator.finish().normalizingMoves()
        try expect(isExact(change, start, feed), "seed \(seed) step \(step): \(change)")
        start = feed
      }
    }
  }
}
