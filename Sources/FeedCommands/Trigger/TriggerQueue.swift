/// The runs of the command that are due, in the order of their changes.
///
/// An item waits for earlier ones that concern the same element. If an item fails, it is run again after a pause, and items of
/// the same element wait. With one job, all items wait.
///
/// Invariant: an item is in `items` until it is done.
struct TriggerQueue {
  /// The bounds of the pause before a failed item is run again, in nanoseconds.
  static let (shortestPause, longestPause): (UInt64, UInt64) = (100_000_000, 60_000_000_000)
  /// The number of unfinished items that ``next(now:)`` looks at.
  private static let window = 256

  private let jobs: Int
  /// The items in order, from `head` on; nil for done ones.
  private var items: [TriggerItem?] = []
  private var head = 0
  /// The places in `items`.
  private var places: [Int: Int] = [:]
  private var running: Set<Int> = []
  /// The failures of an item, and when it may run again.
  private var failures: [Int: (count: Int, until: UInt64)] = [:]

  init(jobs: Int) { self.jobs = jobs }

  /// The number of items that are not done.
  var count: Int { places.count }

  /// Whether an item could be started at once if there were one.
  var hasRoom: Bool { places.count == running.count && running.count < jobs }

  /// The items that are not done, in order.
  var unfinished: [TriggerItem] { items[head...].compactMap(\.self) }

  mutating func add(_ item: TriggerItem) {
    places[item.number] = items.count
    items.append(item)
  }

  /// Returns the next item to run, and counts it as running; nil if there is none at this time.
  mutating func next(now: UInt64) -> TriggerItem? {
    guard running.count < jobs else { return nil }
    var waiting: Set<[UInt8]> = []
    var seen = 0
    for item in items[head...] {
      guard let item else { continue }
      seen += 1
      if !running.contains(item.number), failures[item.number].map({ $0.until <= now }) ?? true,
        waiting.isDisjoint(with: item.ids)
      {
        running.insert(item.number)
        return item
      }
      if jobs == 1 || seen == Self.window { return nil }
      waiting.formUnion(item.ids)
    }
    return nil
  }

  /// The time at which a failed item may run again; nil if there is none.
  var deadline: UInt64? {
    running.count < jobs ? failures.filter { !running.contains($0.key) }.map(\.value.until).min() : nil
  }

  /// Records that a running item is done.
  mutating func done(_ number: Int) {
    guard let place = places.removeValue(forKey: number) else { return }
    running.remove(number)
    failures[number] = nil
    items[place] = nil
    while head < items.count, items[head] == nil { head += 1 }
    if head > 1024, head * 2 > items.count {
      items.removeFirst(head)
      for (place, item) in items.enumerated() { if let item { places[item.number] = place } }
      head = 0
    }
  }

  /// Records that a running item failed.
  /// - Returns: the number of its failures in a row, and the pause before it runs again.
  mutating func failed(_ number: Int, now: UInt64) -> (count: Int, pause: UInt64) {
    running.remove(number)
    let count = (failures[number]?.count ?? 0) + 1
    let pause = min(Self.shortestPause << UInt64(min(count - 1, 20)), Self.longestPause)
    failures[number] = (count, now &+ pause)
    return (count, pause)
  }
}
