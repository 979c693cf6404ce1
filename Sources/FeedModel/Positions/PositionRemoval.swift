extension PositionTree {
  /// Removes and returns the item at `row`. O(log n).
  /// - Precondition: `row` is in `0..<count`.
  @discardableResult
  public func remove(at row: Int) -> UInt32 {
    let place = locate(row)
    let item = leaves.items(place.leaf)[place.offset]
    removeItem(item, at: place)
    return item
  }

  /// Removes `item` and returns its row; nil if it is not in the tree. O(log n), and faster than `row(of:)` and `remove(at:)`.
  @discardableResult
  public func remove(_ item: UInt32) -> Int? {
    let leaf = leafOf[item]
    if leaf == .none { return nil }
    let offset = offset(of: item, in: leaf)
    let row = firstRow(of: leaf) + offset
    removeItem(item, at: (leaf, offset))
    return row
  }

  @inline(__always)
  private func removeItem(_ item: UInt32, at place: Place) {
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
    leafOf.set(item, .none)
    count &-= 1
    resizeAncestors(of: leaf, by: 0 &- 1)
    if left < leafMinimum {
      mergeIfUnderfull(leaf)
    } else if keyed && offset == 0 {
      firstKeyChanged(in: leaf)
    }
    sampleInvariants()
  }

  /// Replaces the item at `row` by `item`. O(log n).
  /// - Precondition: `row` is in `0..<count`, and `item` is not at another row. In a keyed tree the keys stay ascending.
  public func replace(at row: Int, with item: UInt32, key: UInt64 = 0) {
    let (leaf, offset) = locate(row)
    let old = leaves.items(leaf)[offset]
    precondition(item != .max && (item == old || !contains(item)), "the item is in the tree already")
    if hasSnapshots { preserve(leaf) }
    leafOf.reserve(item)
    leafOf.set(old, .none)
    leafOf.set(item, leaf)
    leaves.items(leaf)[offset] = item
    if keyed {
      leaves.keys(leaf)[offset] = key
      if offset == 0 { firstKeyChanged(in: leaf) }
    }
    sampleInvariants()
  }
}

/// Merging of underfull nodes.
///
/// A node is at least a quarter full, except at the ends of a level, so that a list that shrinks there moves no items.
extension PositionTree {
  var leafMinimum: Int { leafLimit / 4 + 1 }
  var innerMinimum: Int { innerLimit / 4 + 1 }

  /// Removes a leaf that is empty; merges an underfull one with a neighbour, or moves items between the two.
  func mergeIfUnderfull(_ leaf: NodeID) {
    let header = leaves.header(leaf)
    let parent = header.pointee.parent
    if parent == .none { return }
    let slot = Int(header.pointee.slot)
    if header.pointee.count == 0 {
      unlink(leaf)
      removeChild(at: slot, of: parent)
      leaves.deallocate(leaf)
      return
    }
    if keyed { firstKeyChanged(in: leaf) }
    if header.pointee.previous == .none || header.pointee.next == .none { return }
    let count = Int(inners.header(parent).pointee.count)
    if count > 1 { mergeLeaves(at: slot + 1 < count ? slot : slot - 1, of: parent) }
  }

  /// Merges the leaf at `slot` and the next one, or moves items between them so that both have half.
  private func mergeLeaves(at slot: Int, of parent: NodeID) {
    let left = inners.children(parent)[slot]
    let right = inners.children(parent)[slot + 1]
    if hasSnapshots {
      preserve(left)
      preserve(right)
    }
    let inLeft = Int(leaves.header(left).pointee.count)
    let inRight = Int(leaves.header(right).pointee.count)
    let total = inLeft + inRight
    if total <= leafLimit * 3 / 4 {
      moveItems(from: right, 0, count: inRight, to: left, inLeft)
      leaves.header(left).pointee.count = UInt16(total)
      unlink(right)
      removeChild(at: slot + 1, of: parent)
      leaves.deallocate(right)
      return
    }
    let goal = total / 2
    if inLeft < goal {
      moveItems(from: right, 0, count: goal - inLeft, to: left, inLeft)
      shiftItems(of: right, from: goal - inLeft, count: total - goal, to: 0)
    } else {
      shiftItems(of: right, from: 0, count: inRight, to: inLeft - goal)
      moveItems(from: left, goal, count: inLeft - goal, to: right, 0)
    }
    leaves.header(left).pointee.count = UInt16(goal)
    leaves.header(right).pointee.count = UInt16(total - goal)
    inners.starts(parent)[slot + 1] = inners.starts(parent)[slot] + UInt32(goal)
    if keyed { inners.firstKeys(parent)[slot + 1] = leaves.keys(right)[0] }
  }

  private func shiftItems(of leaf: NodeID, from start: Int, count: Int, to place: Int) {
    let items = leaves.items(leaf)
    (items + place).update(from: items + start, count: count)
    if keyed {
      let keys = leaves.keys(leaf)
      (keys + place).update(from: keys + start, count: count)
    }
  }

  private func unlink(_ leaf: NodeID) {
    let header = leaves.header(leaf)
    let previous = header.pointee.previous
    let next = header.pointee.next
    if previous != .none { leaves.header(previous).pointee.next = next }
    if next != .none { leaves.header(next).pointee.previous = previous }
  }

  /// Removes a child from an inner node. Its items were removed before, or are counted by a neighbour.
  private func removeChild(at slot: Int, of node: NodeID) {
    let count = Int(inners.header(node).pointee.count) - 1
    moveChildren(from: node, slot + 1, count: count - slot, to: node, slot, shift: 0)
    inners.setCount(of: node, count)
    setParent(ofChildren: slot..<count, to: node)
    let parent = inners.header(node).pointee.parent
    let slotOfNode = Int(inners.header(node).pointee.slot)
    if count == 0 {
      removeChild(at: slotOfNode, of: parent)
      inners.deallocate(node)
      return
    }
    if keyed && slot == 0 { setFirstKey(inners.firstKeys(node)[0], at: slotOfNode, of: parent) }
    if parent == .none {
      shrinkRoot()
    } else if count < innerMinimum && !isFirst(node) && !isLast(node) {
      let count = Int(inners.header(parent).pointee.count)
      if count > 1 { mergeInners(at: slotOfNode + 1 < count ? slotOfNode : slotOfNode - 1, of: parent) }
    }
  }

  private func shrinkRoot() {
    while height > 0 && inners.header(root).pointee.count == 1 {
      let old = root
      root = inners.children(old)[0]
      height -= 1
      inners.deallocate(old)
      if height == 0 {
        leaves.header(root).pointee.parent = .none
      } else {
        inners.header(root).pointee.parent = .none
      }
    }
  }

  /// Merges the inner node at `slot` and the next one, or moves children between them so that both have half.
  private func mergeInners(at slot: Int, of parent: NodeID) {
    let left = inners.children(parent)[slot]
    let right = inners.children(parent)[slot + 1]
    let inLeft = Int(inners.header(left).pointee.count)
    let inRight = Int(inners.header(right).pointee.count)
    let total = inLeft + inRight
    if total <= innerLimit * 3 / 4 {
      moveChildren(from: right, 0, count: inRight, to: left, inLeft, shift: inners.header(left).pointee.size)
      setCounts(of: left, count: total, size: inners.header(left).pointee.size + inners.header(right).pointee.size)
      setParent(ofChildren: inLeft..<total, to: left)
      removeChild(at: slot + 1, of: parent)
      inners.deallocate(right)
      return
    }
    balanceInners(left, right, goal: total / 2)
    setParent(ofChildren: Swift.min(inLeft, total / 2)..<total / 2, to: left)
    setParent(ofChildren: 0..<total - total / 2, to: right)
    inners.starts(parent)[slot + 1] = inners.starts(parent)[slot] + inners.header(left).pointee.size
    if keyed { inners.firstKeys(parent)[slot + 1] = inners.firstKeys(right)[0] }
  }

  /// Moves children between neighbours so that the left one has `goal` children.
  private func balanceInners(_ left: NodeID, _ right: NodeID, goal: Int) {
    let inLeft = Int(inners.header(left).pointee.count)
    let inRight = Int(inners.header(right).pointee.count)
    let sizeOfLeft = inners.header(left).pointee.size
    let sizeOfRight = inners.header(right).pointee.size
    if inLeft < goal {
      let moved = goal - inLeft
      let items = inners.starts(right)[moved]
      moveChildren(from: right, 0, count: moved, to: left, inLeft, shift: sizeOfLeft)
      moveChildren(from: right, moved, count: inRight - moved, to: right, 0, shift: 0 &- items)
      setCounts(of: left, count: goal, size: sizeOfLeft + items)
      setCounts(of: right, count: inRight - moved, size: sizeOfRight - items)
    } else {
      let moved = inLeft - goal
      let before = inners.starts(left)[goal]
      let items = sizeOfLeft - before
      moveChildren(from: right, 0, count: inRight, to: right, moved, shift: items)
      moveChildren(from: left, goal, count: moved, to: right, 0, shift: 0 &- before)
      setCounts(of: left, count: goal, size: before)
      setCounts(of: right, count: inRight + moved, size: sizeOfRight + items)
    }
  }

  private func setCounts(of node: NodeID, count: Int, size: UInt32) {
    inners.setCount(of: node, count)
    inners.header(node).pointee.size = size
  }
}
