import Testing

@testable import FeedModel

/// Properties that random histories do not check.
@Suite struct PositionTreeTests {
  @Test func empty() {
    let tree = PositionTree(keyed: true)
    #expect(tree.count == 0 && !tree.contains(0) && tree.row(of: 7) == nil && tree.remove(UInt32(7)) == nil)
    #expect(tree.upperBound(key: 5) { _ in true } == 0)
    tree.forEach(in: 0..<0) { _ in Issue.record("an empty tree has no items") }
  }

  @Test func forEachVisitsRangesInOrder() {
    var model = TreeModel(leafLimit: 4, innerLimit: 4)
    for index in 0..<30 { model.insert(at: index / 2) }
    for start in 0...30 {
      for end in start...30 {
        var walked: [UInt32] = []
        model.tree.forEach(in: start..<end) { walked.append($0) }
        #expect(walked == Array(model.items[start..<end]))
      }
    }
  }

  @Test(arguments: [false, true])
  func listsGrowingAtAnEndHaveFullLeaves(_ atFront: Bool) {
    var model = TreeModel()
    let count = LeafPool.capacity * 50
    for index in 0..<count { model.insert(at: atFront ? 0 : index) }
    #expect(model.tree.leaves.used == 50)
    #expect(model.agrees())
  }

  @Test func queuesReuseTheirLeaves() {
    var model = TreeModel()
    for _ in 0..<1000 { model.insert(at: model.items.count) }
    for _ in 0..<20_000 {
      model.insert(at: model.items.count)
      model.remove(at: 0)
    }
    #expect(model.tree.leaves.used <= 12)
    #expect(model.agrees())
  }

  @Test func largeHandles() {
    let tree = PositionTree(keyed: false)
    tree.insert(1_000_000, at: 0)
    tree.insert(3, at: 0)
    #expect(tree.row(of: 1_000_000) == 1 && tree.row(of: 3) == 0 && tree.row(of: 999_999) == nil)
  }

  @Test func replacingWithItselfChangesTheKey() {
    let tree = PositionTree(keyed: true)
    tree.insert(3, at: 0, key: 1)
    tree.replace(at: 0, with: 3, key: 9)
    #expect(tree.key(at: 0) == 9 && tree.row(of: 3) == 0 && tree.count == 1)
  }
}
