import TestSupport
import Testing

@testable import FeedModel

/// A position tree and an array with the same items.
struct TreeModel {
  let tree: PositionTree
  private(set) var items: [UInt32] = []
  private(set) var keys: [UInt64] = []
  private var nextItem: UInt32 = 0
  private var spare: [UInt32] = []

  init(keyed: Bool = false, leafLimit: Int = LeafPool.capacity, innerLimit: Int = InnerPool.capacity) {
    tree = PositionTree(keyed: keyed, leafLimit: leafLimit, innerLimit: innerLimit)
  }

  /// The removed handles. They are reused, the last one first.
  private mutating func newItem() -> UInt32 {
    if let item = spare.popLast() { return item }
    nextItem += 1
    return nextItem - 1
  }

  mutating func insert(at row: Int, key: UInt64 = 0) {
    let item = newItem()
    if row > 0, item % 2 == 0 {
      expectEqual(tree.insert(item, after: items[row - 1], key: key), row)
    } else {
      tree.insert(item, at: row, key: key)
    }
    items.insert(item, at: row)
    keys.insert(key, at: row)
  }

  mutating func append(_ more: Int, key: UInt64 = 0) {
    let new = (0..<more).map { _ in newItem() }
    tree.append(more) { (new[$0], key) }
    items += new
    keys += [UInt64](repeating: key, count: more)
  }

  mutating func insertSorted(key: UInt64, isAfter: (UInt32) -> Bool) -> Int {
    let row = tree.upperBound(key: key, isAfter: isAfter)
    insert(at: row, key: key)
    return row
  }

  mutating func remove(at row: Int) {
    expectEqual(tree.remove(at: row), items[row])
    forget(row)
  }

  mutating func removeItem(at row: Int) {
    expectEqual(tree.remove(items[row]), row)
    forget(row)
  }

  private mutating func forget(_ row: Int) {
    spare.append(items.remove(at: row))
    keys.remove(at: row)
  }

  mutating func replace(at row: Int, key: UInt64 = 0) {
    let item = newItem()
    tree.replace(at: row, with: item, key: key)
    spare.append(items[row])
    items[row] = item
    keys[row] = key
  }

  mutating func removeAll() {
    tree.removeAll()
    spare += items
    items = []
    keys = []
  }

  private func neighboursAgree(_ row: Int) -> Bool {
    let (before, at) = tree.neighbours(of: tree.gap(before: row))
    return before?.item == (row > 0 ? items[row - 1] : nil) && before?.key == (row > 0 ? keys[row - 1] : nil)
      && at?.item == (row < items.count ? items[row] : nil) && at?.key == (row < items.count ? keys[row] : nil)
  }

  /// Whether all methods that read the tree agree with the array.
  func agrees() -> Bool {
    var walked: [UInt32] = []
    tree.forEach(in: 0..<tree.count) { walked.append($0) }
    return tree.count == items.count && walked == items
      && items.indices.allSatisfy { tree[$0] == items[$0] && tree.row(of: items[$0]) == $0 && tree.contains(items[$0]) }
      && spare.allSatisfy { tree.row(of: $0) == nil && !tree.contains($0) }
      && (!tree.keyed || keys.indices.allSatisfy { tree.key(at: $0) == keys[$0] })
      && (!tree.keyed || keys.indices.allSatisfy { tree.key(of: items[$0]) == keys[$0] })
      && (!tree.keyed || (0...items.count).allSatisfy(neighboursAgree))
  }
}
