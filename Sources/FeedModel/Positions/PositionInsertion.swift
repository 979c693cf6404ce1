extension PositionTree {
  /// Inserts `item` at `row`. O(log n).
  /// - Precondition: `item` is not in the tree, and `row` is in `0...count`. In a keyed tree the keys stay ascending, as at the
  ///   row returned by `upperBound(key:isAfter:)`.
  public func insert(_ item: UInt32, at row: Int, key: UInt64 = 0) {
    precondition(row >= 0 && row <= count, "row out of range")
    insert(item, into: locateGap(before: row), key: key)
  }

  /// Inserts `item` into a gap. O(log n), and faster than by row.
  /// - Precondition: `item` is not in the tree, which has not changed since the gap was found. In a keyed tree the keys stay
  ///   ascending.
  func insert(_ item: UInt32, into gap: Gap, key: UInt64 = 0) {
    assert(gap.place == locateGap(before: gap.row), "the gap is another one")
    insert(item, into: gap.place, key: key)
  }

  /// The gap before a row in `0...count`. O(log n).
  func gap(before row: Int) -> Gap {
    precondition(row >= 0 && row <= count, "row out of range")
    return Gap(row: row, place: locateGap(before: row))
  }

  /// Inserts `item` directly after another one, and returns its row. O(log n), and faster than by row.
  /// - Precondition: `item` is not in the tree, `other` is. In a keyed tree the keys stay ascending.
  func insert(_ item: UInt32, after other: UInt32, key: UInt64 = 0) -> Int {
    let leaf = leafOf[other]
    precondition(leaf != .none, "the item before is not in the tree")
    let offset = offset(of: other, in: leaf) &+ 1
    let row = firstRow(of: leaf) &+ offset
    insert(item, into: (leaf, offset), key: key)
    return row
  }

  /// Appends `more` items, faster than one by one. O(more + log n).
  /// - Precondition: the items are not in the tree. In a keyed tree their keys ascend, and none is less than the last one.
  /// - Parameters:
  ///   - pace: lets the work stop; nothing may then read the tree.
  ///   - entry: returns the item at an index in `0..<more`, with its key.
  func append(_ more: Int, _ pace: Pace = Pace(), _ entry: (Int) -> Entry) {
    precondition(count <= Int(UInt32.max) - 1 - more, "too many items")
    var next = 0
    while next < more {
      var leaf = count == 0 ? root : locate(count &- 1).leaf
      if Int(leaves.header(leaf).pointee.count) == leafLimit {
        leaf = addLeaf(beside: leaf, after: true, key: entry(next).key)
      }
      if hasSnapshots { preserve(leaf) }
      let start = Int(leaves.header(leaf).pointee.count)
      let end = Swift.min(leafLimit, start + more - next)
      for offset in start..<end {
        let (item, key) = entry(next)
        precondition(item != .max && !contains(item), "the item is in the tree already")
        leafOf.reserve(item)
        leafOf.set(item, leaf)
        leaves.items(leaf)[offset] = item
        if keyed { leaves.keys(leaf)[offset] = key }
        next += 1
      }
      leaves.header(leaf).pointee.count = UInt16(end)
      count += end - start
      resizeAncestors(of: leaf, by: UInt32(end - start))
      if keyed && start == 0 { firstKeyChanged(in: leaf) }
      pace.spend(1 &+ (end - start) / 16)
    }
    sampleInvariants()
  }

  @inline(__always)
  private func insert(_ item: UInt32, into gap: Place, key: UInt64) {
    precondition(item != .max && count < Int(UInt32.max) - 1, "too many items")
    precondition(!contains(item), "the item is in the tree already")
    leafOf.reserve(item)
    var place = gap
    if Int(leaves.header(place.leaf).pointee.count) == leafLimit { place = makeRoom(at: place, for: key) }
    let (leaf, offset) = place
    if hasSnapshots { preserve(leaf) }
    put(item, key, at: place)
    leafOf.set(item, leaf)
    count &+= 1
    resizeAncestors(of: leaf, by: 1)
    if keyed && offset == 0 { firstKeyChanged(in: leaf) }
    sampleInvariants()
  }

  /// The place for an item that is inserted at `row`: after the item before it, if need be at the end of a leaf.
  @inline(__always)
  func locateGap(before row: Int) -> Place {
    if row > 0 {
      let place = locate(row &- 1)
      return (place.leaf, place.offset &+ 1)
    }
    var node = root
    for _ in 0..<height { node = inners.children(node)[0] }
    return (node, 0)
  }

  /// Inserts an item into a leaf that is not full.
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

  /// Adds `difference`, modulo 2^32, to the sizes of the nodes above `leaf`, and to the starts of the children after it.
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

  /// Updates the first keys of the nodes above `leaf`, which is not empty.
  func firstKeyChanged(in leaf: NodeID) {
    let header = leaves.header(leaf)
    setFirstKey(leaves.keys(leaf)[0], at: Int(header.pointee.slot), of: header.pointee.parent)
  }

  /// Sets the first key of the child at `slot` of `node`, which can be `.none`, and of each node above whose first key it is.
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

  /// Splits a full leaf so that an item can be inserted at `place`. Returns the new position of that place.
  ///
  /// At both ends of the tree a new leaf is started, so that leaves there are full. Elsewhere half of the items move.
  func makeRoom(at place: Place, for key: UInt64) -> Place {
    let (leaf, offset) = place
    let header = leaves.header(leaf)
    if offset == leafLimit && header.pointee.next == .none { return (addLeaf(beside: leaf, after: true, key: key), 0) }
    if offset == 0 && header.pointee.previous == .none { return (addLeaf(beside: leaf, after: false, key: key), 0) }
    if hasSnapshots { preserve(leaf) }
    let half = leafLimit / 2
    let new = leaves.allocate()
    moveItems(from: leaf, half, count: leafLimit - half, to: new, 0)
    leaves.header(leaf).pointee.count = UInt16(half)
    leaves.header(new).pointee.count = UInt16(leafLimit - half)
    link(new, after: leaf)
    addSibling(new, of: leaf, level: 0, after: true, key: keyed ? leaves.keys(new)[0] : 0)
    return offset <= half ? place : (new, offset - half)
  }

  /// Adds an empty leaf before or after `leaf`, which is at an end of the tree.
  private func addLeaf(beside leaf: NodeID, after: Bool, key: UInt64) -> NodeID {
    let new = leaves.allocate()
    if after {
      link(new, after: leaf)
    } else {
      leaves.header(new).pointee.next = leaf
      leaves.header(leaf).pointee.previous = new
    }
    addSibling(new, of: leaf, level: 0, after: after, key: key)
    return new
  }

  private func link(_ new: NodeID, after leaf: NodeID) {
    let next = leaves.header(leaf).pointee.next
    leaves.header(new).pointee.previous = leaf
    leaves.header(new).pointee.next = next
    leaves.header(leaf).pointee.next = new
    if next != .none { leaves.header(next).pointee.previous = new }
  }

  /// Copies items and keys to another leaf, and updates the table. The caller sets the counts.
  func moveItems(from source: NodeID, _ start: Int, count: Int, to target: NodeID, _ place: Int) {
    let items = leaves.items(target) + place
    items.update(from: leaves.items(source) + start, count: count)
    if keyed { (leaves.keys(target) + place).update(from: leaves.keys(source) + start, count: count) }
    for index in 0..<count { leafOf.set(items[index], target) }
  }

  /// Inserts `new` into the parent of `node`, directly after or before it. `key` is the first key of `new`.
  /// - Precondition: both nodes have this level, 0 for leaves. `new` is empty or has items that were in `node`, and the sizes
  ///   of the nodes above include the items of both.
  private func addSibling(_ new: NodeID, of node: NodeID, level: UInt32, after: Bool, key: UInt64) {
    if parent(of: node, level: level) == .none { growRoot() }
    var parent = parent(of: node, level: level)
    var slot = slot(of: node, level: level)
    var start = inners.starts(parent)[slot]
    if after {
      slot += 1
      start += size(of: node, level: level)
    }
    if Int(inners.header(parent).pointee.count) == innerLimit {
      (parent, slot, start) = makeRoom(in: parent, slot, start, size: size(of: new, level: level), key: key)
    }
    let count = Int(inners.header(parent).pointee.count)
    let children = inners.children(parent) + slot
    (children + 1).update(from: children, count: count - slot)
    children.pointee = new
    let starts = inners.starts(parent) + slot
    (starts + 1).update(from: starts, count: count - slot)
    starts.pointee = start
    if keyed {
      let keys = inners.firstKeys(parent) + slot
      (keys + 1).update(from: keys, count: count - slot)
      keys.pointee = key
    }
    inners.setCount(of: parent, count + 1)
    setParent(ofChildren: slot..<count + 1, to: parent)
  }

  /// Splits a full inner node for a child of `size` items at `slot`. Returns the node, slot and start of that child.
  private func makeRoom(
    in node: NodeID, _ slot: Int, _ start: UInt32, size: UInt32, key: UInt64
  ) -> (NodeID, Int, UInt32) {
    let level = inners.header(node).pointee.level
    let new = inners.allocate(level: level)
    if slot == innerLimit && isLast(node) {
      inners.header(node).pointee.size -= size
      inners.header(new).pointee.size = size
      addSibling(new, of: node, level: level, after: true, key: key)
      return (new, 0, 0)
    }
    if slot == 0 && isFirst(node) {
      addSibling(new, of: node, level: level, after: false, key: key)
      return (new, 0, 0)
    }
    let half = innerLimit / 2
    let before = inners.starts(node)[half]
    moveChildren(from: node, half, count: innerLimit - half, to: new, 0, shift: 0 &- before)
    inners.setCount(of: node, half)
    inners.setCount(of: new, innerLimit - half)
    inners.header(new).pointee.size = inners.header(node).pointee.size - before
    inners.header(node).pointee.size = before
    setParent(ofChildren: 0..<innerLimit - half, to: new)
    addSibling(new, of: node, level: level, after: true, key: keyed ? inners.firstKeys(new)[0] : 0)
    return slot <= half ? (node, slot, start) : (new, slot - half, start - before)
  }

  private func growRoot() {
    let old = root
    let key = !keyed ? 0 : height > 0 ? inners.firstKeys(old)[0] : leaves.keys(old)[0]
    root = inners.allocate(level: UInt32(height + 1))
    height += 1
    inners.setCount(of: root, 1)
    inners.header(root).pointee.size = UInt32(truncatingIfNeeded: count)
    inners.children(root)[0] = old
    inners.starts(root)[0] = 0
    if keyed { inners.firstKeys(root)[0] = key }
    setParent(ofChildren: 0..<1, to: root)
  }
}
