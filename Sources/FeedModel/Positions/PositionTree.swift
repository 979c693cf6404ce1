import FeedJSON

/// An ordered list of item handles that finds the row of an item, the item of a row, and the row where a new one belongs, each
/// in O(log n), and lets the list be read in parts while it changes.
///
/// A handle is any number that its owner uses for an element, each at most once in a tree; a table with one entry a handle
/// leads from an item to its leaf, so handles should be dense. Rows count from 0. The tree is a B+tree in flat memory: leaves
/// of up to 124 items, inner nodes of up to 64 children with the number of items before each, and a link from every node to
/// its parent.
///
/// A keyed tree stores an ordering key with every item, of which it keeps the order that its owner gave it: see
/// `upperBound(key:isAfter:)`.
///
/// Not safe for use by several threads at once. A tree never holds more than `UInt32.max - 1` items.
public final class PositionTree {
  /// Whether a key is stored with every item.
  public let keyed: Bool
  /// How many items a leaf and how many children an inner node may hold: the capacities of the pools, less in tests.
  let leafLimit: Int
  let innerLimit: Int

  var leaves: LeafPool
  var inners: InnerPool
  var leafOf = LeafTable()
  /// A leaf while `height` is 0, else an inner node.
  var root: NodeID
  /// How many levels of inner nodes there are.
  var height = 0
  /// How many items there are.
  public internal(set) var count = 0
  /// The snapshots that are not read to their end; they take themselves off when they are, or go.
  var snapshots: [Unmanaged<PositionSnapshot>] = []
  #if CHECK_INVARIANTS
    var mutations = 0
  #endif

  /// An empty tree.
  public convenience init(keyed: Bool) {
    self.init(keyed: keyed, leafLimit: LeafPool.capacity, innerLimit: InnerPool.capacity)
  }

  /// An empty tree with smaller nodes, so that small tests reach every way of splitting and joining them. Limits are at least 4.
  init(keyed: Bool, leafLimit: Int, innerLimit: Int) {
    self.keyed = keyed
    self.leafLimit = leafLimit
    self.innerLimit = innerLimit
    leaves = LeafPool(keyed: keyed)
    inners = InnerPool(keyed: keyed)
    root = leaves.allocate()
  }

  deinit {
    leaves.removeAll()
    inners.removeAll()
    leafOf.removeAll()
  }

  /// Removes every item and gives the memory back. O(memory), and O(n) while a snapshot has not read them.
  public func removeAll() {
    if hasSnapshots { preserveAll() }
    leaves.removeAll()
    inners.removeAll()
    leafOf.removeAll()
    root = leaves.allocate()
    height = 0
    count = 0
    #if CHECK_INVARIANTS
      sampleInvariants()
    #endif
  }
}

/// What is asked of nodes of any level; level 0 are the leaves.
extension PositionTree {
  func parent(of node: NodeID, level: UInt32) -> NodeID {
    level == 0 ? leaves.header(node).pointee.parent : inners.header(node).pointee.parent
  }

  func slot(of node: NodeID, level: UInt32) -> Int {
    Int(level == 0 ? leaves.header(node).pointee.slot : inners.header(node).pointee.slot)
  }

  /// How many items are in or below the node.
  func size(of node: NodeID, level: UInt32) -> UInt32 {
    level == 0 ? UInt32(leaves.header(node).pointee.count) : inners.header(node).pointee.size
  }

  /// Tells the children at `slots` of `node` their parent and place.
  func adopt(_ slots: Range<Int>, of node: NodeID) {
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

  /// Copies children to a place in another inner node, or the same; their starts become greater by `shift` (modulo 2^32).
  /// The counts and sizes are the caller's to set, and the children to be adopted.
  func moveChildren(from source: NodeID, _ start: Int, count: Int, to target: NodeID, _ place: Int, shift: UInt32) {
    (inners.children(target) + place).update(from: inners.children(source) + start, count: count)
    let starts = inners.starts(target) + place
    starts.update(from: inners.starts(source) + start, count: count)
    for index in 0..<count { starts[index] &+= shift }
    if keyed { (inners.firstKeys(target) + place).update(from: inners.firstKeys(source) + start, count: count) }
  }

  /// Whether nothing stands before the inner node on its level. O(log n).
  func isFirst(_ node: NodeID) -> Bool {
    var node = node
    while node != root {
      if inners.header(node).pointee.slot != 0 { return false }
      node = inners.header(node).pointee.parent
    }
    return true
  }

  /// Whether nothing stands after the inner node on its level. O(log n).
  func isLast(_ node: NodeID) -> Bool {
    var node = node
    while node != root {
      let header = inners.header(node)
      node = header.pointee.parent
      if header.pointee.slot + 1 != inners.header(node).pointee.count { return false }
    }
    return true
  }
}

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
    (start..<end).partitionPoint { place in
      let found = keys[place]
      return found < key || (found == key && !isAfter(place))
    }
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
