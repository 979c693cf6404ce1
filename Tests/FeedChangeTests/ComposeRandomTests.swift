import TestSupport
import Testing

@testable import FeedChange

/// Long random histories. A failure prints the seed.
@Suite struct ComposeRandomTests {
  /// Whether `change` is `full`, except for pairs of moves that another order of composition can lose.
  private func isSame(_ change: Change, _ full: Change) -> Bool {
    var without = full
    without.moves = change.moves
    return change == without && Set(change.moves).isSubset(of: full.moves)
  }

  static let seeds: [UInt64] = Array(1...60)

  @Test(arguments: seeds)
  func compositionIsIndependentOfGrouping(_ seed: UInt64) {
    var changes = RandomChanges(random: SeededRandom(seed: seed), rows: Int(seed % 5) + 1, sections: 2)
    let start = TokenFeed(rowCounts: [4, 0, 9])
    var feed = start
    var history: [Change] = []
    for _ in 0..<40 {
      let change = changes.next(for: feed.rowCounts)
      history.append(change)
      feed = feed.applying(change)
    }
    let expected = start.change(to: feed)
    #expect(history.reduce(.empty, compose) == expected, "seed \(seed), from the front")
    let fromTheBack = history.reversed().reduce(.empty) { compose($1, $0) }
    #expect(isSame(fromTheBack, expected), "seed \(seed), from the back")
    var accumulator = ChangeAccumulator()
    for change in history { accumulator.add(change) }
    #expect(accumulator.size >= expected.size)
    #expect(isSame(accumulator.composed(), expected), "seed \(seed), accumulated")
    #expect(isSame(accumulator.finish(), expected), "seed \(seed), accumulated")
    #expect(accumulator.isEmpty && accumulator.finish() == .empty)
  }

  @Test(arguments: seeds)
  func compositionIsAssociativeWithIdentity(_ seed: UInt64) {
    var changes = RandomChanges(random: SeededRandom(seed: seed), rows: 2)
    for round in 0..<50 {
      let start = TokenFeed(rowCounts: [Int(seed % 4), round % 7])
      let a = changes.next(for: start.rowCounts)
      let afterA = start.applying(a)
      let b = changes.next(for: afterA.rowCounts)
      let c = changes.next(for: afterA.applying(b).rowCounts)
      #expect(isSame(compose(a, compose(b, c)), compose(compose(a, b), c)), "seed \(seed) round \(round)")
      #expect(compose(a, .empty) == a && compose(.empty, a) == a, "seed \(seed) round \(round)")
    }
  }

  @Test func movesAreAssociativeIfNoSectionChanges() {
    for seed in Self.seeds {
      var changes = RandomChanges(random: SeededRandom(seed: seed), rows: 3, sections: 0)
      let start = TokenFeed(rowCounts: [Int(seed % 4), 3])
      let a = changes.next(for: start.rowCounts)
      let afterA = start.applying(a)
      let b = changes.next(for: afterA.rowCounts)
      let c = changes.next(for: afterA.applying(b).rowCounts)
      #expect(compose(compose(a, b), c) == compose(a, compose(b, c)), "seed \(seed)")
    }
  }

  @Test(arguments: seeds.prefix(20))
  func accumulatorIsReusable(_ seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var changes = RandomChanges(random: random, rows: 2)
    var feed = TokenFeed(rowCounts: [3, 3])
    var mark = feed
    var accumulator = ChangeAccumulator()
    for step in 0..<100 {
      let change = changes.next(for: feed.rowCounts)
      accumulator.add(change)
      feed = feed.applying(change)
      switch Int.random(in: 0..<10, using: &random) {
      case 0:
        #expect(isSame(accumulator.finish(), mark.change(to: feed)), "seed \(seed) step \(step)")
        mark = feed
      case 1:
        #expect(isSame(accumulator.composed(), mark.change(to: feed)), "seed \(seed) step \(step)")
      default: break
      }
    }
  }
}
