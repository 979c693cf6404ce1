import FeedChange
import Glibc

/// The elements of one feed, addressed by handles: small numbers that do not change while an element lives.
///
/// The versions are in one raw array, so that one addition finds a handle. Living elements are linked in the order of
/// change once it is needed (``keepOrder(_:)``). Invariant: `count`, `bytes` and what the account is charged are those
/// of the living elements; the `owner` of a text is its handle; others are not linked.
///
/// Not safe for use by several threads at once.
public final class ElementTable {
  static let none = UInt32.max

  /// For each handle the current version, or what a free handle leads to.
  private var places: UnsafeMutablePointer<Place>
  private var capacity: Int
  private var used = 0
  /// The number after the greatest handle that was ever used.
  var endHandle: Int { used }
  private var firstFree = ElementTable.none
  private var arrivals: UInt64 = 0
  /// The number of living elements.
  private(set) var count = 0
  /// The bytes of the living elements.
  private(set) var bytes = 0
  /// The bytes of the living elements and of the table.
  var memory: Int { bytes + capacity * MemoryLayout<Place>.stride + (order?.byteCount ?? 0) }
  /// The bytes of the longest element that the table ever had.
  private(set) var longest = 0
  /// The order of change; nil until it is needed.
  private var order: ChangeOrder?
  /// The account that is charged for the elements; nil if none is. Accounts live as long as their catalog.
  private var account: Unmanaged<Account>?
  /// Takes over the elements when the table is freed; without it they are freed at once.
  var discarded: DiscardedElements?
  #if CHECK_INVARIANTS
    private var mutations = 0
  #endif

  /// The address of a version, a multiple of 16, plus 2 if it is retired; if free, twice the next free handle plus 1.
  private struct Place {
    private(set) var bits: UInt

    init(_ text: ElementText) { bits = text.bitPattern }
    init(nextFree: UInt32) { bits = UInt(nextFree) &<< 1 | 1 }

    var isFree: Bool { bits & 1 != 0 }
    var isLiving: Bool { bits & 3 == 0 }
    var nextFree: UInt32 { UInt32(truncatingIfNeeded: bits &>> 1) }
    mutating func retire() { bits |= 2 }
    mutating func revive() { bits &= ~2 }

    /// The version. Only of a place that is not free.
    @inline(__always)
    var text: ElementText { ElementText(bitPattern: bits & ~2).unsafelyUnwrapped }
  }

  init() {
    capacity = 16
    places = Self.room(nil, capacity)
  }

  deinit {
    var next = 0
    /// Frees up to so many elements, and returns whether none is left.
    let free = { [places, used] (count: Int) in
      let end = count < used &- next ? next &+ count : used
      while next < end {
        if !places[next].isFree { places[next].text.release() }
        next += 1
      }
      if next == used { Glibc.free(places) }
      return next == used
    }
    if count >= DiscardedElements.many, let discarded { discarded.add(free) } else { _ = free(.max) }
  }

  /// Returns a table with the same handles and texts, in the same order. The texts are shared. O(n).
  func copy(_ pace: Pace) -> ElementTable {
    let copy = ElementTable()
    copy.reserve(capacity)
    for handle in 0..<used {
      (copy.places + handle).initialize(to: places[handle])
      if !places[handle].isFree { places[handle].text.retain() }
      if handle & 7 == 0 { pace.spend() }
    }
    (copy.used, copy.firstFree, copy.arrivals) = (used, firstFree, arrivals)
    (copy.count, copy.bytes, copy.order) = (count, bytes, order?.copy(used, pace))
    copy.longest = longest
    copy.discarded = discarded
    return copy
  }

  /// The current version of a living element. O(1).
  @inline(__always)
  public func text(of handle: UInt32) -> ElementText { places[Int(handle)].text }

  @inline(__always)
  func place(of handle: UInt32) -> UnsafeRawPointer { UnsafeRawPointer(places + Int(handle)) }

  /// The address of the version of an element. For a handle that is free it has no meaning.
  @inline(__always)
  func address(of handle: UInt32) -> UnsafeRawPointer {
    UnsafeRawPointer(bitPattern: places[Int(handle)].bits).unsafelyUnwrapped
  }

  /// Adds an element as the newest. Takes ownership of `text`. Amortized O(1).
  func add(_ text: ElementText, at moment: Instant) -> UInt32 {
    let handle = takeFreeHandle()
    (places + Int(handle)).initialize(to: Place(text))
    text.owner = handle
    text.changedAt = moment
    text.arrival = arrivals
    arrivals &+= 1
    let footprint = text.footprint
    count &+= 1
    bytes &+= footprint
    longest = max(longest, footprint)
    charge(1, footprint)
    order?.link(handle, before: Self.none)
    sampleInvariants()
    return handle
  }

  /// Removes an element from the order and the counts. Its handle and text stay until `free`, for `revive`.
  func retire(_ handle: UInt32) {
    order?.unlink(handle)
    places[Int(handle)].retire()
    let footprint = text(of: handle).footprint
    count &-= 1
    bytes &-= footprint
    charge(-1, 0 &- footprint)
    sampleInvariants()
  }

  /// Undoes `retire`. `newer` is the neighbour that followed the element; `none` if there is no order.
  func revive(_ handle: UInt32, before newer: UInt32) {
    places[Int(handle)].revive()
    let footprint = text(of: handle).footprint
    count &+= 1
    bytes &+= footprint
    charge(1, footprint)
    order?.link(handle, before: newer)
    sampleInvariants()
  }

  func free(_ handle: UInt32) {
    text(of: handle).release()
    places[Int(handle)] = Place(nextFree: firstFree)
    firstFree = handle
  }

  /// Replaces the text of an element by one with its own `changedAt`. Returns the old one, which the caller owns. O(1).
  func exchange(_ handle: UInt32, _ text: ElementText) -> ElementText {
    let before = self.text(of: handle)
    let footprint = text.footprint
    let difference = footprint &- before.footprint
    bytes &+= difference
    longest = max(longest, footprint)
    charge(0, difference)
    places[Int(handle)] = Place(text)
    text.owner = handle
    text.arrival = before.arrival
    sampleInvariants()
    return before
  }

  /// Calls `body` with each living element: in the order of change, the oldest first, if that is kept, otherwise by handle.
  func forEach(_ body: (UInt32) -> Void) {
    if let order { return order.forEach(body) }
    for handle in 0..<used where places[handle].isLiving { body(UInt32(handle)) }
  }

  /// Sets the arrival number of a restored element. Later elements get greater numbers.
  func restoreArrival(_ handle: UInt32, _ arrival: UInt64) {
    text(of: handle).arrival = arrival
    arrivals = max(arrivals, arrival &+ 1)
  }

  private func takeFreeHandle() -> UInt32 {
    if firstFree != Self.none {
      let handle = firstFree
      firstFree = places[Int(handle)].nextFree
      return handle
    }
    if used == capacity { reserve(capacity &* 2) }
    used &+= 1
    return UInt32(used &- 1)
  }

  func reserve(_ count: Int) {
    if count <= capacity { return }
    // The system moves the pages of a large block without copying them, and unwritten pages take no memory.
    places = Self.room(places, count)
    capacity = count
    order?.reserve(count)
  }

  private static func room(_ places: UnsafeMutablePointer<Place>?, _ count: Int) -> UnsafeMutablePointer<Place> {
    resized(places, byteCount: count * MemoryLayout<Place>.stride).assumingMemoryBound(to: Place.self)
  }
}

/// The order of change, which only the retention of elements needs.
extension ElementTable {
  /// The first element in the order of change; `none` if there is none or the order is not kept.
  var oldest: UInt32 { order?.oldest ?? Self.none }

  /// The neighbour of an element in the order of change that changed next; `none` if there is none or the order is not kept.
  @inline(__always)
  func newer(than handle: UInt32) -> UInt32 { order?.newer(than: handle) ?? Self.none }

  /// Keeps the order of change from now on, sorted by the times of change, then of arrival. O(n log n); O(n) if sorted.
  func keepOrder(_ pace: Pace = Pace()) {
    let handles = sorted(pace) { $0.changedAt.nanoseconds }
    let order = ChangeOrder(capacity: capacity)
    for (place, handle) in handles.enumerated() {
      order.link(handle, before: Self.none)
      if place & 7 == 0 { pace.spend() }
    }
    self.order = order
  }

  /// Sorts the order of change, if it is kept, after elements were added in another order. O(n log n); O(n) if sorted.
  func sortByChange(_ pace: Pace = Pace()) { if order != nil { keepOrder(pace) } }

  /// Moves an element in the order of change to just before `newer`, or to the newest end.
  func reorder(_ handle: UInt32, before newer: UInt32, changedAt: Instant) {
    text(of: handle).changedAt = changedAt
    order?.move(handle, before: newer)
    sampleInvariants()
  }

  /// The first `count` elements in the order of change, which is kept. O(count).
  func longestUnchanged(_ count: Int) -> [UInt32] {
    var found: [UInt32] = []
    var next = oldest
    while found.count < count, next != Self.none {
      found.append(next)
      next = newer(than: next)
    }
    return found
  }

  /// The living elements in the order of arrival. O(n log n); O(n) if arrival and change have the same order.
  func inOrderOfArrival(_ pace: Pace = Pace()) -> [UInt32] { sorted(pace) { $0.arrival } }

  /// The living elements in ascending order of `number`, then of arrival.
  private func sorted(_ pace: Pace, by number: (ElementText) -> UInt64) -> [UInt32] {
    var keys: [(number: UInt64, arrival: UInt64, handle: UInt32)] = []
    keys.reserveCapacity(count)
    var isSorted = true
    forEach { handle in
      let text = text(of: handle)
      let key = (number: number(text), arrival: text.arrival, handle: handle)
      if let last = keys.last, (key.number, key.arrival) < (last.number, last.arrival) { isSorted = false }
      keys.append(key)
      if handle & 7 == 0 { pace.spend() }
    }
    if !isSorted { keys.sort(pace) { ($0.number, $0.arrival) < ($1.number, $1.arrival) } }
    return keys.map(pace, \.handle)
  }
}

/// The account that the elements are charged to.
extension ElementTable {
  @inline(__always)
  private func charge(_ elements: Int, _ bytes: Int) {
    if let account { account._withUnsafeGuaranteedRef { $0.add(elements: elements, bytes: bytes) } }
  }

  /// Whether the account has room for an element; see `Account.hasRoom(bytes:isNew:_:)`.
  @inline(__always)
  func hasRoom(bytes: Int, isNew: Bool, _ limits: Limits) -> Bool {
    guard let account else { return true }
    return account._withUnsafeGuaranteedRef { $0.hasRoom(bytes: bytes, isNew: isNew, limits) }
  }

  /// Why ``hasRoom(bytes:isNew:_:)`` is false.
  func noRoom(bytes: Int, isNew: Bool, _ limits: Limits) -> FeedError {
    account?.takeUnretainedValue().noRoom(bytes: bytes, isNew: isNew, limits)
      ?? .internalError(reason: "elements without an account have a limit")
  }

  /// Charges the elements to an account from now on.
  func openAccount(_ account: Account) {
    assert(self.account == nil, "the elements have an account already")
    self.account = .passUnretained(account)
    charge(count, bytes)
  }

  func closeAccount() {
    charge(0 &- count, 0 &- bytes)
    account = nil
  }

  /// Takes the place of a table in its account.
  func moveAccount(from other: ElementTable) {
    guard let account = other.account else { return }
    other.closeAccount()
    openAccount(account.takeUnretainedValue())
  }

  @inline(__always)
  private func sampleInvariants() {
    #if CHECK_INVARIANTS
      mutations &+= 1
      if count <= 64 || mutations % 4096 == 0 { checkInvariants() }
    #endif
  }

  #if CHECK_INVARIANTS
    /// Checks the counts, the owners, the free handles and the order of change. O(n).
    func checkInvariants() {
      var (free, length) = (firstFree, 0)
      while free != Self.none {
        length += 1
        precondition(Int(free) < used && length + count <= used && places[Int(free)].isFree, "the free list is wrong")
        free = places[Int(free)].nextFree
      }
      var (present, living, total) = (0, 0, 0)
      for handle in 0..<used where !places[handle].isFree {
        precondition(places[handle].text.owner == handle, "the text of an element has another owner")
        present += 1
        if !places[handle].isLiving { continue }
        living += 1
        total += places[handle].text.footprint
      }
      precondition(present + length == used, "a free handle is not in the free list")
      precondition(living == count && total == bytes, "the counts of elements are wrong")
      guard let order else { return }
      var linked = 0
      order.checkInvariants { handle in
        precondition(Int(handle) < used && places[Int(handle)].isLiving, "an element that is gone is linked")
        linked += 1
        precondition(linked <= count, "more elements are linked than counted")
      }
      precondition(linked == count, "an element is not linked")
    }
  #endif
}
