import Glibc

/// A map from item handles to their leaves: a flat array that grows to the greatest reserved handle.
struct LeafTable {
  private var memory: UnsafeMutablePointer<NodeID>?
  private var capacity = 0

  /// The leaf of `item`; `.none` if it is in no leaf.
  @inline(__always)
  subscript(item: UInt32) -> NodeID {
    let index = Int(truncatingIfNeeded: item)
    return index < capacity ? memory.unsafelyUnwrapped[index] : .none
  }

  /// Reserves an entry for `item`.
  mutating func reserve(_ item: UInt32) {
    let index = Int(truncatingIfNeeded: item)
    if index < capacity { return }
    let newCapacity = Swift.max(index + 1, capacity * 2, 16)
    let bytes = newCapacity * MemoryLayout<NodeID>.stride
    let table = resized(memory, byteCount: bytes).assumingMemoryBound(to: NodeID.self)
    (table + capacity).initialize(repeating: .none, count: newCapacity - capacity)
    memory = table
    capacity = newCapacity
  }

  /// The entries of the reserved items. Valid until the next `reserve`.
  @inline(__always)
  var table: UnsafeMutablePointer<NodeID> { memory.unsafelyUnwrapped }

  /// Returns a map with the same entries. O(entries).
  func copy(_ pace: Pace) -> LeafTable {
    var copy = LeafTable()
    guard let memory else { return copy }
    let table = resized(nil, byteCount: capacity * MemoryLayout<NodeID>.stride).assumingMemoryBound(to: NodeID.self)
    for index in 0..<capacity {
      table[index] = memory[index]
      if index & 1023 == 0 { pace.spend() }
    }
    copy.memory = table
    copy.capacity = capacity
    return copy
  }

  /// Removes all items and frees the memory.
  mutating func removeAll() {
    Glibc.free(memory)
    memory = nil
    capacity = 0
  }
}
