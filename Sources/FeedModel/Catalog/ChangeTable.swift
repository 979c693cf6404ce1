import FeedChange

/// The changes of the feeds that the open commit changed. The memory is reused for every commit.
///
/// Invariant: each slot below `count` belongs to one feed, and a feed has at most one slot. All other slots are empty.
/// Slots do not move while a change is derived from others.
struct ChangeTable: ~Copyable {
  /// The change of one source of a derived feed.
  struct SourceEntry {
    let place: Int
    let slot: Int
    /// The number of sections of the source before those of the change.
    let shift: UInt32
  }

  struct Slot {
    var feed: FeedNumber
    var change = Change()
    /// The composed changes of the earlier operations of a transaction.
    var accumulator = ChangeAccumulator()
    /// The sources that changed; only for derived feeds.
    var sources: [SourceEntry] = []
    /// The number of the hint of the operation that made the change; 0 for none.
    var hint = 0
  }

  /// Larger changes release their memory when they are closed.
  private static let keptSize = 65_536

  private var slots: UnsafeMutablePointer<Slot>
  private var capacity: Int
  private(set) var count = 0
  /// The slot of each feed, by feed number; -1 for none.
  private var slotOf: [Int32] = []

  init() {
    capacity = 8
    slots = .allocate(capacity: capacity)
    slots.initialize(repeating: Slot(feed: -1), count: capacity)
  }

  deinit {
    slots.deinitialize(count: capacity)
    slots.deallocate()
  }

  /// The slot with a number below `count`. The pointer is valid until the next slot is opened.
  subscript(slot: Int) -> UnsafeMutablePointer<Slot> {
    assert(slot >= 0 && slot < count, "slot \(slot) is not in use")
    return slots + slot
  }

  /// The slot of a feed; nil if it has none. O(1).
  func find(_ feed: FeedNumber) -> Int? {
    guard feed < slotOf.count, slotOf[feed] >= 0 else { return nil }
    return Int(slotOf[feed])
  }

  /// Returns the slot of a feed, and opens one if it has none. Amortized O(1).
  mutating func open(_ feed: FeedNumber) -> Int {
    while slotOf.count <= feed { slotOf.append(-1) }
    if slotOf[feed] >= 0 { return Int(slotOf[feed]) }
    if count == capacity { grow() }
    slotOf[feed] = Int32(truncatingIfNeeded: count)
    slots[count].feed = feed
    count &+= 1
    return count &- 1
  }

  private mutating func grow() {
    let larger = UnsafeMutablePointer<Slot>.allocate(capacity: capacity * 2)
    larger.moveInitialize(from: slots, count: capacity)
    (larger + capacity).initialize(repeating: Slot(feed: -1), count: capacity)
    slots.deallocate()
    slots = larger
    capacity *= 2
  }

  /// Records that a source of a derived feed changed. The slot of the source must be open.
  mutating func note(_ entry: SourceEntry, for feed: Int) {
    assert(entry.slot < count && entry.slot != feed, "a source has no slot")
    slots[feed].sources.append(entry)
  }

  /// The recorded changes of the sources of the feed in a slot, ascending by place.
  func sources(of slot: Int) -> SourceChanges {
    if slots[slot].sources.count > 1 { slots[slot].sources.sort { $0.place < $1.place } }
    return SourceChanges(slots: slots, slot: slot)
  }

  /// Empties the slots from `first` on and detaches them from their feeds.
  mutating func close(from first: Int = 0) {
    while count > first {
      count &-= 1
      let slot = slots + count
      slotOf[slot.pointee.feed] = -1
      slot.pointee.feed = -1
      if !slot.pointee.change.isEmpty { empty(&slot.pointee.change) }
      if !slot.pointee.accumulator.isEmpty { slot.pointee.accumulator = ChangeAccumulator() }
      if !slot.pointee.sources.isEmpty { slot.pointee.sources.removeAll(keepingCapacity: true) }
      slot.pointee.hint = 0
    }
  }

  private func empty(_ change: inout Change) {
    if change.size > Self.keptSize { change = Change() } else { change.removeAll(keepingCapacity: true) }
  }

  /// O(slots + feeds).
  func checkInvariants() {
    for slot in 0..<capacity {
      if slot < count {
        precondition(find(slots[slot].feed) == slot, "a feed has another slot")
      } else {
        precondition(slots[slot].feed == -1 && slots[slot].change.isEmpty, "a free slot is not empty")
        precondition(slots[slot].accumulator.isEmpty && slots[slot].hint == 0, "a free slot is not empty")
        precondition(slots[slot].sources.isEmpty, "a free slot has sources")
      }
    }
    precondition(slotOf.count { $0 >= 0 } == count, "a feed has the slot of another")
  }
}

/// The changes of those sources of a derived feed that the open commit changed. Valid during one call of `derive`.
///
///     changes.forEach { place, shift, change in … }
struct SourceChanges: ~Copyable {
  private let slots: UnsafeMutablePointer<ChangeTable.Slot>?
  private let slot: Int

  fileprivate init(slots: UnsafeMutablePointer<ChangeTable.Slot>, slot: Int) {
    self.slots = slots
    self.slot = slot
  }

  /// An empty list: no source changed.
  init() {
    slots = nil
    slot = 0
  }

  /// Whether all changes only replace elements of rows.
  var onlyUpdates: Bool {
    guard let slots else { return true }
    return slots[slot].sources.allSatisfy { slots[$0.slot].change.onlyUpdates }
  }

  /// Calls `body` for each source that changed, ascending by place. `shift` is the number of sections of the source
  /// before those of `change`.
  @inline(__always)
  func forEach(_ body: (_ place: Int, _ shift: UInt32, _ change: borrowing Change) -> Void) {
    guard let slots else { return }
    for index in slots[slot].sources.indices {
      let entry = slots[slot].sources[index]
      // Swapped out for the call: a copy would retain every list of the change.
      var change = Change()
      swap(&change, &slots[entry.slot].change)
      body(entry.place, entry.shift, change)
      swap(&change, &slots[entry.slot].change)
    }
  }
}
