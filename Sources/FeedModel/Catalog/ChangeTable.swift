import FeedChange

/// The changes of the feeds that the open commit changed. The memory is reused for every commit.
///
/// Invariant: slots below `count` belong to one feed each, others are empty; none moves while a change is derived.
struct ChangeTable: ~Copyable {
  /// The change of one source of a derived feed.
  struct SourceEntry {
    let place: Int
    let slot: Int
    /// The number of sections of the source before those of the change.
    let shift: UInt32
    /// The next entry of the same derived feed; -1 for none.
    fileprivate var next = -1

    init(place: Int, slot: Int, shift: UInt32) { (self.place, self.slot, self.shift) = (place, slot, shift) }
  }

  struct Slot {
    var feed: FeedNumber
    var change = Change()
    /// The composed changes of the earlier operations of a transaction.
    var accumulator = ChangeAccumulator()
    /// The first of the sources that changed; -1 for none. Only derived feeds have some.
    fileprivate var firstSource = -1
    /// The last of the sources that changed; -1 for none.
    fileprivate var lastSource = -1
    /// Whether the sources are ascending by place.
    fileprivate var isSorted = true
    /// The number of the hint of the operation that made the change; 0 for none.
    var hint = 0
    /// The slot whose change this feed shares, with `sharedShift` added to its sections; -1 if the change is its own.
    fileprivate var sharedSlot = -1
    fileprivate var sharedShift: UInt32 = 0
    /// The entries for which `change` keeps memory between commits.
    fileprivate var kept = 0
  }

  private var slots: UnsafeMutablePointer<Slot>
  private var capacity: Int
  private(set) var count = 0
  /// The slot of each feed, by feed number; -1 for none.
  private var slotOf: [Int32] = []
  /// The entries for which the changes of all slots keep memory between commits.
  private(set) var kept = 0
  /// The sources of all derived feeds, in lists.
  private var sources: [SourceEntry] = []

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

  /// Records that a source of a derived feed changed. The slot of the source must be open. Amortized O(1).
  mutating func note(_ entry: SourceEntry, for feed: Int) {
    assert(entry.slot < count && entry.slot != feed, "a source has no slot")
    let last = slots[feed].lastSource
    if last < 0 {
      slots[feed].firstSource = sources.count
    } else {
      if entry.place < sources[last].place { slots[feed].isSorted = false }
      sources[last].next = sources.count
    }
    slots[feed].lastSource = sources.count
    sources.append(entry)
  }

  /// Calls `body` with the recorded changes of the sources of the feed in a slot, ascending by place, and its change. Others may look
  /// for slots meanwhile. The sources are sorted; see ``sortSources(of:)``.
  @inline(__always)
  func derive(
    _ slot: Int, redefiningSince start: Instant?, _ pace: Pace?, _ body: (borrowing SourceChanges, inout Change) -> Void
  ) {
    assert(slots[slot].isSorted, "the sources are not sorted")
    sources.withUnsafeBufferPointer { entries in
      let first = slots[slot].firstSource
      let changes = SourceChanges(slots: slots, first: first < 0 ? nil : entries[first], entries: entries, start, pace)
      body(changes, &slots[slot].change)
    }
  }

  /// Calls `body` with the change of the only source that changed, which is not recorded, and the change of the feed in a slot.
  @inline(__always)
  func derive(_ slot: Int, from source: SourceEntry, _ body: (borrowing SourceChanges, inout Change) -> Void) {
    assert(slots[slot].firstSource < 0, "a source is recorded")
    body(SourceChanges(slots: slots, first: source), &slots[slot].change)
  }

  /// The only source of a derived feed that changed; nil if there are none or several.
  func onlySource(of feed: Int) -> SourceEntry? {
    let first = slots[feed].firstSource
    return first >= 0 && first == slots[feed].lastSource ? sources[first] : nil
  }

  /// Lets the change of a feed be that of a source, with `offset` added to its sections, without a copy.
  mutating func share(_ feed: Int, with source: SourceEntry, offset: Int) {
    assert(slots[source.slot].sharedSlot < 0, "the source shares a change itself")
    slots[feed].sharedSlot = source.slot
    slots[feed].sharedShift = source.shift &+ UInt32(offset)
  }

  /// The slot that has the change of a feed, its own or a shared one, and the number of sections before those of the change.
  func origin(of feed: Int) -> (slot: Int, shift: UInt32) {
    let shared = self[feed].pointee.sharedSlot
    return shared < 0 ? (feed, 0) : (shared, self[feed].pointee.sharedShift)
  }

  /// Sorts the recorded sources of the feed in a slot by place.
  mutating func sortSources(of slot: Int) {
    if slots[slot].isSorted { return }
    var numbers: [Int] = []
    var next = slots[slot].firstSource
    while next >= 0 {
      numbers.append(next)
      next = sources[next].next
    }
    let sorted = numbers.map { sources[$0] }.sorted { $0.place < $1.place }
    // The entries change places; the links stay.
    for (number, entry) in zip(numbers, sorted) {
      let link = sources[number].next
      sources[number] = entry
      sources[number].next = link
    }
    slots[slot].isSorted = true
  }

  /// The change in a slot. The pointer is valid until the next slot is opened.
  func change(_ slot: Int) -> UnsafeMutablePointer<Change> {
    withUnsafeMutablePointer(to: &self[slot].pointee.change) { $0 }
  }

  /// Empties all slots and detaches them from their feeds.
  mutating func close() {
    while count > 0 {
      count &-= 1
      let slot = slots + count
      slotOf[slot.pointee.feed] = -1
      slot.pointee.feed = -1
      if !slot.pointee.change.isEmpty { recycle(slot) }
      if !slot.pointee.accumulator.isEmpty { slot.pointee.accumulator = ChangeAccumulator() }
      slot.pointee.firstSource = -1
      slot.pointee.lastSource = -1
      slot.pointee.isSorted = true
      slot.pointee.hint = 0
      slot.pointee.sharedSlot = -1
      slot.pointee.sharedShift = 0
    }
    if !sources.isEmpty { sources.removeAll(keepingCapacity: sources.capacity <= Change.keptSize) }
  }

  /// Empties the change of a slot. Its memory is kept for the next change unless all slots together would keep too much.
  @inline(__always)
  private mutating func recycle(_ slot: UnsafeMutablePointer<Slot>) {
    let entries = slot.pointee.change.capacity
    kept &-= slot.pointee.kept
    if entries > Change.keptSize || entries > Self.mostKept &- kept {
      slot.pointee.change = Change()
      slot.pointee.kept = 0
    } else {
      slot.pointee.change.removeAll(keepingCapacity: true)
      slot.pointee.kept = entries
      kept &+= entries
    }
  }

  /// The most entries for which all slots together keep memory: about 2 MiB.
  static let mostKept = 4 * Change.keptSize

  /// O(slots + feeds).
  func checkInvariants() {
    precondition(kept <= Self.mostKept && (0..<capacity).reduce(0) { $0 + slots[$1].kept } == kept, "too much is kept")
    for slot in 0..<capacity {
      if slot < count {
        precondition(find(slots[slot].feed) == slot, "a feed has another slot")
      } else {
        precondition(slots[slot].feed == -1 && slots[slot].change.isEmpty, "a free slot is not empty")
        precondition(slots[slot].accumulator.isEmpty && slots[slot].hint == 0, "a free slot is not empty")
        precondition(slots[slot].firstSource == -1 && slots[slot].lastSource == -1, "a free slot has sources")
        precondition(slots[slot].sharedSlot == -1, "a free slot shares a change")
      }
    }
    precondition(slotOf.count { $0 >= 0 } == count, "a feed has the slot of another")
    precondition(count > 0 || sources.isEmpty, "sources are left without slots")
  }
}

extension Change {
  /// Changes with more entries do not keep their memory.
  fileprivate static let keptSize = 65_536

  /// Empties all lists. Their memory is kept for the next change unless it is large.
  mutating func recycle() { if size > Self.keptSize { self = Change() } else { removeAll(keepingCapacity: true) } }

  /// The number of entries for which the lists have memory.
  fileprivate var capacity: Int {
    deleted.capacity &+ added.capacity &+ updated.capacity &+ moves.capacity &+ sectionsDeleted.capacity
      &+ sectionsAdded.capacity &+ transfers.capacity
  }
}

/// Calls `body` with a value that is moved out of its place for the call, because a copy would retain all of its lists.
///
/// `body` must not access the place.
@inline(__always)
func lendValue(of place: UnsafeMutablePointer<Change>, _ body: (borrowing Change) -> Void) {
  let change = place.move()
  body(change)
  place.initialize(to: consume change)
}

/// The changes of those sources of a derived feed that the open commit changed. Valid during one call of `derive`.
///
///     changes.forEach { place, shift, change in … }
struct SourceChanges: ~Copyable {
  /// The time before the first step of the commit, if it redefined feeds; otherwise nil. A row whose element was last changed
  /// until then may be listed as updated only because its type changed.
  let start: Instant?
  /// Lets long work stop, if the commit redefined feeds or may stop; otherwise nil.
  let pace: Pace?
  private let slots: UnsafeMutablePointer<ChangeTable.Slot>?
  /// The first source; the others follow in `entries`.
  private let first: ChangeTable.SourceEntry?
  private let entries: UnsafeBufferPointer<ChangeTable.SourceEntry>

  /// An empty list unless there is a source.
  @inline(__always)
  init(
    slots: UnsafeMutablePointer<ChangeTable.Slot>? = nil, first: ChangeTable.SourceEntry? = nil,
    entries: UnsafeBufferPointer<ChangeTable.SourceEntry> = .init(start: nil, count: 0), _ start: Instant? = nil,
    _ pace: Pace? = nil
  ) {
    (self.slots, self.first, self.entries, self.start, self.pace) = (slots, first, entries, start, pace)
  }

  var onlyUpdates: Bool {
    guard let slots, var entry = first else { return true }
    while true {
      if !slots[entry.slot].change.onlyUpdates { return false }
      if entry.next < 0 { return true }
      entry = entries[entry.next]
    }
  }

  /// Calls `body` for each changed source by place. `shift` is the number of its sections before those of `change`.
  @inline(__always)
  func forEach(_ body: (_ place: Int, _ shift: UInt32, _ change: borrowing Change) -> Void) {
    guard let slots, var entry = first else { return }
    while true {
      lendValue(of: &slots[entry.slot].change) { body(entry.place, entry.shift, $0) }
      if entry.next < 0 { return }
      entry = entries[entry.next]
    }
  }
}
