extension PositionTree {
  /// The row at which an element with `key` belongs after its equals: the first row whose key is greater, or is the same while
  /// `isAfter` says of its item that it sorts after the new element; `count` when there is none.
  ///
  /// The rows must be in that order: keys ascending and, among equal keys, items that sort after the new element behind those
  /// that do not. Of a keyed tree only. O(log n), and `isAfter` is asked O(log n) times, about equal keys only.
  public func upperBound(key: UInt64, isAfter: (UInt32) -> Bool) -> Int {
    precondition(keyed, "the tree has no keys")
    var node = root
    var level = height
    var row = 0
    while level > 0 {
      let keys = inners.firstKeys(node)
      let children = inners.children(node)
      let count = Int(inners.header(node).pointee.count)
      let after = Self.boundary(keys, from: 1, to: count, key: key) { slot in
        isAfter(firstItem(of: children[slot], level: level - 1))
      }
      row += Int(inners.starts(node)[after - 1])
      node = children[after - 1]
      level -= 1
    }
    let items = leaves.items(node)
    let count = Int(leaves.header(node).pointee.count)
    return row + Self.boundary(leaves.keys(node), from: 0, to: count, key: key) { isAfter(items[$0]) }
  }

  /// The first index of ascending `keys` whose key is greater than `key`, or equal and `isAfter`.
  @inline(__always)
  private static func boundary(
    _ keys: UnsafeMutablePointer<UInt64>, from start: Int, to end: Int, key: UInt64, isAfter: (Int) -> Bool
  ) -> Int {
    var low = start
    var high = end
    while low < high {
      let middle = (low &+ high) / 2
      let found = keys[middle]
      if found > key || (found == key && isAfter(middle)) {
        high = middle
      } else {
        low = middle &+ 1
      }
    }
    return low
  }

  private func firstItem(of node: NodeID, level: Int) -> UInt32 {
    var node = node
    var level = level
    while level > 0 {
      node = inners.children(node)[0]
      level -= 1
    }
    return leaves.items(node)[0]
  }
}
