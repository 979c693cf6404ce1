import FeedEngine

/// All connections of the loop: slots in raw memory, found by the engine's number.
struct ConnectionTable: ~Copyable {
  /// Index: the raw value of the engine's number.
  private var byNumber: UnsafeMutableBufferPointer<ConnectionSlot?>
  /// Slots closed in this turn.
  private var closed: [ConnectionSlot] = []
  private var free: [ConnectionSlot] = []
  /// Connections that are open.
  private(set) var count = 0

  init() {
    byNumber = .allocate(capacity: 64)
    byNumber.initialize(repeating: nil)
  }

  deinit {
    for slot in byNumber.compactMap({ $0 }) + closed + free {
      slot.pointee.input.removeAll()
      slot.deallocate()
    }
    byNumber.deallocate()
  }

  /// Makes a slot for a connection that was accepted. O(1), amortized.
  mutating func open(_ descriptor: Int32, _ id: ConnectionID) -> ConnectionSlot {
    let slot = free.popLast() ?? .allocate(capacity: 1)
    slot.initialize(to: Connection(descriptor: descriptor, id: id))
    if id.rawValue >= byNumber.count { grow(beyond: id.rawValue) }
    byNumber[id.rawValue] = slot
    count &+= 1
    return slot
  }

  /// Marks the slot closed; its memory stays until ``recycle()``. The caller closes the descriptor.
  mutating func close(_ slot: ConnectionSlot) {
    slot.pointee.input.removeAll()
    slot.pointee.descriptor = -1
    byNumber[slot.pointee.id.rawValue] = nil
    closed.append(slot)
    count &-= 1
  }

  /// The slot of an engine's number; nil when it is closed. O(1).
  subscript(id: ConnectionID) -> ConnectionSlot? {
    byNumber.indices.contains(id.rawValue) ? byNumber[id.rawValue] : nil
  }

  /// Makes the slots closed so far available again: no event of the last batch is left.
  mutating func recycle() {
    guard !closed.isEmpty else { return }
    free += closed
    closed.removeAll(keepingCapacity: true)
  }

  /// Every open connection. O(capacity).
  var open: [ConnectionSlot] { byNumber.compactMap { $0 } }

  private mutating func grow(beyond number: Int) {
    let larger = UnsafeMutableBufferPointer<ConnectionSlot?>.allocate(capacity: max(number + 1, byNumber.count * 2))
    larger.initialize(repeating: nil)
    for index in byNumber.indices { larger[index] = byNumber[index] }
    byNumber.deallocate()
    byNumber = larger
  }
}
