/// The elements of one feed, addressed by small handles that stay the same while an element lives.
///
/// Guarded by the engine's thread. Records lie in one raw array, so that a handle finds its record with one addition.
public final class ElementTable {
  struct Record {
    var text: ElementText
    /// Neighbours in the order of change; `none` at either end. A free record uses `older` for the free list.
    var older: UInt32
    var newer: UInt32
    var hash: UInt32
  }

  static let none = UInt32.max

  private(set) var records: UnsafeMutablePointer<Record>
  private(set) var capacity: Int
  private var used = 0
  private var firstFree = ElementTable.none
  private var arrivals: UInt64 = 0
  /// Living elements.
  private(set) var count = 0
  /// Bytes of the living elements' versions.
  private(set) var bytes = 0
  /// The ends of the order of change.
  private(set) var oldest = ElementTable.none
  private(set) var newest = ElementTable.none

  init() {
    capacity = 16
    records = .allocate(capacity: capacity)
  }

  deinit {
    forEach { handle in records[Int(handle)].text.release() }
    records.deallocate()
  }

  /// The current version of a living element.
  public func text(of handle: UInt32) -> ElementText {
    records[Int(handle)].text
  }

  /// Adds an element as the newest; takes over the reference to `text`. O(1) amortised.
  func add(_ text: ElementText, hash: UInt32, at now: Instant) -> UInt32 {
    let handle = takeFreeHandle()
    (records + Int(handle)).initialize(
      to: Record(text: text, older: Self.none, newer: Self.none, hash: hash))
    text.owner = handle
    text.changedAt = now
    text.arrival = arrivals
    arrivals &+= 1
    count &+= 1
    bytes &+= text.footprint
    link(handle, before: Self.none)
    return handle
  }

  /// Takes an element out of the order and the counts, but keeps its handle and its text until `free`, so that the
  /// removal can be undone.
  func retire(_ handle: UInt32) {
    unlink(handle)
    count &-= 1
    bytes &-= records[Int(handle)].text.footprint
  }

  /// Undoes `retire`; `newer` is the neighbour it stood before.
  func revive(_ handle: UInt32, before newer: UInt32) {
    count &+= 1
    bytes &+= records[Int(handle)].text.footprint
    link(handle, before: newer)
  }

  /// Gives a retired handle back and lets go of its text.
  func free(_ handle: UInt32) {
    records[Int(handle)].text.release()
    records[Int(handle)].older = firstFree
    firstFree = handle
  }

  /// Exchanges the version of an element, which carries its own `changedAt`, and returns the one before, whose reference
  /// goes to the caller. O(1).
  func exchange(_ handle: UInt32, _ text: ElementText) -> ElementText {
    let before = records[Int(handle)].text
    bytes &+= text.footprint &- before.footprint
    records[Int(handle)].text = text
    text.owner = handle
    text.arrival = before.arrival
    return before
  }

  /// Puts an element in the order of change just before `newer`, or at its new end.
  func reorder(_ handle: UInt32, before newer: UInt32, changedAt: Instant) {
    records[Int(handle)].text.changedAt = changedAt
    guard newer != handle, records[Int(handle)].newer != newer else { return }
    unlink(handle)
    link(handle, before: newer)
  }

  /// Every living element, from the longest unchanged on.
  func forEach(_ body: (UInt32) -> Void) {
    var next = oldest
    while next != Self.none {
      let handle = next
      next = records[Int(handle)].newer
      body(handle)
    }
  }

  /// Makes an element that was stored before the one that arrived then; later ones arrive after it.
  func restoreArrival(_ handle: UInt32, _ arrival: UInt64) {
    records[Int(handle)].text.arrival = arrival
    arrivals = max(arrivals, arrival &+ 1)
  }

  /// Makes an element the one that changed last.
  func moveToNewest(_ handle: UInt32) {
    unlink(handle)
    link(handle, before: Self.none)
  }

  private func takeFreeHandle() -> UInt32 {
    if firstFree != Self.none {
      let handle = firstFree
      firstFree = records[Int(handle)].older
      return handle
    }
    if used == capacity { grow() }
    used &+= 1
    return UInt32(used &- 1)
  }

  private func grow() {
    let larger = UnsafeMutablePointer<Record>.allocate(capacity: capacity &* 2)
    larger.moveInitialize(from: records, count: used)
    records.deallocate()
    records = larger
    capacity &*= 2
  }

  private func link(_ handle: UInt32, before newer: UInt32) {
    let older = newer == Self.none ? newest : records[Int(newer)].older
    records[Int(handle)].older = older
    records[Int(handle)].newer = newer
    if older == Self.none { oldest = handle } else { records[Int(older)].newer = handle }
    if newer == Self.none { newest = handle } else { records[Int(newer)].older = handle }
  }

  private func unlink(_ handle: UInt32) {
    let (older, newer) = (records[Int(handle)].older, records[Int(handle)].newer)
    if older == Self.none { oldest = newer } else { records[Int(older)].newer = newer }
    if newer == Self.none { newest = older } else { records[Int(newer)].older = older }
  }
}

/// The orders of arrival and of change.
extension ElementTable {
  /// The living elements in the order in which they arrived. O(n log n), or O(n) when they are in that order already.
  func inOrderOfArrival() -> [UInt32] {
    sorted { $0.arrival }
  }

  /// So many of the elements that changed last longest ago, or all; ascending by the time of change. O(count).
  func longestUnchanged(_ count: Int) -> [UInt32] {
    var found: [UInt32] = []
    var next = oldest
    while found.count < count, next != Self.none {
      found.append(next)
      next = records[Int(next)].newer
    }
    return found
  }

  /// Puts the order of change right after elements were added in another one. O(n log n), or O(n) when it is right.
  func sortByChange() {
    for handle in sorted(by: { $0.changedAt.nanoseconds }) { moveToNewest(handle) }
  }

  /// The living elements, ascending by a number of theirs; those with equal ones by arrival.
  private func sorted(by number: (ElementText) -> UInt64) -> [UInt32] {
    var keys: [(number: UInt64, arrival: UInt64, handle: UInt32)] = []
    keys.reserveCapacity(count)
    var isSorted = true
    forEach { handle in
      let text = records[Int(handle)].text
      let key = (number: number(text), arrival: text.arrival, handle: handle)
      if let last = keys.last, (key.number, key.arrival) < (last.number, last.arrival) { isSorted = false }
      keys.append(key)
    }
    if !isSorted { keys.sort { ($0.number, $0.arrival) < ($1.number, $1.arrival) } }
    return keys.map(\.handle)
  }
}
