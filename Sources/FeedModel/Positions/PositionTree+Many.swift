/// What is done to many items at once.
extension PositionTree {
  /// The rows, ascending, of those of the items that are in the tree. O(n + items).
  func rows(ofAll items: [UInt32]) -> [Int] {
    var isWanted = [Bool](repeating: false, count: Int(items.max() ?? 0) + 1)
    for item in items { isWanted[Int(item)] = true }
    var rows: [Int] = []
    var row = 0
    forEach(in: 0..<count) { item in
      if Int(item) < isWanted.count, isWanted[Int(item)] { rows.append(row) }
      row += 1
    }
    return rows
  }

  /// For every item up to the greatest its row, -1 for those that are not in the tree. O(n + greatest item).
  func rowsByItem() -> [Int] {
    var rows: [Int] = []
    var row = 0
    forEach(in: 0..<count) { item in
      if rows.count <= Int(item) {
        rows.append(contentsOf: repeatElement(-1, count: max(Int(item) + 1 - rows.count, rows.count)))
      }
      rows[Int(item)] = row
      row += 1
    }
    return rows
  }

  /// Removes the items at many rows, ascending, by building the tree anew from what stays. O(n).
  func removeAll(at rows: [Int]) {
    var staying: [(item: UInt32, key: UInt64)] = []
    staying.reserveCapacity(count - rows.count)
    var (row, next) = (0, 0)
    forEachWithKey { item, key in
      if next < rows.count, rows[next] == row {
        next += 1
      } else {
        staying.append((item, key))
      }
      row += 1
    }
    removeAll()
    for (item, key) in staying { insert(item, at: count, key: key) }
  }

  /// Calls `body` with every item and its key, 0 in a tree without keys, in order. O(n). `body` must not change the tree.
  func forEachWithKey(_ body: (UInt32, UInt64) -> Void) {
    if count == 0 { return }
    var leaf = locate(0).leaf
    while leaf != .none {
      let header = leaves.header(leaf)
      for offset in 0..<Int(header.pointee.count) {
        body(leaves.items(leaf)[offset], keyed ? leaves.keys(leaf)[offset] : 0)
      }
      leaf = header.pointee.next
    }
  }
}
