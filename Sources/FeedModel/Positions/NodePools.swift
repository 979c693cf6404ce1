import Glibc

/// The id of a node in its pool. Leaves and inner nodes have separate ids.
typealias NodeID = UInt32

extension NodeID {
  /// The id for no node: the parent of the root, the neighbour past an end, the leaf of an item that is not in the tree.
  static let none = UInt32.max
}

/// The kind of the nodes of a pool, and their shape.
protocol NodeLayout {
  static var stride: Int { get }
  static var capacity: Int { get }
}

/// The memory of the nodes of one kind: one block, addressed by id, and one with keys if the tree is keyed.
///
/// Pointers into a pool are valid until the next `allocate()`. Invariant: `used` is at most `reserved`; ids on the free list
/// are below `used`. The first word of a free node is the next free id.
struct NodePool<Layout: NodeLayout> {
  private let keyed: Bool
  private var memory: UnsafeMutableRawPointer?
  private var keyMemory: UnsafeMutablePointer<UInt64>?
  /// The number of ids ever allocated: every id is below this.
  private(set) var used: UInt32 = 0
  private var reserved: UInt32 = 0
  private var free = NodeID.none

  init(keyed: Bool) { self.keyed = keyed }

  /// The first byte of a node.
  @inline(__always)
  func base(_ node: NodeID) -> UnsafeMutableRawPointer {
    memory.unsafelyUnwrapped + Int(truncatingIfNeeded: node) &* Layout.stride
  }

  /// The keys of a node's entries. Of a keyed pool only.
  @inline(__always)
  func keys(_ node: NodeID) -> UnsafeMutablePointer<UInt64> {
    keyMemory.unsafelyUnwrapped + Int(truncatingIfNeeded: node) &* Layout.capacity
  }

  static var capacity: Int { Layout.capacity }

  /// Returns the id of an uninitialized node. Amortized O(1).
  private mutating func allocateNode() -> NodeID {
    if free != .none {
      let node = free
      free = base(node).load(as: NodeID.self)
      assert(node < used && (free == .none || free < used))
      return node
    }
    if used == reserved { grow() }
    used += 1
    return used - 1
  }

  /// Frees a node. Its id can be allocated again.
  mutating func deallocate(_ node: NodeID) {
    assert(node < used && node != free)
    base(node).storeBytes(of: free, as: NodeID.self)
    free = node
  }

  mutating func removeAll() {
    Glibc.free(memory)
    Glibc.free(keyMemory)
    self = NodePool(keyed: keyed)
  }

  /// Returns a pool with the same nodes. O(nodes).
  func copy(_ pace: Pace) -> NodePool {
    var copy = NodePool(keyed: keyed)
    (copy.used, copy.reserved, copy.free) = (used, used, free)
    guard let memory, used > 0 else { return copy }
    let nodes = resized(nil, byteCount: Int(used) * Layout.stride)
    let keys = keyed ? resized(nil, byteCount: Int(used) * keyBytes).assumingMemoryBound(to: UInt64.self) : nil
    for node in 0..<Int(used) {
      (nodes + node * Layout.stride).copyMemory(from: memory + node * Layout.stride, byteCount: Layout.stride)
      if let keys, let keyMemory {
        (keys + node * Layout.capacity).update(from: keyMemory + node * Layout.capacity, count: Layout.capacity)
      }
      if node & 3 == 0 { pace.spend(4) }
    }
    copy.memory = nodes
    copy.keyMemory = keys
    return copy
  }

  var byteCount: Int { Int(reserved) * (Layout.stride + (keyed ? keyBytes : 0)) }
  private var keyBytes: Int { Layout.capacity * MemoryLayout<UInt64>.stride }

  private mutating func grow() {
    reserved = Swift.max(1, reserved * 2)
    memory = resized(memory, byteCount: Int(reserved) * Layout.stride)
    if keyed {
      keyMemory = resized(keyMemory, byteCount: Int(reserved) * keyBytes).assumingMemoryBound(to: UInt64.self)
    }
  }
}

/// An inner node of a position tree. In a keyed tree each child has the least key below it.
///
/// A node is a header, the ids of up to `capacity` children, and for each child the number of items of the node before it.
/// With sums instead of counts the rank of a child is one load. The starts past the last child are `UInt32.max`, so that
/// the child of a row is found by a scan without branches.
enum InnerNode: NodeLayout {
  struct Header {
    var count: UInt16
    /// The index of the node in its parent.
    var slot: UInt16
    var parent: NodeID
    /// The number of items below the node.
    var size: UInt32
    /// The height above the leaves: 1 if the children are leaves.
    var level: UInt32
  }

  static let capacity = 64
  static let stride = MemoryLayout<Header>.stride + 2 * capacity * MemoryLayout<UInt32>.stride
}

typealias InnerPool = NodePool<InnerNode>

extension NodePool where Layout == InnerNode {
  @inline(__always)
  func header(_ node: NodeID) -> UnsafeMutablePointer<InnerNode.Header> {
    base(node).assumingMemoryBound(to: InnerNode.Header.self)
  }

  @inline(__always)
  func children(_ node: NodeID) -> UnsafeMutablePointer<NodeID> {
    (base(node) + MemoryLayout<InnerNode.Header>.stride).assumingMemoryBound(to: NodeID.self)
  }

  /// For each child, the number of items of the node before it; then `UInt32.max`.
  @inline(__always)
  func starts(_ node: NodeID) -> UnsafeMutablePointer<UInt32> { children(node) + InnerNode.capacity }

  /// For each child, the key of its first item. Of a keyed pool only.
  @inline(__always)
  func firstKeys(_ node: NodeID) -> UnsafeMutablePointer<UInt64> { keys(node) }

  /// Sets the number of children of a node, and resets the starts past the last child.
  func setCount(of node: NodeID, _ count: Int) {
    assert(count >= 0 && count <= InnerNode.capacity)
    let old = Int(header(node).pointee.count)
    if count < old { (starts(node) + count).update(repeating: .max, count: old - count) }
    header(node).pointee.count = UInt16(truncatingIfNeeded: count)
  }

  /// The index of the last child that begins at `row` or before it. All starts are compared, without branches. O(1).
  @inline(__always)
  func slot(of node: NodeID, row: UInt32) -> Int {
    let starts = starts(node)
    var reached: UInt32 = 0
    var slot = 0
    while slot < InnerNode.capacity {
      reached &+= starts[slot] <= row ? 1 : 0
      slot &+= 1
    }
    return Int(truncatingIfNeeded: reached) &- 1
  }

  /// Returns a node without children or parent. Amortized O(1).
  mutating func allocate(level: UInt32) -> NodeID {
    let node = allocateNode()
    header(node).initialize(to: .init(count: 0, slot: 0, parent: .none, size: 0, level: level))
    starts(node).initialize(repeating: .max, count: InnerNode.capacity)
    return node
  }
}

/// A leaf of a position tree: a header and up to `capacity` items, in 512 bytes. In a keyed tree each item has a key.
enum Leaf: NodeLayout {
  struct Header {
    var count: UInt16
    var slot: UInt16
    var parent: NodeID
    var previous: NodeID
    var next: NodeID
  }

  static let capacity = 124
  static let stride = MemoryLayout<Header>.stride + capacity * MemoryLayout<UInt32>.stride
}

typealias LeafPool = NodePool<Leaf>

extension NodePool where Layout == Leaf {
  @inline(__always)
  func header(_ leaf: NodeID) -> UnsafeMutablePointer<Leaf.Header> {
    base(leaf).assumingMemoryBound(to: Leaf.Header.self)
  }

  @inline(__always)
  func items(_ leaf: NodeID) -> UnsafeMutablePointer<UInt32> {
    (base(leaf) + MemoryLayout<Leaf.Header>.stride).assumingMemoryBound(to: UInt32.self)
  }

  /// Returns an empty leaf without parent or neighbours. Amortized O(1).
  mutating func allocate() -> NodeID {
    let leaf = allocateNode()
    header(leaf).initialize(to: .init(count: 0, slot: 0, parent: .none, previous: .none, next: .none))
    return leaf
  }
}

/// Resizes a block of memory. Running out of memory ends the process, as elsewhere in Swift.
func resized(_ memory: UnsafeMutableRawPointer?, byteCount: Int) -> UnsafeMutableRawPointer {
  guard let result = realloc(memory, byteCount) else { preconditionFailure("out of memory") }
  return result
}

/// A map from handles to their leaves, in chunks: growing moves nothing, and handles without items take no memory.
///
/// Invariant: a chunk has `chunkSize` entries; only if `capacity` is less, the first one has so many and is the only one. Items
/// from `capacity` on, and those of missing chunks, are in no leaf.
struct LeafTable {
  private typealias Chunk = UnsafeMutablePointer<NodeID>
  private static let chunkBits = 12
  private static let chunkSize = 1 << chunkBits

  private var chunks: UnsafeMutablePointer<Chunk?>?
  /// The number of chunks, missing ones included, for which `chunks` has room.
  private var places = 0
  private var capacity = 0

  /// The leaf of `item`; `.none` if it is in no leaf.
  @inline(__always)
  subscript(item: UInt32) -> NodeID { place(of: item)?.pointee ?? .none }

  /// The address of the entry of `item`; nil if it has none.
  @inline(__always)
  func place(of item: UInt32) -> UnsafePointer<NodeID>? {
    let index = Int(truncatingIfNeeded: item)
    guard index < capacity, let chunk = chunks.unsafelyUnwrapped[index &>> Self.chunkBits] else { return nil }
    return UnsafePointer(chunk + (index & (Self.chunkSize &- 1)))
  }

  @inline(__always)
  func set(_ item: UInt32, _ leaf: NodeID) {
    let index = Int(truncatingIfNeeded: item)
    assert(place(of: item) != nil, "the item is not reserved")
    chunks.unsafelyUnwrapped[index &>> Self.chunkBits].unsafelyUnwrapped[index & (Self.chunkSize &- 1)] = leaf
  }

  @inline(__always)
  mutating func reserve(_ item: UInt32) { if place(of: item) == nil { extend(to: Int(truncatingIfNeeded: item)) } }

  @inline(never)
  private mutating func extend(to index: Int) {
    let number = index &>> Self.chunkBits
    if number >= places { makePlaces(max(number &+ 1, places &* 2)) }
    if capacity < Self.chunkSize, number == 0 || capacity > 0 {
      resizeFirst(number > 0 ? Self.chunkSize : min(Self.chunkSize, max(index &+ 1, capacity &* 2, 16)))
      if number == 0 { return }
    }
    capacity = max(capacity, (number &+ 1) &* Self.chunkSize)
    chunks.unsafelyUnwrapped[number] = Self.resized(nil, from: 0, to: Self.chunkSize)
  }

  private mutating func makePlaces(_ count: Int) {
    let memory = FeedModel.resized(chunks, byteCount: count * MemoryLayout<Chunk?>.stride)
    let larger = memory.assumingMemoryBound(to: Chunk?.self)
    (larger + places).initialize(repeating: nil, count: count - places)
    (chunks, places) = (larger, count)
  }

  private mutating func resizeFirst(_ count: Int) {
    chunks.unsafelyUnwrapped[0] = Self.resized(chunks.unsafelyUnwrapped[0], from: capacity, to: count)
    capacity = count
  }

  private static func resized(_ chunk: Chunk?, from former: Int, to count: Int) -> Chunk {
    let memory = FeedModel.resized(chunk, byteCount: count * MemoryLayout<NodeID>.stride)
    let larger = memory.assumingMemoryBound(to: NodeID.self)
    (larger + former).initialize(repeating: .none, count: count - former)
    return larger
  }

  /// Reserves the entries of items below `count` if they are few, so that there are no more.
  mutating func reserve(first count: Int) {
    if count > capacity && count <= Self.chunkSize { reserve(UInt32(count - 1)) }
  }

  /// The number of entries of a chunk that is not missing.
  private var entriesPerChunk: Int { min(capacity, Self.chunkSize) }

  var byteCount: Int {
    (0..<places).reduce(places * MemoryLayout<Chunk?>.stride) { sum, number in
      chunks?[number] == nil ? sum : sum + entriesPerChunk * MemoryLayout<NodeID>.stride
    }
  }

  /// Returns a map with the same entries. O(entries).
  func copy(_ pace: Pace) -> LeafTable {
    var copy = LeafTable()
    guard let chunks else { return copy }
    copy.makePlaces(places)
    copy.capacity = capacity
    for number in 0..<places {
      guard let chunk = chunks[number] else { continue }
      let bytes = entriesPerChunk * MemoryLayout<NodeID>.stride
      let memory = FeedModel.resized(nil, byteCount: bytes)
      memory.copyMemory(from: chunk, byteCount: bytes)
      copy.chunks?[number] = memory.assumingMemoryBound(to: NodeID.self)
      pace.spend(4)
    }
    return copy
  }

  mutating func removeAll() {
    for number in 0..<places { free(chunks?[number]) }
    free(chunks)
    self = LeafTable()
  }
}
