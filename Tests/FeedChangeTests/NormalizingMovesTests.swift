import TestSupport
import Testing

@testable import FeedChange

/// Removal of moves without effect, compared with every subset of the moves.
@Suite struct NormalizingMovesTests {
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
    #expect(possible.contains(result) && result.moves.count == best, "\(note): \(change) became \(result)")
    var keeping = change
    for place in keeping.moves.indices { keeping.moves[place].keepsElement = true }
    let silent = keeping.normalizingMoves()
    #expect(silent.updated == change.updated && silent.deleted == result.deleted && silent.added == result.added)
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
