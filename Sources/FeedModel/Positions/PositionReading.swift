import CProcessor

extension PositionTree {
  /// The position of an item: its leaf, and its offset in the leaf.
  typealias Place = (leaf: NodeID, offset: Int)

  /// The place for a new item, after the item before it or at the beginning of the tree. Valid until the tree changes.
  struct Gap {
    /// The row that a new item would have.
    let row: Int
    let place: Place
  }

  /// The item at `row`. O(log n).
  /// - Precondition: `row` is in `0..<count`.
  public subscript(row: Int) -> UInt32 {
    let place = locate(row)
    return leaves.items(place.leaf)[place.offset]
  }

  /// The key of the item at `row`. O(log n).
  /// - Precondition: the tree is keyed, and `row` is in `0..<count`.
  public func key(at row: Int) -> UInt64 {
    precondition(keyed, "the tree has no keys")
    let place = locate(row)
    return leaves.keys(place.leaf)[place.offset]
  }

  /// The key of `item`; nil if it is not in the tree. O(1).
  /// - Precondition: the tree is keyed.
  func key(of item: UInt32) -> UInt64? {
    precondition(keyed, "the tree has no keys")
    let leaf = leafOf[item]
    if leaf == .none { return nil }
    return leaves.keys(leaf)[offset(of: item, in: leaf)]
  }

  typealias Entry = (item: UInt32, key: UInt64)

  /// The items before a gap and after it; nil where there is none. O(1).
  /// - Precondition: the tree is keyed and has not changed since the gap was found.
  func neighbours(of gap: Gap) -> (before: Entry?, after: Entry?) {
    assert(keyed && gap.place == locateGap(before: gap.row), "the gap is another one")
    let (leaf, offset) = gap.place
    let header = leaves.header(leaf)
    let before = offset > 0 ? entry(at: (leaf, offset &- 1)) : nil
    if offset < Int(header.pointee.count) { return (before, entry(at: gap.place)) }
    let next = header.pointee.next
    return (before, next == .none ? nil : entry(at: (next, 0)))
  }

  @inline(__always)
  private func entry(at place: Place) -> Entry {
    (leaves.items(place.leaf)[place.offset], leaves.keys(place.leaf)[place.offset])
  }

  /// Whether `item` is in the tree. O(1).
  public func contains(_ item: UInt32) -> Bool { leafOf[item] != .none }

  /// Prefetches the memory that `row(of:)` reads, so that the cache misses of several items overlap.
  ///
  /// The result has no meaning, but must be used so that the compiler keeps the reads.
  @inline(__always)
  func touch(_ item: UInt32) -> UInt32 {
    let leaf = leafOf[item]
    if leaf == .none { return 0 }
    let items = leaves.items(leaf)
    return UInt32(leaves.header(leaf).pointee.count) ^ items[20] ^ items[52] ^ items[84] ^ items[116]
  }

  /// Brings near where the tree finds the leaf of an item.
  @inline(__always)
  func prefetchPlace(of item: UInt32) { if let place = leafOf.place(of: item) { processor_prefetch(place) } }

  @inline(__always)
  func prefetchLeaf(of item: UInt32) {
    let leaf = leafOf[item]
    if leaf == .none { return }
    let start = UnsafeRawPointer(leaves.header(leaf))
    for line in stride(from: 0, to: Leaf.stride, by: 64) { processor_prefetch(start + line) }
  }

  /// The row of `item`; nil if it is not in the tree. O(log n).
  public func row(of item: UInt32) -> Int? {
    let leaf = leafOf[item]
    if leaf == .none { return nil }
    return firstRow(of: leaf) + offset(of: item, in: leaf)
  }

  /// Whether `item` is in the tree, behind `row`. O(log n), and faster than ``row(of:)``.
  func isItem(_ item: UInt32, after row: Int) -> Bool {
    let leaf = leafOf[item]
    if leaf == .none { return false }
    let first = firstRow(of: leaf)
    if first > row { return true }
    if first + Int(leaves.header(leaf).pointee.count) <= row { return false }
    return first + offset(of: item, in: leaf) > row
  }

  /// Calls `body` with the items of `rows` in order. O(log n + rows).
  /// - Precondition: `rows` is within `0..<count`, and `body` does not change the tree.
  public func forEach(in rows: Range<Int>, _ body: (UInt32) -> Void) {
    precondition(rows.lowerBound >= 0 && rows.upperBound <= count, "rows out of range")
    if rows.isEmpty { return }
    var (leaf, offset) = locate(rows.lowerBound)
    var left = rows.count
    while left > 0 {
      let header = leaves.header(leaf)
      let items = leaves.items(leaf)
      let end = Swift.min(Int(header.pointee.count), offset + left)
      left -= end - offset
      while offset < end {
        body(items[offset])
        offset += 1
      }
      leaf = header.pointee.next
      offset = 0
    }
  }

  /// The place of the item at `row`.
  @inline(__always)
  func locate(_ row: Int) -> Place {
    precondition(row >= 0 && row < count, "row out of range")
    var row = UInt32(truncatingIfNeeded: row)
    var node = root
    var level = height
    while level > 0 {
      let slot = inners.slot(of: node, row: row)
      row &-= inners.starts(node)[slot]
      node = inners.children(node)[slot]
      level &-= 1
    }
    return (node, Int(truncatingIfNeeded: row))
  }

  @inline(__always)
  func firstRow(of leaf: NodeID) -> Int {
    let header = leaves.header(leaf)
    var node = header.pointee.parent
    var slot = Int(truncatingIfNeeded: header.pointee.slot)
    var row: UInt32 = 0
    while node != .none {
      row &+= inners.starts(node)[slot]
      let header = inners.header(node)
      slot = Int(truncatingIfNeeded: header.pointee.slot)
      node = header.pointee.parent
    }
    return Int(truncatingIfNeeded: row)
  }

  /// The offset of `item` in `leaf`.
  /// - Precondition: `leaf` is the leaf of `item`. The search has no bound.
  @inline(__always)
  func offset(of item: UInt32, in leaf: NodeID) -> Int {
    let items = leaves.items(leaf)
    let wanted = SIMD4(repeating: item)
    var offset = 0
    // Four at a time. The capacity is a multiple of four; unused entries come after the item.
    while true {
      let four = UnsafeRawPointer(items + offset).loadUnaligned(as: SIMD4<UInt32>.self)
      if any(four .== wanted) { break }
      offset &+= 4
    }
    while items[offset] != item { offset &+= 1 }
    return offset
  }
}

/// Operations on many items.
extension PositionTree {
  /// The rows of those `items` that are in the tree, ascending. O(n + greatest item).
  func rows(ofAll items: [UInt32], _ pace: Pace) -> [Int] {
    var isWanted = [Bool](repeating: false, count: Int(items.max() ?? 0) + 1)
    for item in items {
      isWanted[Int(item)] = true
      if item & 63 == 0 { pace.spend() }
    }
    var rows: [Int] = []
    // An array that grows copies everything at once.
    rows.reserveCapacity(items.count)
    var row = 0
    forEach(in: 0..<count) { item in
      if Int(item) < isWanted.count, isWanted[Int(item)] { rows.append(row) }
      row += 1
      if row & 31 == 0 { pace.spend() }
    }
    return rows
  }

  /// The row of each item below `end`, `UInt32.max` for items that are not in the tree. O(n + end).
  func rowsByItem(upTo end: Int, _ pace: Pace) -> [UInt32] {
    var rows = [UInt32](repeating: .max, count: end, pace)
    var row: UInt32 = 0
    forEach(in: 0..<count) { item in
      rows[Int(item)] = row
      row += 1
      if row & 31 == 0 { pace.spend() }
    }
    return rows
  }

  /// Removes the items at `rows`, which ascend, by rebuilding the tree. O(n).
  /// - Parameter pace: lets the removal stop; nothing may then read the tree.
  func removeAll(at rows: [Int], _ pace: Pace = Pace()) {
    assert(zip(rows, rows.dropFirst()).allSatisfy { $0 < $1 }, "the rows do not ascend")
    precondition(rows.isEmpty || rows[0] >= 0 && rows[rows.count - 1] < count, "rows out of range")
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
      if row & 31 == 0 { pace.spend() }
    }
    removeAll()
    append(staying.count, pace) { staying[$0] }
  }

  /// Calls `body` with each item and its key, which is 0 in a tree without keys, in order. O(n).
  /// - Precondition: `body` does not change the tree.
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
