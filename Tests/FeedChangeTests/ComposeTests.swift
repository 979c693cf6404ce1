import TestSupport
import Testing

@testable import FeedChange

/// What the comparison of all small changes does not show.
struct ComposeTests {
  private func row(_ section: UInt32, _ row: UInt32) -> IndexPath { IndexPath(section: section, row: row) }

  @Test func changesThatDifferInOneListDiffer() {
    let changes = [
      Change(), Change(deleted: [row(0, 0)]), Change(added: [row(0, 0)]), Change(updated: [row(0, 0)]),
      Change(deleted: [row(0, 0)], added: [row(0, 0)]),
      Change(deleted: [row(0, 0)], added: [row(0, 0)], moves: [Move(deleted: 0, added: 0)]),
      Change(sectionsDeleted: [0]), Change(sectionsAdded: [SectionAddition(at: 0, name: "s")]),
    ]
    for (place, change) in changes.enumerated() { expectEqual(changes.firstIndex(of: change), place) }
    var transferring = Change(added: [row(0, 0)], sectionsDeleted: [1])
    transferring.transfers = [Transfer(from: row(1, 0), added: 0, keepsElement: true)]
    expectEqual(transferring, Change(added: [row(0, 0)], sectionsDeleted: [1]))
    expect(!transferring.isIdentical(to: Change(added: [row(0, 0)], sectionsDeleted: [1])))
  }

  @Test func costDoesNotDependOnPositions() {
    let far = UInt32.max
    let composed = compose(Change(added: [row(far, far)]), Change(updated: [row(far, far)]))
    expectEqual(composed, Change(added: [row(far, far)]))
  }
}

/// Every pair of small changes to small feeds, compared with feeds of tokens.
struct ComposeExhaustiveTests {
  /// Returns the number of pairs compared, so that a test can check that there were some.
  private func compareAllPairs(_ rowCounts: [Int], first: AllChanges, second: AllChanges) -> Int {
    let before = TokenFeed(rowCounts: rowCounts)
    var seconds: [[Int]: [Change]] = [:]
    var pairs = 0
    for a in first.changes(from: rowCounts) {
      let middle = before.applying(a)
      let shape = middle.rowCounts
      let changes = seconds[shape] ?? second.changes(from: shape)
      seconds[shape] = changes
      for b in changes {
        pairs += 1
        let after = middle.applying(b)
        let composed = compose(a, b)
        if !composed.isIdentical(to: before.change(to: after)) {
          Issue.record("\(rowCounts): \(a) then \(b) composed to \(composed), not \(before.change(to: after))")
          return pairs
        }
        if before.applying(composed).rowCounts != after.rowCounts {
          Issue.record("\(rowCounts): \(a) then \(b) composed to \(composed) of another shape")
          return pairs
        }
      }
    }
    return pairs
  }

  @Test(arguments: [[0], [1], [2], [3]])
  func oneSection(_ rowCounts: [Int]) {
    let first = AllChanges(budget: 3, sectionsAdded: 0)
    let second = AllChanges(budget: rowCounts == [3] ? 2 : 3, sectionsAdded: 0)
    expect(compareAllPairs(rowCounts, first: first, second: second) > 0)
  }

  @Test(arguments: [[], [0], [1]])
  func sectionsAddedAndDeleted(_ rowCounts: [Int]) {
    let first = AllChanges(budget: 3, sectionsAdded: 2)
    let second = AllChanges(budget: 2)
    expect(compareAllPairs(rowCounts, first: first, second: second) > 0)
  }

  @Test(arguments: [[2], [0, 1], [1, 1], [2, 1]] + (TestEffort.isLong ? [[1, 3], [3, 2]] : []))
  func rowsAndSections(_ rowCounts: [Int]) {
    let all = AllChanges(budget: 2)
    expect(compareAllPairs(rowCounts, first: all, second: all) > 0)
  }

  @Test func enumerationIsComplete() {
    // One row in one section, at most one entry: empty; section deleted; row deleted; section added before or after; row
    // added before or after; row updated.
    expectEqual(AllChanges(budget: 1).changes(from: [1]).count, 8)
    // Two entries, no sections: also replaced and one of two places; deleted and added, each as a move or not; two come
    // at three pairs of places.
    expectEqual(
      AllChanges(budget: 2, sectionsAdded: 0).changes(from: [1]).filter { $0.sectionsDeleted.isEmpty }.count, 12)
  }
}

/// Long random histories. A failure prints the seed.
struct ComposeRandomTests {
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
    expect(history.reduce(.empty, compose).isIdentical(to: expected), "seed \(seed), from the front")
    let fromTheBack = history.reversed().reduce(.empty) { compose($1, $0) }
    expect(fromTheBack.isIdentical(to: expected), "seed \(seed), from the back")
    var accumulator = ChangeAccumulator()
    for change in history { accumulator.add(change) }
    expect(accumulator.size >= expected.size)
    expect(accumulator.composed().isIdentical(to: expected), "seed \(seed), accumulated")
    expect(accumulator.finish().isIdentical(to: expected), "seed \(seed), accumulated")
    expect(accumulator.isEmpty && accumulator.finish() == .empty)
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
      expect(compose(a, compose(b, c)).isIdentical(to: compose(compose(a, b), c)), "seed \(seed) round \(round)")
      expect(compose(a, .empty) == a && compose(.empty, a) == a, "seed \(seed) round \(round)")
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
      expectEqual(compose(compose(a, b), c), compose(a, compose(b, c)), "seed \(seed)")
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
        expect(accumulator.finish().isIdentical(to: mark.change(to: feed)), "seed \(seed) step \(step)")
        mark = feed
      case 1:
        expect(accumulator.composed().isIdentical(to: mark.change(to: feed)), "seed \(seed) step \(step)")
      default: break
      }
    }
  }
}
