import FeedJSON

/// An ordered list of item handles, with the row of an item, the item of a row and the row of a new item each in O(log n), and
/// snapshots that are read in parts while the list changes.
///
/// A handle is a number that its owner chose for an element. It is at most once in a tree. Handles should be dense, because
/// a table from handles to leaves has an entry for each. Rows count from 0.
///
/// A B+tree in flat memory: leaves of up to 124 items, inner nodes of up to 64 children with the number of items before
/// each, and links to parents. A keyed tree stores a sort key with each item; see `upperBound(key:isAfter:)`.
///
///     let rows = PositionTree(keyed: false)
///     rows.insert(handle, at: 0)
///     rows.row(of: handle)  // 0
///
/// Invariant: see `checkInvariants()`. Not thread-safe. At most `UInt32.max - 1` items.
public final class PositionTree {
  /// Whether each item has a key.
  public let keyed: Bool
  /// The most items of a leaf and the most children of an inner node: the capacities of the pools, less in tests.
  let leafLimit: Int
  let innerLimit: Int

  var leaves: LeafPool
  var inners: InnerPool
  var leafOf = LeafTable()
  /// A leaf if `height` is 0, otherwise an inner node.
  var root: NodeID
  var height = 0
  public internal(set) var count = 0
  /// The unfinished snapshots. A snapshot removes itself when it is read to the end, cancelled or freed.
  var snapshots: [Unmanaged<PositionSnapshot>] = []
  #if CHECK_INVARIANTS
    private var mutations = 0
  #endif

  public convenience init(keyed: Bool) {
    self.init(keyed: keyed, leafLimit: LeafPool.capacity, innerLimit: InnerPool.capacity)
  }

  /// Creates an empty tree with smaller nodes, of at least 4, so that small tests split and merge them in every way.
  init(keyed: Bool, leafLimit: Int, innerLimit: Int) {
    (self.keyed, self.leafLimit, self.innerLimit) = (keyed, leafLimit, innerLimit)
    leaves = LeafPool(keyed: keyed)
    inners = InnerPool(keyed: keyed)
    root = leaves.allocate()
  }

  /// Reserves memory for the handles below `count` if they are few, so that their table has no more.
  func reserve(handles count: Int) { leafOf.reserve(first: count) }
  var byteCount: Int { leaves.byteCount + inners.byteCount + leafOf.byteCount }

  /// Returns a tree with the same items, without the snapshots. O(n / 64), with the bytes of the tree.
  func copy(_ pace: Pace) -> PositionTree {
    let copy = PositionTree(keyed: keyed, leafLimit: leafLimit, innerLimit: innerLimit)
    copy.leaves.removeAll()
    copy.leaves = leaves.copy(pace)
    copy.inners = inners.copy(pace)
    copy.leafOf = leafOf.copy(pace)
    (copy.root, copy.height, copy.count) = (root, height, count)
    return copy
  }

  deinit {
    leaves.removeAll()
    inners.removeAll()
    leafOf.removeAll()
  }

  /// Removes all items and frees the memory. O(memory), and O(n) if a snapshot has not read them.
  public func removeAll() {
    if hasSnapshots { preserveAll() }
    leaves.removeAll()
    inners.removeAll()
    leafOf.removeAll()
    root = leaves.allocate()
    height = 0
    count = 0
    sampleInvariants()
  }
}

/// Operations on nodes of any level. Leaves have level 0.
extension PositionTree {
  func parent(of node: NodeID, level: UInt32) -> NodeID {
    level == 0 ? leaves.header(node).pointee.parent : inners.header(node).pointee.parent
  }

  func slot(of node: NodeID, level: UInt32) -> Int {
    Int(level == 0 ? leaves.header(node).pointee.slot : inners.header(node).pointee.slot)
  }

  func size(of node: NodeID, level: UInt32) -> UInt32 {
    level == 0 ? UInt32(leaves.header(node).pointee.count) : inners.header(node).pointee.size
  }

  /// Sets the parent and slot of the children at `slots` of `node`.
  func setParent(ofChildren slots: Range<Int>, to node: NodeID) {
    let children = inners.children(node)
    if inners.header(node).pointee.level == 1 {
      for slot in slots {
        let header = leaves.header(children[slot])
        header.pointee.parent = node
        header.pointee.slot = UInt16(truncatingIfNeeded: slot)
      }
    } else {
      for slot in slots {
        let header = inners.header(children[slot])
        header.pointee.parent = node
        header.pointee.slot = UInt16(truncatingIfNeeded: slot)
      }
    }
  }

  /// Copies children to `place` in another inner node or the same, and adds `shift` to their starts, modulo 2^32. The caller
  /// sets counts and sizes and calls `setParent`.
  func moveChildren(from source: NodeID, _ start: Int, count: Int, to target: NodeID, _ place: Int, shift: UInt32) {
    (inners.children(target) + place).update(from: inners.children(source) + start, count: count)
    let starts = inners.starts(target) + place
    starts.update(from: inners.starts(source) + start, count: count)
    for index in 0..<count { starts[index] &+= shift }
    if keyed { (inners.firstKeys(target) + place).update(from: inners.firstKeys(source) + start, count: count) }
  }

  /// Whether the inner node is the first of its level. O(log n).
  func isFirst(_ node: NodeID) -> Bool {
    var node = node
    while node != root {
      if inners.header(node).pointee.slot != 0 { return false }
      node = inners.header(node).pointee.parent
    }
    return true
  }

  /// Whether the inner node is the last of its level. O(log n).
  func isLast(_ node: NodeID) -> Bool {
    var node = node
    while node != root {
      let header = inners.header(node)
      node = header.pointee.parent
      if header.pointee.slot + 1 != inners.header(node).pointee.count { return false }
    }
    return true
  }

  /// Returns the row for a new element with `key`, after all elements that sort equal: the first row with a greater
  /// key, or with the same key and an item for which `isAfter` is true; `count` if there is none.
  /// - Parameter isAfter: whether an item sorts after the new element. Called O(log n) times, for equal keys only.
  /// - Precondition: the tree is keyed. Keys ascend and, among equal keys, items for which `isAfter` is true come last.
  ///
  /// O(log n).
  @inline(__always)
  public func upperBound(key: UInt64, isAfter: (UInt32) -> Bool) -> Int { gap(key: key, isAfter: isAfter).row }

  /// Returns the gap before the row that `upperBound(key:isAfter:)` returns. O(log n).
  func gap(key: UInt64, isAfter: (UInt32) -> Bool) -> Gap {
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
    let offset = Self.boundary(leaves.keys(node), from: 0, to: count, key: key) { isAfter(items[$0]) }
    return Gap(row: row + offset, place: (node, offset))
  }

  /// The first index of ascending `keys` whose key is greater than `key`, or equal while `isAfter` is true.
  @inline(__always)
  private static func boundary(
    _ keys: UnsafeMutablePointer<UInt64>, from start: Int, to end: Int, key: UInt64, isAfter: (Int) -> Bool
  ) -> Int {
    (start..<end).partitionPoint { place in
      let found = keys[place]
      return found < key || (found == key && !isAfter(place))
    }
  }

  /// Checks the tree after each mutation if it is small, and after each 1024th mutation otherwise.
  @inline(__always)
  func sampleInvariants() {
    #if CHECK_INVARIANTS
      mutations &+= 1
      if count <= 1000 || mutations % 1024 == 0 { checkInvariants() }
    #endif
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

#if CHECK_INVARIANTS
  extension PositionTree {
    /// Checks the links in both directions, the counts, the keys, the table, and that nodes are neither full nor underfull. O(n).
    func checkInvariants() {
      var previous = NodeID.none
      let found = check(root, level: height, parent: .none, slot: 0, previous: &previous)
      precondition(found == count, "the count is wrong")
      precondition(leaves.header(previous).pointee.next == .none, "the last leaf has a next one")
      for (place, snapshot) in snapshots.enumerated() {
        snapshot._withUnsafeGuaranteedRef { $0.checkInvariants(at: place) }
      }
    }

    /// Checks a node and the nodes below it. Returns the number of its items.
    private func check(_ node: NodeID, level: Int, parent: NodeID, slot: Int, previous: inout NodeID) -> Int {
      if level == 0 { return check(leaf: node, parent: parent, slot: slot, previous: &previous) }
      let header = inners.header(node).pointee
      precondition(
        header.parent == parent && header.slot == slot && header.level == level, "an inner node is misplaced")
      precondition(header.count <= innerLimit && header.count > 0, "an inner node has no or too many children")
      precondition(node != root || header.count > 1, "the root has a single child")
      precondition(header.count >= innerMinimum || isFirst(node) || isLast(node), "an inner node is underfull")
      var size = 0
      for slot in 0..<Int(header.count) {
        let child = inners.children(node)[slot]
        precondition(inners.starts(node)[slot] == size, "a start is wrong")
        size += check(child, level: level - 1, parent: node, slot: slot, previous: &previous)
        if keyed {
          let key = level > 1 ? inners.firstKeys(child)[0] : leaves.keys(child)[0]
          precondition(inners.firstKeys(node)[slot] == key, "a first key is wrong")
        }
      }
      precondition(header.size == size, "a size is wrong")
      for slot in Int(header.count)..<InnerPool.capacity {
        precondition(inners.starts(node)[slot] == .max, "an unused start is not reset")
      }
      return size
    }

    private func check(leaf: NodeID, parent: NodeID, slot: Int, previous: inout NodeID) -> Int {
      let header = leaves.header(leaf).pointee
      precondition(header.parent == parent && (parent == .none || header.slot == slot), "a leaf is misplaced")
      precondition(header.previous == previous, "a leaf's link to the previous one is wrong")
      precondition(
        previous == .none || leaves.header(previous).pointee.next == leaf, "a leaf's link to the next one is wrong")
      precondition(header.count <= leafLimit, "a leaf is too full")
      precondition(header.count > 0 || leaf == root, "a leaf is empty")
      precondition(
        header.count >= leafMinimum || header.previous == .none || header.next == .none, "a leaf is underfull")
      for offset in 0..<Int(header.count) {
        precondition(leafOf[leaves.items(leaf)[offset]] == leaf, "the table names another leaf")
      }
      previous = leaf
      return Int(header.count)
    }
  }
#endif
