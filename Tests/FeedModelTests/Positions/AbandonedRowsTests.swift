import TestSupport
import Testing

@testable import FeedModel

/// The charge for rows that only snapshots keep, for all small numbers of snapshots that end in every order.
struct AbandonedRowsTests {
  private static let bytes = 1000

  /// Snapshots of a tree; each bit of `isCharged` tells whether one is charged.
  private struct Case {
    let tree = PositionTree(keyed: false)
    let memories: [SnapshotMemory]
    let isCharged: [Bool]
    var snapshots: [PositionSnapshot?] = []

    init(_ isCharged: [Bool]) {
      self.isCharged = isCharged
      memories = isCharged.map { _ in SnapshotMemory() }
      for item in 0..<500 { tree.insert(UInt32(item), at: item) }
      for (memory, isCharged) in zip(memories, isCharged) {
        let snapshot = tree.makeSnapshot(of: 0..<500, capture: { UInt($0) }, release: { _ in })
        if isCharged { snapshot.charge(to: memory) }
        snapshots.append(snapshot)
      }
    }

    var charges: [Int] { memories.map(\.bytes) }
  }

  private static func orders(_ count: Int) -> [[Int]] {
    if count == 0 { return [[]] }
    return orders(count - 1).flatMap { order in
      (0..<count).map { place in Array(order[..<place]) + [count - 1] + Array(order[place...]) }
    }
  }

  @Test(arguments: 0...4) func oneSnapshotIsChargedAtATime(count: Int) {
    for pattern in 0..<1 << count {
      let isCharged = (0..<count).map { pattern >> $0 & 1 == 1 }
      for order in Self.orders(count) {
        var test = Case(isCharged)
        let own = test.charges
        AbandonedRows.charge(Self.bytes, for: [test.tree])
        var left = Set(0..<count)
        for ended in order {
          expectCharges(test, own, left)
          // A snapshot ends when it is read, cancelled or released.
          switch ended % 3 {
          case 0: while test.snapshots[ended]?.next(max: 100, { _ in }) ?? 0 > 0 {}
          case 1: test.snapshots[ended]?.cancel()
          default: test.snapshots[ended] = nil
          }
          left.remove(ended)
        }
        expectCharges(test, own, left)
      }
    }
  }

  /// The first charged snapshot that is left has the charge.
  private func expectCharges(_ test: Case, _ own: [Int], _ left: Set<Int>) {
    let payer = left.filter { test.isCharged[$0] }.min()
    for index in own.indices {
      let rows = index == payer ? Self.bytes + test.tree.byteCount : 0
      expectEqual(test.memories[index].bytes, (left.contains(index) ? own[index] : 0) + rows)
    }
  }

  @Test func treesWithoutChargedSnapshotsAreNotCharged() {
    let trees = [[true], [], [false], [true, true]].map(Case.init)
    let own = trees.map(\.charges)
    AbandonedRows.charge(Self.bytes, for: trees.map(\.tree))
    let rows = Self.bytes + trees[0].tree.byteCount + trees[3].tree.byteCount
    expectEqual(trees.map(\.charges), [[own[0][0] + rows], [], [0], own[3]])
    for place in [0, 3] { expect(trees[place].tree.byteCount > 500 * 4) }
  }
}
