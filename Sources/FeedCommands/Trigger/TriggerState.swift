import FeedClient
import FeedJSON
import FeedSystem

/// The file of `trigger --state`: the position up to which changes were taken over from the daemon, the runs of the command that
/// are not done, and the rows at that position.
///
/// It is a log of JSON objects, one a line, that is replaced by a shorter one now and then:
///
/// - a head `{"trigger":1,"feed","where"?,"epoch","revision","next","sections"?,"items"}`: a position, its ``SavedRows``, and the
///   runs that are due besides those of earlier lines; `next` is the number of the next run,
/// - a step `{"items":[…],"deltas":[…],"epoch","revision"}`: runs that are due, and the changes that led to this position, with
///   a ``RowPrint`` in place of each element,
/// - `{"done":N}`: the command exited with 0 for this item.
///
/// A run is in the file before it starts, so that it is repeated in the same way if this program ends. A line without a newline
/// at the end was cut off, and nothing has happened of which it tells.
final class TriggerState {
  private static let maxRows = RowTracker.maxRows
  private static let maxBytes = 64 << 20
  /// The number of bytes of steps, besides the size of the head, after which the file is replaced.
  private static let slack = 1 << 20

  private let log: LineLog
  private let feed: String
  private let filter: String?
  private(set) var position: FeedPosition?
  /// The rows at the position, as the file had them at the start.
  private(set) var rows: SavedRows?
  /// The items that were not done at the start, in order.
  private(set) var items: [TriggerItem] = []
  private(set) var nextNumber = 0
  private var headBytes = 0
  private var stepBytes = 0

  /// Opens and reads the file, which need not exist.
  init(_ path: String, feed: String, filter: String?, say: (String) -> Void) throws(Failure) {
    (self.feed, self.filter) = (feed, filter)
    let bytes: [UInt8]
    do throws(SystemError) {
      var hasSaid = false
      log = try LineLog(path) { obstacle throws(SystemError) in
        if case .process(let pid) = obstacle { throw LineLog.inUse(path, by: pid) }
        if !hasSaid { say("waiting for the end of a command that an earlier feedclient trigger started") }
        hasSaid = true
        var pause = WaitList()
        _ = try pause.wait(until: MonotonicClock.now &+ 50_000_000)
      }
      bytes = try log.read()
    } catch {
      throw .system(error)
    }
    try read(bytes, path)
  }

  private func read(_ bytes: [UInt8], _ path: String) throws(Failure) {
    guard let end = bytes.lastIndex(of: UInt8(ascii: "\n")).map({ $0 + 1 }) else {
      let mark = Array("{\"trigger\"".utf8)
      guard bytes.starts(with: mark.prefix(bytes.count)) else {
        throw .usage("'\(path)' is not a file of trigger --state; pass another path, or remove it to start anew")
      }
      return try Failure.ofSystem(try log.truncate(to: 0))
    }
    var mirror: Mirror?
    for (number, line) in bytes[..<end].split(separator: UInt8(ascii: "\n")).enumerated() {
      let isRead = Array(line).readJSON { view -> Bool in
        guard view.kind == .object else { return false }
        if view.member("trigger") != nil { return readHead(view, &mirror) }
        return number > 0 && readLine(view, &mirror)
      }
      guard isRead == true else {
        let advice = "pass another path, or remove it to start anew"
        throw .usage("'\(path)', line \(number + 1): not written by trigger --state for feed '\(feed)'; \(advice)")
      }
      if number == 0 { headBytes = line.count }
    }
    if let sections = rows?.sections { rows = SavedRows(sections: sections, prints: mirror?.sections) }
    stepBytes = end - headBytes
    if end < bytes.count { try Failure.ofSystem(try log.truncate(to: end)) }
  }

  private func readHead(_ view: JSONView, _ mirror: inout Mirror?) -> Bool {
    guard view.member("trigger")?.int == 1, view.member("feed")?.string == feed, let position = FeedPosition(view),
      let next = view.member("next")?.int, readItems(view)
    else { return false }
    (self.position, nextNumber) = (position, next)
    rows = SavedRows(view.member("sections"))
    // What another filter accepted says nothing.
    if view.member("where")?.string != filter { rows?.prints = nil }
    mirror = rows?.prints.map { Mirror(feed: feed, position: position, sections: $0) }
    return true
  }

  private func readLine(_ view: JSONView, _ mirror: inout Mirror?) -> Bool {
    if let number = view.member("done")?.int {
      items.removeAll { $0.number == number }
      return true
    }
    guard readItems(view), let deltas = view.member("deltas"), let position = FeedPosition(view) else { return false }
    for params in deltas.elements {
      guard let delta = try? Delta(params) else { return false }
      if var sections = rows?.sections {
        rows = delta.change.apply(toCounts: &sections) ? SavedRows(sections: sections, prints: nil) : nil
      }
      do throws(FeedFault) { try mirror?.apply(delta) } catch { mirror = nil }
    }
    self.position = position
    return true
  }

  private func readItems(_ view: JSONView) -> Bool {
    guard let items = view.member("items") else { return false }
    for item in items.elements {
      guard let item = TriggerItem(item) else { return false }
      self.items.append(item)
      nextNumber = max(nextNumber, item.number + 1)
    }
    return true
  }
}

extension TriggerState {
  /// The descriptor that keeps the file locked while a command runs.
  var lockDescriptor: Int32 { log.descriptor }

  /// Returns the number of a new item.
  func takeNumber() -> Int {
    defer { nextNumber += 1 }
    return nextNumber
  }

  /// Whether the file is much larger than it would be after ``replace(_:rows:items:)``.
  var isLong: Bool { stepBytes > headBytes + Self.slack }

  /// Whether the file must be replaced before more is appended.
  var isTooLong: Bool { stepBytes > 8 * (headBytes + Self.slack) }

  /// Appends a step.
  func append(_ items: [TriggerItem], _ deltas: [String], _ position: FeedPosition) throws(Failure) {
    var object = ParameterWriter()
    object.add("items", json: items.map(\.json))
    object.add("deltas", json: deltas)
    object.add(position)
    // A position without items is behind after a loss of power, which loses nothing.
    try write(object.finish(), syncs: !items.isEmpty)
    self.position = position
  }

  /// Records that the command exited with 0.
  func done(_ number: Int) throws(Failure) { try write("{\"done\":\(number)}", syncs: true) }

  /// Replaces the file by one with this state. A running command keeps only the former file locked.
  func replace(_ position: FeedPosition, rows: SavedRows?, items: [TriggerItem]) throws(Failure) {
    let text = head(position, rows, items) + "\n"
    try Failure.ofSystem(try log.replace(with: Array(text.utf8)))
    (headBytes, stepBytes) = (text.utf8.count, 0)
    self.position = position
  }

  /// Appends a head for a position that no delta led to.
  func restart(_ position: FeedPosition, rows: SavedRows?, items: [TriggerItem]) throws(Failure) {
    try write(head(position, rows, items), syncs: true)
    self.position = position
  }

  private func head(_ position: FeedPosition, _ rows: SavedRows?, _ items: [TriggerItem]) -> String {
    var head = ParameterWriter()
    head.add("trigger", 1)
    head.add("feed", feed)
    if let filter { head.add("where", filter) }
    head.add(position)
    head.add("next", nextNumber)
    if let text = rows?.text(maxRows: Self.maxRows, maxBytes: Self.maxBytes) { head.add("sections", json: text) }
    head.add("items", json: items.map(\.json))
    return head.finish()
  }

  private func write(_ line: String, syncs: Bool) throws(Failure) {
    let bytes = Array((line + "\n").utf8)
    try Failure.ofSystem(try log.append(bytes, syncs: syncs))
    stepBytes += bytes.count
  }
}

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
