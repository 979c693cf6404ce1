extension PositionTree {
  /// Removes the item at `row`, which must be in `0..<count`, and returns it. O(log n).
  @discardableResult
  public func remove(at row: Int) -> UInt32 {
    let place = locate(row)
    let item = leaves.items(place.leaf)[place.offset]
    take(item, at: place)
    return item
  }

  /// Removes `item` and returns the row that it had; nil when it is not in the tree. O(log n), less than finding the row and
  /// removing there.
  @discardableResult
  public func remove(_ item: UInt32) -> Int? {
    let leaf = leafOf[item]
    if leaf == .none { return nil }
    let offset = offset(of: item, in: leaf)
    let row = firstRow(of: leaf) + offset
    take(item, at: (leaf, offset))
    return row
  }

  @inline(__always)
  private func take(_ item: UInt32, at place: Place) {
    let (leaf, offset) = place
    if hasSnapshots { preserve(leaf) }
    let header = leaves.header(leaf)
    let left = Int(truncatingIfNeeded: header.pointee.count) &- 1
    let items = leaves.items(leaf) + offset
    items.update(from: items + 1, count: left &- offset)
    if keyed {
      let keys = leaves.keys(leaf) + offset
      keys.update(from: keys + 1, count: left &- offset)
    }
    header.pointee.count = UInt16(truncatingIfNeeded: left)
    leafOf.table[Int(truncatingIfNeeded: item)] = .none
    count &-= 1
    resizeAncestors(of: leaf, by: 0 &- 1)
    if left < leafMinimum {
      joinIfPoor(leaf)
    } else if keyed && offset == 0 {
      firstKeyChanged(in: leaf)
    }
    #if CHECK_INVARIANTS
      sampleInvariants()
    #endif
  }

  /// Puts `item` in the place of the item at `row`, which must be in `0..<count`. It must not be in the tree elsewhere. O(log n).
  ///
  /// In a keyed tree keys must stay in order.
  public func replace(at row: Int, with item: UInt32, key: UInt64 = 0) {
    let (leaf, offset) = locate(row)
    let old = leaves.items(leaf)[offset]
    precondition(item != .max && (item == old || !contains(item)), "the item is in the tree already")
    if hasSnapshots { preserve(leaf) }
    leafOf.reserve(item)
    leafOf.table[Int(truncatingIfNeeded: old)] = .none
    leafOf.table[Int(truncatingIfNeeded: item)] = leaf
    leaves.items(leaf)[offset] = item
    if keyed {
      leaves.keys(leaf)[offset] = key
      if offset == 0 { firstKeyChanged(in: leaf) }
    }
    #if CHECK_INVARIANTS
      sampleInvariants()
    #endif
  }
}
