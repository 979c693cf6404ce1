import Glibc

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
