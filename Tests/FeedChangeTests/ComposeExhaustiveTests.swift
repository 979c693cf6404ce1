import TestSupport
import Testing

@testable import FeedChange

/// Every pair of small changes to small feeds, compared with feeds of tokens.
@Suite struct ComposeExhaustiveTests {
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
        if composed != before.change(to: after) {
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
    #expect(compareAllPairs(rowCounts, first: first, second: second) > 0)
  }

  @Test(arguments: [[], [0], [1]])
  func sectionsAddedAndDeleted(_ rowCounts: [Int]) {
    let first = AllChanges(budget: 3, sectionsAdded: 2)
    let second = AllChanges(budget: 2)
    #expect(compareAllPairs(rowCounts, first: first, second: second) > 0)
  }

  @Test(arguments: [[2], [0, 1], [1, 1], [2, 1], [1, 3], [3, 2]])
  func rowsAndSections(_ rowCounts: [Int]) {
    let all = AllChanges(budget: 2)
    #expect(compareAllPairs(rowCounts, first: all, second: all) > 0)
  }

  @Test func enumerationIsComplete() {
    // One row in one section, at most one entry: empty; section deleted; row deleted; section added before or after; row
    // added before or after; row updated.
    #expect(AllChanges(budget: 1).changes(from: [1]).count == 8)
    // Two entries, no sections: also replaced and one of two places; deleted and added, each as a move or not; two come
    // at three pairs of places.
    #expect(
      AllChanges(budget: 2, sectionsAdded: 0).changes(from: [1]).filter { $0.sectionsDeleted.isEmpty }.count == 12)
  }
}
