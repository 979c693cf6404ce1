import TestSupport
import Testing

@testable import FeedChange
@testable import FeedModel

/// The change of a list in which as few rows as possible move.
struct FewestMovesTests {
  /// The change from one list of distinct rows to another that lists some rows: those of `listed` as moved if both lists have
  /// them, the others of one list as deleted or added.
  private func change(_ before: [Int], _ after: [Int], listed: Set<Int>, changed: Set<Int>) -> Change {
    func paths(_ rows: [Int], _ other: [Int]) -> [IndexPath] {
      rows.indices.filter { listed.contains(rows[$0]) || !other.contains(rows[$0]) }
        .map { IndexPath(section: 0, row: UInt32($0)) }
    }
    var change = Change(deleted: paths(before, after), added: paths(after, before))
    for (place, path) in change.deleted.enumerated() {
      let row = before[Int(path.row)]
      guard let target = change.added.firstIndex(where: { after[Int($0.row)] == row }) else { continue }
      change.moves.append(Move(deleted: UInt32(place), added: UInt32(target), keepsElement: !changed.contains(row)))
    }
    change.updated = after.indices.filter { changed.contains(after[$0]) && before.contains(after[$0]) }
      .map { IndexPath(section: 0, row: UInt32($0)) }.filter { !change.added.contains($0) }
    return change
  }

  private func check(_ before: [Int], _ after: [Int], listed: Set<Int>, changed: Set<Int>) throws {
    let given = change(before, after, listed: listed, changed: changed)
    var change = given
    change.moveFewestRows(of: before.count, Pace())
    let note = "\(before) to \(after) by \(given): \(change)"
    try change.validate(rowCounts: [before.count])
    var rows = [before.map { changed.contains($0) ? -1 - $0 : $0 }]
    try apply(change, to: &rows, elements: (change.added + change.updated).map { after[Int($0.row)] })
    expectEqual(rows, [after], "\(note)")
    let moved = change.moves.map { before[Int(change.deleted[Int($0.deleted)].row)] }
    expectEqual(moved, change.moves.map { after[Int(change.added[Int($0.added)].row)] }, "\(note)")
    expectEqual(change.moves.map(\.keepsElement), moved.map { !changed.contains($0) }, "\(note)")
    let common = before.filter { after.contains($0) }
    let deleted = change.deleted.map { before[Int($0.row)] }
    expectEqual(deleted.filter { common.contains($0) }, moved, "\(note)")
    expectEqual(
      change.updated.map { after[Int($0.row)] },
      after.filter { changed.contains($0) && common.contains($0) && !moved.contains($0) }, "\(note)")
    // A change of fewer than two moves is given without needless ones.
    if given.moves.count < 2 { return expectEqual(change, given, "\(note)") }
    let order = common.compactMap { after.firstIndex(of: $0) }
    expectEqual(moved.count, common.count - longestIncreasing(order).count, "\(note)")
    if moved.count == given.moves.count { expectEqual(change, given, "\(note)") }
  }

  private func subsets(_ rows: Int) -> [Set<Int>] {
    (0..<1 << rows).map { bits in Set((0..<rows).filter { bits >> $0 & 1 == 1 }) }
  }

  /// Whether the rows that are in both lists and not in `listed` keep their order.
  private func isValid(_ before: [Int], _ after: [Int], listed: Set<Int>) -> Bool {
    before.filter { after.contains($0) && !listed.contains($0) }
      == after.filter { before.contains($0) && !listed.contains($0) }
  }

  /// All orders of five rows, and all changes that lead there.
  @Test func allOrdersOfFewRows() throws {
    let before = Array(0..<5)
    var orders: [[Int]] = [[]]
    for row in before { orders = orders.flatMap { order in (0...order.count).map { order.inserting(row, at: $0) } } }
    expectEqual(orders.count, 120)
    for after in orders {
      for listed in subsets(5) where isValid(before, after, listed: listed) {
        for changed in [[], [0, 2], [1, 2, 3, 4]] as [Set<Int>] {
          try check(before, after, listed: listed, changed: changed)
        }
      }
    }
  }

  /// Blocks of rows that move, beside rows that are deleted and added.
  @Test(arguments: 0..<20 as Range<UInt64>)
  func randomLists(_ seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    for _ in 0..<100 {
      let before = Array(0..<Int.random(in: 2...40, using: &random))
      var after = before.filter { _ in Int.random(in: 0..<8, using: &random) > 0 }
      var listed: Set<Int> = []
      for _ in 0..<Int.random(in: 1...4, using: &random) where !after.isEmpty {
        let start = Int.random(in: 0..<after.count, using: &random)
        let block = Array(after[start..<Int.random(in: start...after.count, using: &random)])
        listed.formUnion(block)
        after.removeAll { block.contains($0) }
        after.insert(contentsOf: block, at: Int.random(in: 0...after.count, using: &random))
      }
      for row in 40..<Int.random(in: 40..<44, using: &random) {
        after.insert(row, at: Int.random(in: 0...after.count, using: &random))
      }
      let changed = Set(before.filter { _ in Int.random(in: 0..<4, using: &random) == 0 })
      try check(before, after, listed: listed, changed: changed)
    }
  }

  /// The work of a long change can be divided.
  @Test func longChangesAreMadeInSteps() {
    let count = 60_000
    // The first two thirds move behind the others.
    var given = Change()
    for row in 0..<count * 2 / 3 {
      given.deleted.append(IndexPath(section: 0, row: UInt32(row)))
      given.added.append(IndexPath(section: 0, row: UInt32(count / 3 + row)))
      given.moves.append(Move(deleted: UInt32(row), added: UInt32(row), keepsElement: true))
    }
    let pace = Pace()
    var stops = 0
    pace.begin(units: 0) {
      stops += 1
      return 0
    }
    var change = given
    change.moveFewestRows(of: count, pace)
    pace.end()
    expect(change.moves.count == count / 3 && change.deleted.count == count / 3 && change.updated.isEmpty)
    expect(stops > count / 3)
  }
}

extension [Int] {
  fileprivate func inserting(_ row: Int, at place: Int) -> [Int] {
    var copy = self
    copy.insert(row, at: place)
    return copy
  }
}
