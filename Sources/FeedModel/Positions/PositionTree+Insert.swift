extension PositionTree {
  /// Inserts `item`, which must not be in the tree, so that it stands at `row`, which must be in `0...count`. O(log n).
  ///
  /// In a keyed tree `row` must be such that keys stay in order, as `upperBound(key:isAfter:)` finds it.
  public func insert(_ item: UInt32, at row: Int, key: UInt64 = 0) {
    precondition(row >= 0 && row <= count, "row out of range")
    precondition(item != .max && count < Int(UInt32.max) - 1, "too many items")
    precondition(!contains(item), "the item is in the tree already")
    leafOf.reserve(item)
    var place = locateGap(before: row)
    if Int(leaves.header(place.leaf).pointee.count) == leafLimit {
      place = makeRoom(at: place, for: key)
    }
    let (leaf, offset) = place
    if hasSnapshots { preserve(leaf) }
    put(item, key, at: place)
    leafOf.table[Int(truncatingIfNeeded: item)] = leaf
    count &+= 1
    resizeAncestors(of: leaf, by: 1)
    if keyed && offset == 0 { firstKeyChanged(in: leaf) }
    #if CHECK_INVARIANTS
      sampleInvariants()
    #endif
  }

  /// Where an item goes to stand at `row`: right behind the item before, so between two leaves it is the end of the left one.
  @inline(__always)
  private func locateGap(before row: Int) -> Place {
    if row > 0 {
      let place = locate(row &- 1)
      return (place.leaf, place.offset &+ 1)
    }
    var node = root
    for _ in 0..<height { node = inners.children(node)[0] }
    return (node, 0)
  }

  /// Puts an item into a leaf that has room.
  @inline(__always)
  private func put(_ item: UInt32, _ key: UInt64, at place: Place) {
    let (leaf, offset) = place
    let header = leaves.header(leaf)
    let behind = Int(truncatingIfNeeded: header.pointee.count) &- offset
    let items = leaves.items(leaf) + offset
    (items + 1).update(from: items, count: behind)
    items.pointee = item
    if keyed {
      let keys = leaves.keys(leaf) + offset
      (keys + 1).update(from: keys, count: behind)
      keys.pointee = key
    }
    header.pointee.count &+= 1
  }

  /// Tells the nodes above `leaf` that it holds so many items more (modulo 2^32: less).
  @inline(__always)
  func resizeAncestors(of leaf: NodeID, by difference: UInt32) {
    let header = leaves.header(leaf)
    var node = header.pointee.parent
    var slot = Int(truncatingIfNeeded: header.pointee.slot)
    while node != .none {
      let header = inners.header(node)
      header.pointee.size &+= difference
      let starts = inners.starts(node)
      let count = Int(truncatingIfNeeded: header.pointee.count)
      slot &+= 1
      while slot < count {
        starts[slot] &+= difference
        slot &+= 1
      }
      slot = Int(truncatingIfNeeded: header.pointee.slot)
      node = header.pointee.parent
    }
  }

  /// Tells the nodes above `leaf`, which is not empty, the key of its first item.
  func firstKeyChanged(in leaf: NodeID) {
    let header = leaves.header(leaf)
    setFirstKey(leaves.keys(leaf)[0], at: Int(header.pointee.slot), of: header.pointee.parent)
  }

  /// Tells `node` (or none), and the nodes above it as far as it matters, the first key of its child at `slot`.
  func setFirstKey(_ key: UInt64, at slot: Int, of node: NodeID) {
    var node = node
    var slot = slot
    while node != .none {
      inners.firstKeys(node)[slot] = key
      if slot != 0 { return }
      slot = Int(inners.header(node).pointee.slot)
      node = inners.header(node).pointee.parent
    }
  }
}
