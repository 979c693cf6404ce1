import FeedChange
import FeedJSON
import FeedQuery

/// The member `retain` of a definition: the limits on kept elements (Protocol/README.md, "Retention").
///
/// Elements beyond `count` are evicted in the same commit, those unchanged for the longest time first. Elements that
/// are unchanged for `seconds`, or whose time at `until` has passed, are evicted by a commit of the daemon. Invariant:
/// at least one limit is given.
public struct Retention: Equatable, Sendable {
  /// The maximum number of elements.
  public let count: Int?
  /// The maximum time that an element is kept unchanged.
  public let seconds: Double?
  /// The path of the time at which an element expires.
  public let until: SingularPath?

  var isTimed: Bool { seconds != nil || until != nil }

  /// Parses the member `retain` of a definition; nil if there is none.
  init?(reading outer: DefinitionReader) throws(FeedError) {
    guard let value = outer.object.member("retain"), value.kind != .null else { return nil }
    guard value.kind == .object else {
      throw outer.refuse("retain", "must be an object with \"count\", \"seconds\" or \"until\"")
    }
    let reader = DefinitionReader(object: value, place: "retain.")
    count = try reader.positiveInteger("count")
    seconds = try reader.positiveNumber("seconds")
    until = try reader.singularPath("until")
    if count == nil && seconds == nil && until == nil { return nil }
  }
}

/// Retention and eviction (Protocol/README.md, "Retention").
extension RowStore {
  /// Sets the retention. The caller must then rewrite the texts of existing elements with their expiry times.
  /// - Parameter keyIndex: the number of sort keys before the expiry time.
  func retain(_ retention: Retention?, keyIndex: Int, _ pace: Pace = Pace()) {
    // Only retention needs the order of change.
    if self.retention == nil && retention != nil { elements.keepOrder(pace) }
    self.retention = retention
    deadlines = retention?.until.map { Deadlines(path: $0, elements: elements, keyIndex: keyIndex) }
  }

  /// The elements beyond the retained number, those unchanged for the longest time first. O(result).
  var excess: [UInt32] { hasExcess ? elements.longestUnchanged(elements.count - maxRetained) : [] }
  var hasExcess: Bool { elements.count > maxRetained }

  /// The moment when the next element expires; nil if none will.
  var nextExpiry: Instant? {
    guard let retention else { return nil }
    var next = deadlines?.next
    if let seconds = retention.seconds, elements.oldest != ElementTable.none {
      let age = elements.text(of: elements.oldest).changedAt.adding(seconds: seconds)
      next = min(next ?? age, age)
    }
    return next
  }

  /// At most `limit` elements that have expired at `moment`: first those unchanged for `seconds`, the oldest first,
  /// then those whose expiry time has passed.
  func expired(at moment: Instant, limit: Int) -> [UInt32] {
    var found: [UInt32] = []
    if let seconds = retention?.seconds {
      var next = elements.oldest
      while found.count < limit, next != ElementTable.none {
        if elements.text(of: next).changedAt.adding(seconds: seconds) > moment { break }
        found.append(next)
        next = elements.newer(than: next)
      }
    }
    guard let deadlines else { return found }
    let old = Set(found)
    return found + deadlines.due(at: moment, limit: limit).filter { !old.contains($0) }.prefix(limit - found.count)
  }

  /// The elements that a filter accepts. O(elements).
  /// - Throws: `limitExceeded` if the filter takes more than `maxQuerySteps` steps over one element, or more than
  ///   `maxRequestSteps` over all.
  func accepted(by filter: Filter, in commit: Commit) throws(FeedError) -> [UInt32] {
    try commit.budget.checkRoom(forSteps: elements.count)
    try commit.budget.use(allElements: elements.bytes)
    var judge = ElementJudge(filter, limits: limits, in: commit)
    var accepted: [UInt32] = []
    elements.forEach { handle in
      if judge.accepts(elements.text(of: handle).text) { accepted.append(handle) }
    }
    try judge.checkSteps()
    return accepted
  }

  /// Removes distinct elements with all their rows. Leaves the change in `step`.
  ///
  /// Many rows are found in one pass over a section, few one by one. They are removed in reverse, so every position is in
  /// the coordinates before the change and no steps need composition. O(sections · rows), or O(sections · m log n) for few
  /// of n rows.
  func remove(_ handles: [UInt32], _ log: UndoLog) {
    beginStep()
    for section in sections.indices { removeRows(of: handles, section: section, log) }
    for handle in handles {
      removeElement(handle, log)
      log.pace.spend()
    }
  }

  private func removeRows(of handles: [UInt32], section: Int, _ log: UndoLog) {
    let rows = sections[section].rows
    let isMany = handles.count > rows.count / 16
    let places = isMany ? rows.rows(ofAll: handles, log.pace) : handles.compactMap { rows.row(of: $0) }.sorted()
    step.deleted.reserveCapacity(step.deleted.count + places.count)
    for row in places {
      step.deleted.append(IndexPath(section: UInt32(section), row: UInt32(row)))
      if row & 63 == 0 { log.pace.spend() }
    }
    guard places.count > rows.count / 4 else {
      for row in places.reversed() {
        removeRow(section: section, at: row, log)
        log.pace.spend()
      }
      return
    }
    for row in places.reversed() {
      noteRemoval(section: section, at: row, log)
      log.pace.spend()
    }
    rows.removeAll(at: places, log.pace)
    keyed?.didRemoveAll(log.pace)
  }
}

/// The feeds that evict elements by time, in the order of the next time.
///
/// Every turn asks for the next time, so a change is followed only in the feed that changed: ``Commit/updateTimed(_:)`` names it.
/// Invariant: holds every feed of the table whose definition retains by time. `order` holds the numbers of those that have an
/// element that expires, by the time of the next one, once all changes are followed.
struct Expiry {
  private var feeds: [FeedNumber: Feed] = [:]
  /// The same feeds in the order of their names, which is the same in every process.
  private var named: [Feed] = []
  private let order = PositionTree(keyed: true)

  /// Follows that a feed was added to the table, removed or redefined. The caller then calls `update`. O(log n), or O(n) to add it to
  /// the n feeds that retain by time, or to remove it.
  mutating func follow(_ feed: Feed, in table: FeedTable) {
    let isListed = feed.kind.rows?.isTimed == true && table.byName[feed.name] === feed
    if isListed == (feeds[feed.number] === feed) { return }
    let place = named.indices.partitionPoint { named[$0].name < feed.name }
    if isListed {
      feeds[feed.number] = feed
      named.insert(feed, at: place)
    } else {
      feeds[feed.number] = nil
      named.remove(at: place)
      order.remove(UInt32(feed.number))
    }
  }

  /// Follows that elements of a feed changed. O(log n) for n feeds that retain by time.
  func update(_ number: FeedNumber) {
    let item = UInt32(number)
    let next = feeds[number]?.kind.rows?.nextExpiry?.nanoseconds
    if order.key(of: item) == next { return }
    order.remove(item)
    guard let next else { return }
    order.insert(item, at: order.upperBound(key: next) { _ in false }, key: next)
  }

  /// The moment when the next element of any feed expires; nil if none will. O(log n).
  var next: Instant? { order.count == 0 ? nil : Instant(nanoseconds: order.key(at: 0)) }

  /// At most `limit` feeds with an expired element at `now`, by name: those after `name`, then those before. O(feeds).
  func due(at now: Instant, after name: String, limit: Int) -> [Feed] {
    var due: [Feed] = []
    let start = named.indices.partitionPoint { named[$0].name <= name }
    for part in [named[start...], named[..<start]] {
      for feed in part where due.count < limit {
        if let next = order.key(of: UInt32(feed.number)), next <= now.nanoseconds { due.append(feed) }
      }
    }
    return due
  }

  /// Traps unless all changes are followed. O(feeds).
  func checkInvariants(_ table: FeedTable) {
    let fresh = table.inNameOrder.filter { $0.kind.rows?.retention?.isTimed == true }
    precondition(
      named.elementsEqual(fresh, by: ===) && fresh.count == feeds.count
        && fresh.allSatisfy { feeds[$0.number] === $0 }, "the list of feeds that retain by time is out of date")
    let moments = fresh.map { ($0.number, $0.kind.rows?.nextExpiry?.nanoseconds) }
    precondition(
      moments.allSatisfy { order.key(of: UInt32($0)) == $1 } && moments.count { $1 != nil } == order.count,
      "the next time of a feed is out of date")
    for feed in fresh where feed.count <= 64 { feed.kind.rows?.deadlines?.checkInvariants() }
  }
}

extension Catalog {
  /// Evicts expired elements of a feed as one operation. `limit` bounds their number, so that a large eviction does not
  /// block other requests. Returns the number evicted.
  public func evictExpired(of feed: Feed, limit: Int) -> Int {
    guard let rows = feed.kind.rows else { return 0 }
    commit.startOperation()
    let position = commit.log.position
    let evicted = rows.expired(at: commit.moment, limit: limit)
    rows.remove(evicted, commit.log)
    commit.addStep(of: rows)
    commit.finishOperation(on: feed.number, rows, since: position)
    return evicted.count
  }
}
