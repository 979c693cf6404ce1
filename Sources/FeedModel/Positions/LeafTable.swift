import Glibc

/// For every item handle the leaf that it stands in: a flat table, grown on demand to the greatest handle asked to be kept.
struct LeafTable {
  private var memory: UnsafeMutablePointer<NodeID>?
  private var capacity = 0

  /// The leaf of `item`; `.none` when it is in no leaf.
  @inline(__always)
  subscript(item: UInt32) -> NodeID {
    let index = Int(truncatingIfNeeded: item)
    return index < capacity ? memory.unsafelyUnwrapped[index] : .none
  }

  /// Makes `subscript` of `item`, and what `table` gives at its place, good to be written.
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

  /// The table itself, good until the next `reserve`. Its entries are only those of items that were reserved.
  @inline(__always)
  var table: UnsafeMutablePointer<NodeID> { memory.unsafelyUnwrapped }

  /// Forgets every item and gives the memory back.
  mutating func removeAll() {
    Glibc.free(memory)
    memory = nil
    capacity = 0
  }
}
