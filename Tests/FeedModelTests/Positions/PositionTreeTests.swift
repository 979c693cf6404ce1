import TestSupport
import Testing

@testable import FeedModel

/// Properties that random histories do not check.
struct PositionTreeTests {
  @Test func empty() {
    let tree = PositionTree(keyed: true)
    expect(tree.count == 0 && !tree.contains(0) && tree.row(of: 7) == nil && tree.remove(UInt32(7)) == nil)
    expectEqual(tree.upperBound(key: 5) { _ in true }, 0)
    tree.forEach(in: 0..<0) { _ in Issue.record("an empty tree has no items") }
  }

  @Test func forEachVisitsRangesInOrder() {
    var model = TreeModel(leafLimit: 4, innerLimit: 4)
    for index in 0..<30 { model.insert(at: index / 2) }
    for start in 0...30 {
      for end in start...30 {
        var walked: [UInt32] = []
        model.tree.forEach(in: start..<end) { walked.append($0) }
        expectEqual(walked, Array(model.items[start..<end]))
      }
    }
  }

  @Test func searchForManyItemsStopsBetweenRows() {
    let tree = PositionTree(keyed: false)
    for item in 0..<10_000 { tree.insert(UInt32(item), at: tree.count) }
    let pace = Pace()
    var stops = 0
    pace.begin(units: 0) {
      stops += 1
      return 0
    }
    let rows = tree.rows(ofAll: (0..<5_000).reversed().map { UInt32($0 * 2) }, pace)
    pace.end()
    expectEqual(rows, (0..<5_000).map { $0 * 2 })
    // Each 32 rows, and each item whose number ends with six zero bits.
    expectEqual(stops, 10_000 / 32 + 157)
  }

  @Test(arguments: [false, true])
  func listsGrowingAtAnEndHaveFullLeaves(_ atFront: Bool) {
    var model = TreeModel()
    let count = LeafPool.capacity * 50
    for index in 0..<count { model.insert(at: atFront ? 0 : index) }
    expectEqual(model.tree.leaves.used, 50)
    expect(model.agrees())
  }

  @Test func queuesReuseTheirLeaves() {
    var model = TreeModel()
    for _ in 0..<1000 { model.insert(at: model.items.count) }
    for _ in 0..<20_000 {
      model.insert(at: model.items.count)
      model.remove(at: 0)
    }
    expect(model.tree.leaves.used <= 12)
    expect(model.agrees())
  }

  @Test(arguments: [false, true])
  func appendsManyAtOnce(_ keyed: Bool) {
    for before in 0..<20 {
      for more in 0..<40 {
        var model = TreeModel(keyed: keyed, leafLimit: 4, innerLimit: 4)
        for row in 0..<before { model.insert(at: row) }
        model.append(more, key: 7)
        expect(model.agrees())
        while model.items.count > 3 { model.remove(at: model.items.count / 2) }
        expect(model.agrees())
      }
    }
  }

  @Test func largeHandles() {
    let tree = PositionTree(keyed: false)
    tree.insert(1_000_000, at: 0)
    tree.insert(3, at: 0)
    expect(tree.row(of: 1_000_000) == 1 && tree.row(of: 3) == 0 && tree.row(of: 999_999) == nil)
  }

  @Test func replacingWithItselfChangesTheKey() {
    let tree = PositionTree(keyed: true)
    tree.insert(3, at: 0, key: 1)
    tree.replace(at: 0, with: 3, key: 9)
    expect(tree.key(at: 0) == 9 && tree.row(of: 3) == 0 && tree.count == 1)
  }
}
