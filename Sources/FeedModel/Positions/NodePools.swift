import Glibc

/// The id of a node in its pool. Leaves and inner nodes are numbered apart.
typealias NodeID = UInt32

extension NodeID {
  /// Stands for no node: the parent of the root, the neighbour past an end, the leaf of an item that is not in the tree.
  static let none = UInt32.max
}

/// The inner nodes of a position tree in one block of memory, addressed by id; with ordering keys, the least key of every child
/// in a second block.
///
/// A node is a header, the ids of up to `capacity` children, and for each child how many items of the node stand before it.
/// Sums instead of counts make the rank of a child one load, and the child of a row a scan without branches, for which
/// the starts past the last child are `UInt32.max`. Pointers into a pool are good until the next `allocate(level:)`.
struct InnerPool {
  /// What stands before the lists of an inner node.
  struct Header {
    var count: UInt16
    /// The place in the parent's lists.
    var slot: UInt16
    /// The parent; of a free node the next free one.
    var parent: NodeID
    /// How many items are below this node.
    var size: UInt32
    /// How far above the leaves: 1 when the children are leaves.
    var level: UInt32
  }

  static let capacity = 64
  static let stride = MemoryLayout<Header>.stride + 2 * capacity * MemoryLayout<UInt32>.stride

  private let keyed: Bool
  private var memory: UnsafeMutableRawPointer?
  private var keyMemory: UnsafeMutablePointer<UInt64>?
  private var used: UInt32 = 0
  private var reserved: UInt32 = 0
  private var free = NodeID.none

  init(keyed: Bool) {
    self.keyed = keyed
  }

  @inline(__always)
  func header(_ node: NodeID) -> UnsafeMutablePointer<Header> {
    base(node).assumingMemoryBound(to: Header.self)
  }

  @inline(__always)
  func children(_ node: NodeID) -> UnsafeMutablePointer<NodeID> {
    (base(node) + MemoryLayout<Header>.stride).assumingMemoryBound(to: NodeID.self)
  }

  /// For every child, how many items of the node stand before it; then `UInt32.max`.
  @inline(__always)
  func starts(_ node: NodeID) -> UnsafeMutablePointer<UInt32> {
    children(node) + Self.capacity
  }

  /// For every child, the key of its first item, of a pool that has them.
  @inline(__always)
  func firstKeys(_ node: NodeID) -> UnsafeMutablePointer<UInt64> {
    keyMemory.unsafelyUnwrapped + Int(truncatingIfNeeded: node) &* Self.capacity
  }

  @inline(__always)
  private func base(_ node: NodeID) -> UnsafeMutableRawPointer {
    memory.unsafelyUnwrapped + Int(truncatingIfNeeded: node) &* Self.stride
  }

  /// Sets how many children the node has, and forgets the starts of those behind.
  func setCount(of node: NodeID, _ count: Int) {
    let old = Int(header(node).pointee.count)
    if count < old { (starts(node) + count).update(repeating: .max, count: old - count) }
    header(node).pointee.count = UInt16(truncatingIfNeeded: count)
  }

  /// The last child that starts at `row` or before it. All are looked at, as that needs no branches. O(1).
  @inline(__always)
  func slot(of node: NodeID, row: UInt32) -> Int {
    let starts = starts(node)
    var reached: UInt32 = 0
    var slot = 0
    while slot < Self.capacity {
      reached &+= starts[slot] <= row ? 1 : 0
      slot &+= 1
    }
    return Int(truncatingIfNeeded: reached) &- 1
  }

  /// A node without children or parent. Amortised O(1).
  mutating func allocate(level: UInt32) -> NodeID {
    let node: NodeID
    if free != .none {
      node = free
      free = header(node).pointee.parent
    } else {
      if used == reserved { grow() }
      node = used
      used += 1
    }
    header(node).initialize(to: Header(count: 0, slot: 0, parent: .none, size: 0, level: level))
    starts(node).initialize(repeating: .max, count: Self.capacity)
    return node
  }

  /// Gives a node back; its id may be handed out again.
  mutating func deallocate(_ node: NodeID) {
    header(node).pointee.parent = free
    free = node
  }

  /// Gives all memory back. The pool is as new.
  mutating func removeAll() {
    Glibc.free(memory)
    Glibc.free(keyMemory)
    memory = nil
    keyMemory = nil
    used = 0
    reserved = 0
    free = .none
  }

  private mutating func grow() {
    reserved = Swift.max(1, reserved * 2)
    memory = resized(memory, byteCount: Int(reserved) * Self.stride)
    if keyed {
      let bytes = Int(reserved) * Self.capacity * MemoryLayout<UInt64>.stride
      keyMemory = resized(keyMemory, byteCount: bytes).assumingMemoryBound(to: UInt64.self)
    }
  }
}

/// The leaves of a position tree in one block of memory, addressed by id; with ordering keys, these in a second block.
///
/// A leaf is a header and `capacity` items, 512 bytes in all. Pointers into a pool are good until the next `allocate()`.
struct LeafPool {
  /// What stands before the items of a leaf.
  struct Header {
    var count: UInt16
    /// The place in the parent's lists.
    var slot: UInt16
    var parent: NodeID
    var previous: NodeID
    /// The next leaf in order; of a free leaf the next free one.
    var next: NodeID
  }

  static let capacity = 124
  static let stride = MemoryLayout<Header>.stride + capacity * MemoryLayout<UInt32>.stride

  private let keyed: Bool
  private var memory: UnsafeMutableRawPointer?
  private var keyMemory: UnsafeMutablePointer<UInt64>?
  /// How many ids were ever handed out: every id is below this.
  private(set) var used: UInt32 = 0
  private var reserved: UInt32 = 0
  private var free = NodeID.none

  init(keyed: Bool) {
    self.keyed = keyed
  }

  @inline(__always)
  func header(_ leaf: NodeID) -> UnsafeMutablePointer<Header> {
    base(leaf).assumingMemoryBound(to: Header.self)
  }

  @inline(__always)
  func items(_ leaf: NodeID) -> UnsafeMutablePointer<UInt32> {
    (base(leaf) + MemoryLayout<Header>.stride).assumingMemoryBound(to: UInt32.self)
  }

  /// The keys of the items, of a pool that has them.
  @inline(__always)
  func keys(_ leaf: NodeID) -> UnsafeMutablePointer<UInt64> {
    keyMemory.unsafelyUnwrapped + Int(truncatingIfNeeded: leaf) &* Self.capacity
  }

  @inline(__always)
  private func base(_ leaf: NodeID) -> UnsafeMutableRawPointer {
    memory.unsafelyUnwrapped + Int(truncatingIfNeeded: leaf) &* Self.stride
  }

  /// An empty leaf without parent or neighbours. Amortised O(1).
  mutating func allocate() -> NodeID {
    let leaf: NodeID
    if free != .none {
      leaf = free
      free = header(leaf).pointee.next
    } else {
      if used == reserved { grow() }
      leaf = used
      used += 1
    }
    header(leaf).initialize(to: Header(count: 0, slot: 0, parent: .none, previous: .none, next: .none))
    return leaf
  }

  /// Gives a leaf back; its id may be handed out again.
  mutating func deallocate(_ leaf: NodeID) {
    header(leaf).pointee.next = free
    free = leaf
  }

  /// Gives all memory back. The pool is as new.
  mutating func removeAll() {
    Glibc.free(memory)
    Glibc.free(keyMemory)
    memory = nil
    keyMemory = nil
    used = 0
    reserved = 0
    free = .none
  }

  private mutating func grow() {
    reserved = Swift.max(1, reserved * 2)
    memory = resized(memory, byteCount: Int(reserved) * Self.stride)
    if keyed {
      let bytes = Int(reserved) * Self.capacity * MemoryLayout<UInt64>.stride
      keyMemory = resized(keyMemory, byteCount: bytes).assumingMemoryBound(to: UInt64.self)
    }
  }
}

/// Moves a block of memory to one of another size. Running out of memory ends the process, as it does everywhere in Swift.
func resized(_ memory: UnsafeMutableRawPointer?, byteCount: Int) -> UnsafeMutableRawPointer {
  guard let result = realloc(memory, byteCount) else { preconditionFailure("out of memory") }
  return result
}
