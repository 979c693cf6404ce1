import FeedChange
import Glibc

/// The elements of one feed, addressed by handles: small numbers that do not change while an element lives.
///
/// Records are in one raw array, so that a handle is resolved by one addition. The living elements are linked in the order
/// of change. Invariant: `count` and `bytes` are those of the linked elements, and so is what its account is charged for them;
/// each text's `owner` is its handle; free and retired handles are not linked.
///
/// Not safe for use by several threads at once.
public final class ElementTable {
  struct Record {
    var text: ElementText
    /// The neighbours in the order of change; `none` at the ends. `older` of a free record is the next free one.
    var older: UInt32
    var newer: UInt32
    var hash: UInt32
  }

  static let none = UInt32.max

  private(set) var records: UnsafeMutablePointer<Record>
  private(set) var capacity: Int
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
  var memory: Int { bytes + capacity * MemoryLayout<Record>.stride }
  /// The bytes of the longest element that the table ever had.
  private(set) var longest = 0
  /// The first and last element in the order of change.
  private(set) var oldest = ElementTable.none
  private(set) var newest = ElementTable.none
  /// The account that is charged for the elements; nil if none is. Accounts live as long as their catalog.
  private var account: Unmanaged<Account>?
  /// Takes over the elements when the table is freed; without it they are freed at once.
  var discarded: DiscardedElements?
  #if CHECK_INVARIANTS
    private var mutations = 0
  #endif

  init() {
    capacity = 16
    records = Self.room(nil, capacity)
  }

  deinit {
    guard count >= DiscardedElements.many, let discarded else {
      forEach { handle in records[Int(handle)].text.release() }
      return Glibc.free(records)
    }
    var next = oldest
    discarded.add { [records] count in
      var left = count
      while left > 0, next != Self.none {
        records[Int(next)].text.release()
        next = records[Int(next)].newer
        left -= 1
      }
      if next == Self.none { Glibc.free(records) }
      return next == Self.none
    }
  }

  /// Returns a table with the same handles and texts, in the same order. The texts are shared. O(n).
  func copy(_ pace: Pace) -> ElementTable {
    let copy = ElementTable()
    copy.reserve(capacity)
    for handle in 0..<used {
      (copy.records + handle).initialize(to: records[handle])
      if handle & 255 == 0 { pace.spend(8) }
    }
    forEach { handle in
      records[Int(handle)].text.retain()
      if handle & 7 == 0 { pace.spend() }
    }
    (copy.used, copy.firstFree, copy.arrivals) = (used, firstFree, arrivals)
    (copy.count, copy.bytes, copy.oldest, copy.newest) = (count, bytes, oldest, newest)
    copy.longest = longest
    copy.discarded = discarded
    return copy
  }

  /// The current version of a living element.
  public func text(of handle: UInt32) -> ElementText {
    records[Int(handle)].text
  }

  /// Adds an element as the newest. Takes ownership of `text`. Amortized O(1).
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
    longest = max(longest, text.footprint)
    charge(1, text.footprint)
    link(handle, before: Self.none)
    sampleInvariants()
    return handle
  }

  /// Removes an element from the order and the counts. Its handle and text stay until `free`, so that `revive` can undo
  /// the removal.
  func retire(_ handle: UInt32) {
    unlink(handle)
    count &-= 1
    bytes &-= records[Int(handle)].text.footprint
    charge(-1, 0 &- records[Int(handle)].text.footprint)
    sampleInvariants()
  }

  /// Undoes `retire`. `newer` is the neighbour that followed the element.
  func revive(_ handle: UInt32, before newer: UInt32) {
    count &+= 1
    bytes &+= records[Int(handle)].text.footprint
    charge(1, records[Int(handle)].text.footprint)
    link(handle, before: newer)
    sampleInvariants()
  }

  /// Frees a retired handle and releases its text.
  func free(_ handle: UInt32) {
    records[Int(handle)].text.release()
    records[Int(handle)].older = firstFree
    firstFree = handle
  }

  /// Replaces the text of an element by one that has its own `changedAt`. Returns the old text, whose ownership passes to
  /// the caller. O(1).
  func exchange(_ handle: UInt32, _ text: ElementText) -> ElementText {
    let before = records[Int(handle)].text
    bytes &+= text.footprint &- before.footprint
    longest = max(longest, text.footprint)
    charge(0, text.footprint &- before.footprint)
    records[Int(handle)].text = text
    text.owner = handle
    text.arrival = before.arrival
    sampleInvariants()
    return before
  }

  /// Moves an element in the order of change to just before `newer`, or to the newest end.
  func reorder(_ handle: UInt32, before newer: UInt32, changedAt: Instant) {
    records[Int(handle)].text.changedAt = changedAt
    guard newer != handle, records[Int(handle)].newer != newer else { return }
    unlink(handle)
    link(handle, before: newer)
    sampleInvariants()
  }

  /// Calls `body` with each living element in the order of change, the oldest first.
  func forEach(_ body: (UInt32) -> Void) {
    var next = oldest
    while next != Self.none {
      let handle = next
      next = records[Int(handle)].newer
      body(handle)
    }
  }

  /// Sets the arrival number of a restored element. Later elements get greater numbers.
  func restoreArrival(_ handle: UInt32, _ arrival: UInt64) {
    records[Int(handle)].text.arrival = arrival
    arrivals = max(arrivals, arrival &+ 1)
  }

  /// Moves an element to the newest end of the order of change.
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

  private func grow() { reserve(capacity &* 2) }

  /// Makes room for so many elements.
  func reserve(_ count: Int) {
    if count <= capacity { return }
    // Records are plain bytes. The system moves the pages of a large block without copying them.
    records = Self.room(records, count)
    capacity = count
  }

  /// Resizes the records, or allocates them.
  private static func room(
    _ records: UnsafeMutablePointer<Record>?, _ count: Int
  ) -> UnsafeMutablePointer<Record> {
    resized(records, byteCount: count * MemoryLayout<Record>.stride).assumingMemoryBound(to: Record.self)
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

  /// Takes the elements off their account.
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
}

extension ElementTable {
  @inline(__always)
  private func sampleInvariants() {
    #if CHECK_INVARIANTS
      mutations &+= 1
      if count <= 64 || mutations % 4096 == 0 { checkInvariants() }
    #endif
  }

  #if CHECK_INVARIANTS
    /// Checks the links in both directions, the counts and the owners. O(n).
    func checkInvariants() {
      var (linked, total, older, next) = (0, 0, Self.none, oldest)
      while next != Self.none {
        let record = records[Int(next)]
        precondition(Int(next) < used && record.older == older, "a link to an older element is wrong")
        precondition(record.text.owner == next, "the text of an element has another owner")
        linked += 1
        total += record.text.footprint
        (older, next) = (next, record.newer)
        precondition(linked <= count, "more elements are linked than counted")
      }
      precondition(older == newest && linked == count && total == bytes, "the counts of elements are wrong")
      var (free, length) = (firstFree, 0)
      while free != Self.none {
        length += 1
        precondition(Int(free) < used && length + count <= used, "the free list is wrong")
        free = records[Int(free)].older
      }
    }
  #endif
}

/// The orders of arrival and of change.
extension ElementTable {
  /// The living elements in the order of arrival. O(n log n); O(n) if arrival and change have the same order.
  func inOrderOfArrival(_ pace: Pace = Pace()) -> [UInt32] {
    sorted(pace) { $0.arrival }
  }

  /// The first `count` elements in the order of change. O(count).
  func longestUnchanged(_ count: Int) -> [UInt32] {
    var found: [UInt32] = []
    var next = oldest
    while found.count < count, next != Self.none {
      found.append(next)
      next = records[Int(next)].newer
    }
    return found
  }

  /// Sorts the order of change by time, after elements were added in another order. O(n log n); O(n) if it is sorted.
  func sortByChange(_ pace: Pace = Pace()) {
    for handle in sorted(pace, by: { $0.changedAt.nanoseconds }) {
      moveToNewest(handle)
      if handle & 7 == 0 { pace.spend() }
    }
  }

  /// The living elements in ascending order of `number`, then of arrival.
  private func sorted(_ pace: Pace, by number: (ElementText) -> UInt64) -> [UInt32] {
    var keys: [(number: UInt64, arrival: UInt64, handle: UInt32)] = []
    keys.reserveCapacity(count)
    var isSorted = true
    forEach { handle in
      let text = records[Int(handle)].text
      let key = (number: number(text), arrival: text.arrival, handle: handle)
      if let last = keys.last, (key.number, key.arrival) < (last.number, last.arrival) { isSorted = false }
      keys.append(key)
      if handle & 7 == 0 { pace.spend() }
    }
    if !isSorted { keys.sort(pace) { ($0.number, $0.arrival) < ($1.number, $1.arrival) } }
    return keys.map(pace, \.handle)
  }
}
