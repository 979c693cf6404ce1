import TestSupport
import Testing

@testable import FeedChange
@testable import FeedModel

/// The change between two states of a list.
struct RowComparisonTests {
  /// All lists of distinct rows below `rows`, of any length.
  private static func lists(_ rows: Int) -> [[Int]] {
    var lists: [[Int]] = [[]]
    var next = 0
    while next < lists.count {
      for row in 0..<rows where !lists[next].contains(row) { lists.append(lists[next] + [row]) }
      next += 1
    }
    return lists
  }

  /// Checks that the change leads from one list to the other, pairs the rows that are in both, lists changed rows that stay,
  /// and moves as few rows as possible.
  private func check(_ before: [Int], _ after: [Int], changed: Set<Int>) throws {
    let places = before.map { $0 < 0 ? -1 : after.firstIndex(of: $0) ?? -1 }
    let change = Change.between(places, after.count, Pace()) { !changed.contains(after[$0]) }
    var rows = [before.map { changed.contains($0) ? -1 - $0 : $0 }]
    try apply(change, to: &rows, elements: (change.added + change.updated).map { after[Int($0.row)] })
    let note = "\(before) to \(after), changed \(changed): \(change)"
    expectEqual(rows, [after], "\(note)")
    let moved = change.moves.map { before[Int(change.deleted[Int($0.deleted)].row)] }
    expectEqual(moved, change.moves.map { after[Int(change.added[Int($0.added)].row)] }, "\(note)")
    expectEqual(change.moves.map(\.keepsElement), moved.map { !changed.contains($0) }, "\(note)")
    let deleted = Set(change.deleted.map { before[Int($0.row)] })
    let common = before.filter { $0 >= 0 && after.contains($0) }
    expectEqual(Set(moved), deleted.intersection(common), "\(note)")
    let updated = change.updated.map { after[Int($0.row)] }
    expectEqual(
      updated, after.filter { changed.contains($0) && common.contains($0) && !deleted.contains($0) }, "\(note)")
    let order = common.compactMap { after.firstIndex(of: $0) }
    expectEqual(common.count - moved.count, longestIncreasing(order).count, "\(note)")
    expect(zip(change.moves, change.moves.dropFirst()).allSatisfy { $0.deleted < $1.deleted }, "\(note)")
  }

  @Test func allShortLists() throws {
    let lists = Self.lists(4)
    for before in lists {
      for after in lists {
        for changed in [[], [1], [0, 3], [0, 1, 2, 3]] as [Set<Int>] { try check(before, after, changed: changed) }
      }
    }
  }

  @Test(arguments: 0..<20 as Range<UInt64>)
  func randomListsWithRowsThatAreGone(_ seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    for _ in 0..<100 {
      let before = (0..<30).shuffled(using: &random).prefix(Int.random(in: 0...30, using: &random))
      let after = (0..<30).shuffled(using: &random).prefix(Int.random(in: 0...30, using: &random))
      let gone = Int.random(in: 0..<30, using: &random)
      let changed = Set((0..<30).filter { _ in Bool.random(using: &random) })
      // Several rows that are gone have the same number.
      try check(before.map { $0 % 7 == gone % 7 ? -1 : $0 }, after.filter { $0 % 7 != gone % 7 }, changed: changed)
    }
  }

  /// Of two rows that change places, the one that comes first moves.
  @Test func oneOfTwoRowsMoves() {
    let change = Change.between([1, 0], 2, Pace()) { _ in true }
    expectEqual(change.deleted, [IndexPath(section: 0, row: 1)])
    expectEqual(change.added, [IndexPath(section: 0, row: 0)])
    expectEqual(change.moves, [Move(deleted: 0, added: 0)])
  }

  /// Long lists are compared in steps of a bounded length.
  @Test func longListsAreComparedInSteps() {
    var random = SeededRandom(seed: 5)
    let before = (0..<50_000).shuffled(using: &random)
    let pace = Pace()
    var stops = 0
    pace.begin(units: 0) {
      stops += 1
      return 0
    }
    let change = Change.between(before, before.count, pace) { $0 != 7 }
    pace.end()
    expect(change.deleted.count == change.added.count && change.moves.count == change.deleted.count)
    // At least one stop in so many rows of each pass.
    let stopsOfPasses = [16, 8, 64, 64, 256, 256, 256, 256, 256, 256].reduce(0) { $0 + 50_000 / $1 }
    expect(stops >= stopsOfPasses)
  }
}
