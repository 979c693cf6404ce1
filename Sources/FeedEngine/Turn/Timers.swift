import FeedModel

/// An entry of `Timers`, which stores its own position there.
protocol Timed: AnyObject {
  /// Written by `Timers` only.
  var timer: TimerSeat { get set }
}

/// The position of an entry in `Timers`.
struct TimerSeat {
  /// The second at which the entry expires; nil if it is in no list.
  fileprivate(set) var second: UInt64?
  fileprivate var place = 0
}

/// A timer wheel with a resolution of one second: one list of entries for each second.
///
/// Adding and removing are O(1). Times are rounded up to a whole second. An entry further ahead than the length of the
/// wheel stays in its list for several rotations. Invariant: each entry is in the list of its second, once.
struct Timers<Entry: Timed> {
  private static var size: Int { 64 }
  private static var second: UInt64 { 1_000_000_000 }

  private var slots: [[Entry]] = Array(repeating: [], count: Self.size)
  private(set) var count = 0
  /// The last second whose entries have all expired and were taken.
  private var reached: UInt64

  init(now: Instant) {
    reached = now.nanoseconds / Self.second
  }

  /// Adds an entry that is in no list. An entry with a past time expires in the next second.
  mutating func add(_ entry: Entry, at moment: Instant) {
    precondition(entry.timer.second == nil, "an entry has one timer")
    let (seconds, rest) = moment.nanoseconds.quotientAndRemainder(dividingBy: Self.second)
    let second = max(rest > 0 ? seconds + 1 : seconds, reached + 1)
    let slot = Self.slot(of: second)
    entry.timer.second = second
    entry.timer.place = slots[slot].count
    slots[slot].append(entry)
    count += 1
  }

  /// Removes an entry, if it is in a list.
  mutating func remove(_ entry: Entry) {
    guard let second = entry.timer.second else { return }
    remove(entry.timer.place, of: Self.slot(of: second))
  }

  /// Removes the entries that have expired by now, at most so many: the next call returns others. O(seconds passed + entries in
  /// their lists).
  mutating func takeExpired(now: Instant, atMost most: Int = .max) -> [Entry] {
    let second = now.nanoseconds / Self.second
    guard second > reached else { return [] }
    let passed = min(second - reached, UInt64(Self.size))
    var expired: [Entry] = []
    for back in 0..<passed {
      let slot = Self.slot(of: second - back)
      var place = 0
      while place < slots[slot].count {
        let entry = slots[slot][place]
        guard let due = entry.timer.second, due <= second else {
          place += 1
          continue
        }
        if expired.count == most { return expired }
        remove(place, of: slot)
        expired.append(entry)
      }
    }
    reached = second
    return expired
  }

  private static func slot(of second: UInt64) -> Int { Int(second % UInt64(size)) }

  /// Removes an entry from its list; the last one of the list takes its place.
  private mutating func remove(_ place: Int, of slot: Int) {
    slots[slot][place].timer.second = nil
    let last = slots[slot].removeLast()
    if place < slots[slot].count {
      last.timer.place = place
      slots[slot][place] = last
    }
    count -= 1
  }

  /// Traps in a debug build unless each entry is at its position. O(entries).
  func checkInvariants() {
    #if DEBUG
      for (slot, entries) in slots.enumerated() {
        for (place, entry) in entries.enumerated() {
          let second = entry.timer.second ?? 0
          let right = Self.slot(of: second) == slot && entry.timer.place == place
          assert(right, "an entry is in the wrong list")
          assert(second > reached, "an entry has expired unnoticed")
        }
      }
      assert(slots.reduce(0) { $0 + $1.count } == count)
    #endif
  }
}
