import FeedChange
import FeedJSON
import FeedQuery

/// Converting the JSON of a request to a stored version.
extension RowStore {
  /// The maximum bytes of a type. An element with a longer type has none, so that element and type fit in a frame.
  private var longestType: Int { min(1024, limits.maxFrame / 8) }

  /// Returns the element without white space outside strings; the same view if it has none.
  func compact(_ given: JSONView, index place: Int, _ pace: Pace? = nil) throws(FeedError) -> JSONView {
    var element = given
    if !given.isCompact {
      do {
        element = try scratch.compact(given, pace)
      } catch {
        throw .internalError(reason: "an element did not survive the removal of white space: \(error.message)")
      }
    }
    guard element.text.count <= limits.elementRoom else {
      throw limits.exceeded(
        limits.elementRoom < limits.maxElementBytes ? \.maxFrame : \.maxElementBytes,
        "element \(grouped(place)) has \(grouped(element.text.count)) bytes, and at most \(grouped(limits.elementRoom)) "
          + "are allowed; push a smaller one")
    }
    return element
  }

  /// Throws if there is no room for an element. One that is not longer than what it replaces has room always.
  /// - Parameters:
  ///   - keys: the bytes of its sort keys; 0 by older rules, and where elements have none.
  ///   - known: the element that is replaced; nil for none.
  func checkRoom(
    for element: JSONView, keys: Int = 0, replacing known: UInt32? = nil, _ log: UndoLog
  ) throws(FeedError) {
    let isNew = known == nil
    if isNew && elements.count >= limits.maxElements {
      throw limits.exceeded(\.maxElements, "\(feed) is full; take elements away")
    }
    var added = element.text.count &+ keys
    if let known, log.rules >= 4 {
      let before = elements.text(of: known)
      added &-= before.text.count &+ (keys > 0 ? before.keys.count : 0)
      if added <= 0 { return }
    }
    if elements.bytes &+ added > limits.maxBytes {
      throw limits.exceeded(\.maxBytes, "\(feed) holds \(counted(elements.bytes, "byte")); take elements away")
    }
    if !elements.hasRoom(bytes: added, isNew: isNew, limits) {
      throw elements.noRoom(bytes: added, isNew: isNew, limits)
    }
  }

  /// Creates a version of a compact element.
  /// - Parameter place: the value in the element that is its identity.
  func makeText(
    _ element: JSONView, identity: UnsafeRawBufferPointer, at place: JSONView?,
    keys: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
  ) throws(FeedError) -> ElementText {
    // From other numbers the identity cannot be read.
    let isReadable = place.map { $0.kind == .string || $0.isShortInteger } ?? false
    let range = isReadable ? place.map { Self.range(of: $0, in: element) } ?? 0..<0 : 0..<0
    let made = ElementText(identity: identity, at: range, keys: keys, text: element.text, type: typeRange(in: element))
    guard let text = made else {
      throw .internalError(reason: "there is no memory for an element of \(counted(element.text.count, "byte"))")
    }
    return text
  }

  /// The range of the type in the element's text; empty if it has none.
  private func typeRange(in element: JSONView) -> Range<Int> {
    guard let type = type?.resolve(element), type.kind == .string, type.text.count <= longestType else { return 0..<0 }
    return Self.range(of: type, in: element)
  }

  @inline(__always)
  private static func range(of value: JSONView, in element: JSONView) -> Range<Int> {
    let start = value.byteOffset &- element.byteOffset
    return start..<(start &+ value.text.count)
  }
}

/// Memory to read elements with, used for each of them again.
struct ElementScratch: ~Copyable {
  private var scanner = JSONScanner(maxDepth: Limits.largestDepth)
  private var compacted = ByteBuffer()

  /// Returns an element without white space outside strings. Valid until the next call.
  mutating func compact(_ given: JSONView, _ pace: Pace?) throws(JSONError) -> JSONView {
    compacted.removeAll(keepingCapacity: true)
    compacted.append(compact: given)
    return try scanner.scan(compacted.bytes, pace)
  }

  /// Scans a stored element. Valid until the next call.
  mutating func scan(_ text: UnsafeRawBufferPointer) throws(JSONError) -> JSONView { try scanner.scan(text) }
}

/// The elements of an array of a request as compact texts. Valid as long as the bytes of the request and this buffer.
///
/// Elements with white space are copied without it into one document, so that any two can be compared as texts.
final class ElementBuffer {
  private var bytes = ByteBuffer()
  private var scanner = JSONScanner(maxDepth: Limits.largestDepth)
  private(set) var views: [JSONView]

  init(compacting array: JSONView, _ pace: Pace) {
    views = Self.elements(of: array, pace)
    if array.isCompact || views.allSatisfy(\.isCompact) { return }
    bytes.append(compact: array)
    if let compact = try? scanner.scan(bytes.bytes, pace) { views = Self.elements(of: compact, pace) }
  }

  private static func elements(of array: JSONView, _ pace: Pace) -> [JSONView] {
    var views: [JSONView] = []
    views.reserveCapacity(array.count)
    for view in array.elements {
      views.append(view)
      if views.count & 31 == 0 { pace.spend() }
    }
    return views
  }
}

/// The member `retain` of a definition: the limits on kept elements (Protocol/README.md, "Retention").
///
/// Elements beyond `count` are evicted in the same commit, those unchanged for longest first; those that are unchanged
/// for `seconds`, or whose time at `until` has passed, by a commit of the daemon. At least one limit is given.
public struct Retention: Equatable, Sendable {
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

  /// At most `limit` elements that have expired at `moment`: the oldest first, then those whose time has passed.
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
  /// Many rows are found in one pass over a section, few one by one, and removed in reverse, so that no steps need
  /// composition. O(sections · rows), or O(sections · m log n) for few of n rows.
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

  /// At most `limit` feeds with an expired element at `moment`, by name: those after `name`, then those before. O(feeds).
  func due(at moment: Instant, after name: String, limit: Int) -> [Feed] {
    var due: [Feed] = []
    let start = named.indices.partitionPoint { named[$0].name <= name }
    for part in [named[start...], named[..<start]] {
      for feed in part where due.count < limit {
        if let next = order.key(of: UInt32(feed.number)), next <= moment.nanoseconds { due.append(feed) }
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
  /// Evicts at most `limit` expired elements of a feed as one operation. Returns their number.
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
