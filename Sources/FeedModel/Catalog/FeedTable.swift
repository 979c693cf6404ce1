import FeedChange
import FeedJSON

/// The feeds of a catalog by name, and feeds and bins by number. ``list`` is not one of the defined feeds.
///
/// Invariant: every named feed and each of its bins is stored under its own number; a free number has no feed. An
/// undefined feed keeps its number until the commit ends, because the commit may be rolled back.
final class FeedTable {
  /// The feed `$feeds`.
  let list: Feed
  private let listed: FeedListKind
  /// The feeds by name; bins are found through their collection.
  private(set) var byName: [String: Feed] = [:]
  private var numbered: [Feed?]
  private var free: [FeedNumber] = []
  /// The numbers of feeds that the open commit undefined. A rollback may have defined some of them again.
  private var leaving: [FeedNumber] = []

  init(limits: Limits, revision: UInt64) {
    listed = FeedListKind(limits: limits)
    list = Feed(name: FeedName.feeds, number: 0, kind: listed, revision: revision)
    list.beginHistory()
    numbered = [list]
  }

  /// Decides which feeds the errors of the open commit may name besides those of its request; nil for all.
  var mayName: ((Feed) -> Bool)?

  /// A feed in the text of an error: its name in quotes, or `other` if the error may not name it.
  func mention(_ feed: Feed, or other: String) -> String { mayName?(feed) ?? true ? "\"\(feed.name)\"" : other }
  var count: Int { byName.count }

  /// The feeds in the order of their names, the same in every process.
  var inNameOrder: [Feed] { byName.values.sorted { $0.name < $1.name } }

  /// All feeds with a name, without bins: the defined ones and ``list``.
  var all: [Feed] { [list] + byName.values }

  subscript(number: FeedNumber) -> Feed {
    guard let feed = numbered[number] else { preconditionFailure("no feed has number \(number)") }
    return feed
  }

  /// The numbers in use or free are below this.
  var numberCount: Int { numbered.count }

  /// The history of the feed or bin with a number; nil if it records none, or the number is free. O(1).
  func history(ofNumber number: FeedNumber) -> History? { numbered[number]?.history }

  /// The feed or bin with a number, without a count of references. The table keeps it until the commit under way ends. O(1).
  @inline(__always)
  func unretained(_ number: FeedNumber) -> Unmanaged<Feed> { .passUnretained(self[number]) }

  /// The feed of that name, or the bin of a collection for `collection/bin`.
  func find(_ name: String) -> Feed? {
    // Names are ASCII, and what is canonically equivalent to ASCII has more bytes.
    if let feed = byName[name] { return feed.name.utf8.count == name.utf8.count ? feed : nil }
    if name == FeedName.feeds { return list }
    guard let slash = name.firstIndex(of: "/") else { return nil }
    return byName[String(name[..<slash])]?.kind.bins.first { $0.name.exact == name.exact }
  }

  /// The collection of a bin; nil for other feeds.
  func collection(of feed: Feed) -> Feed? {
    guard feed.kind is BinKind, let slash = feed.name.firstIndex(of: "/") else { return nil }
    return byName[String(feed.name[..<slash])]
  }

  /// Updates the row of a feed in `$feeds` from its definition. Returns the change of `$feeds`.
  func follow(_ feed: Feed, in commit: Commit) throws(FeedError) -> Change { try listed.follow(feed, in: commit) }

  /// Writes the rows of `$feeds` again under other limits, between two commits. Returns whether any of them is another one. O(feeds).
  func relist(at moment: Instant) -> Bool { listed.relist(inNameOrder.compactMap(\.definition), at: moment) }

  /// Creates a feed or bin under a new number. It has no name in the table yet.
  func makeFeed(name: String, revision: UInt64, _ kind: (FeedNumber) -> any FeedKind) -> Feed {
    let number = free.popLast() ?? numbered.count
    if number == numbered.count { numbered.append(nil) }
    let feed = Feed(name: name, number: number, kind: kind(number), revision: revision)
    numbered[number] = feed
    return feed
  }

  func add(_ feed: Feed) {
    assert(byName[feed.name] == nil && numbered[feed.number] === feed, "feed \(feed.name) is in the table already")
    byName[feed.name] = feed
    sampleInvariants()
  }

  func remove(_ feed: Feed) {
    assert(byName[feed.name] === feed, "feed \(feed.name) is not in the table")
    byName[feed.name] = nil
  }

  /// Releases the number of a feed or bin at the end of the commit, if the feed is gone by then.
  func release(_ feed: Feed) { leaving.append(feed.number) }

  /// Ends a commit: releases the numbers of feeds that are gone. Lets `pace` stop in between.
  @inline(__always)
  func recycle(_ pace: Pace) { if !leaving.isEmpty { releaseNumbers(pace) } }

  private func releaseNumbers(_ pace: Pace) {
    for number in leaving where numbered[number]?.isGone == true {
      numbered[number] = nil
      free.append(number)
      // Most of these feeds are freed now.
      pace.spend(2)
    }
    leaving.removeAll()
    sampleInvariants()
  }

  private func sampleInvariants() {
    #if CHECK_INVARIANTS
      if numbered.count <= 64 { checkInvariants() }
    #endif
  }

  /// O(feeds).
  func checkInvariants() {
    for (name, feed) in byName {
      precondition(feed.name == name && !feed.isGone, "a feed stands under another name")
      precondition(numbered[feed.number] === feed, "a feed stands under another number")
      for bin in feed.kind.bins { precondition(numbered[bin.number] === bin, "a bin stands under another number") }
    }
    precondition(Set(free).count == free.count, "a number is free twice")
    precondition(free.allSatisfy { numbered[$0] == nil }, "a free number has a feed")
    for (number, feed) in numbered.enumerated() {
      precondition(feed == nil || feed?.number == number, "a feed stands under another number")
    }
    precondition(numbered.count { $0 == nil } == free.count, "a number is lost")
  }
}

/// The feed `$feeds`: one section with one row for each defined feed, in order of name.
///
/// No request changes it. An element is `{"feed","kind","definition"}`, updated with the definition.
final class FeedListKind: SingleSectionKind {
  fileprivate let state: FeedListState

  init(limits: Limits) { state = FeedListState(limits: limits) }

  var shown: RowSection { state.sections[0] }
  var wireName: String { "feeds" }
  var definedAs: FeedDefinition.Content? { nil }
  var hasTypes: Bool { false }
  /// The rows are not stored in images, because they follow from the definitions.
  var rows: RowStore? { state }

  func redefine(_ definition: FeedDefinition, of feed: Feed, in catalog: Catalog) throws(FeedError) {
    throw Self.readOnly
  }

  static let readOnly = FeedError.permissionDenied(
    reason: "feed \"\(FeedName.feeds)\" is read-only; define and undefine feeds to change it")

  func find(_ name: JSONView) -> (row: Row, places: [IndexPath])? {
    guard let name = name.string(atMost: FeedName.maxLength), FeedName.isValid(name) else { return nil }
    return state.handles[name].map { state.found($0) }
  }

  /// Updates the row of a feed from its definition. O(log feeds + definition).
  /// - Returns: the change; empty if the row did not change.
  func follow(_ feed: Feed, in commit: Commit) throws(FeedError) -> Change {
    if feed.isGone {
      state.remove(feed.name, commit.log)
    } else if let definition = feed.definition {
      try state.put(definition, at: commit.tick(), commit.log)
    }
    return state.step
  }
}

extension FeedListKind {
  /// Writes the rows of feeds again. Returns whether any of them is another one.
  fileprivate func relist(_ definitions: [FeedDefinition], at moment: Instant) -> Bool {
    let log = UndoLog()
    var isOther = false
    for definition in definitions {
      do throws(FeedError) {
        try state.put(definition, at: moment, log)
      } catch {
        preconditionFailure("\(error)")
      }
      if !state.step.isEmpty { isOther = true }
    }
    log.finish()
    return isOther
  }
}

extension Feed {
  /// Whether this is `$feeds`.
  public var isList: Bool { kind is FeedListKind }
}

extension Catalog {
  /// The error for a request that would change `$feeds`.
  public static var listIsReadOnly: FeedError { FeedListKind.readOnly }
}

/// The rows of `$feeds`, indexed by name.
///
/// Invariant: `handles` has each living element by its name; rows ascend by name.
private final class FeedListState: RowStore {
  fileprivate private(set) var handles: [String: UInt32] = [:]
  /// Scratch buffer, reused for every row.
  private var text = ByteBuffer()

  init(limits: Limits) {
    let elements = ElementTable()
    let section = RowSection(name: FeedName.feeds, elements: elements, keyed: true)
    super.init(feed: FeedName.feeds, elements: elements, sections: [section], type: nil, limits: limits)
  }

  private func name(of handle: UInt32) -> String {
    String(decoding: elements.text(of: handle).storedIdentity.dropFirst(), as: UTF8.self)
  }

  override func didAdd(_ handle: UInt32) { handles[name(of: handle)] = handle }
  override func willRemove(_ handle: UInt32) { handles[name(of: handle)] = nil }
  override func successor(of handle: UInt32) -> UInt32? { handles[name(of: handle)] }
  override func key(of handle: UInt32, section: Int) -> UInt64 {
    SortOrder.prefix(of: elements.text(of: handle).storedIdentity)
  }

  /// Adds or replaces the row of a feed and leaves the change in `step`.
  func put(_ definition: FeedDefinition, at moment: Instant, _ log: UndoLog) throws(FeedError) {
    step.removeAll(keepingCapacity: true)
    write(definition)
    let name = definition.name
    var identity = ByteBuffer()
    identity.append(string: "s\(name)")
    let element = ElementText(
      identity: identity.bytes, keys: UnsafeRawBufferPointer(start: nil, count: 0), text: text.bytes, type: 0..<0)
    guard let element else { throw .internalError(reason: "there is no memory for \(counted(text.count, "byte"))") }
    let section = sections[0]
    guard let known = handles[name] else {
      let handle = addElement(element, at: moment, log)
      let key = key(of: handle, section: 0)
      let row = section.rows.upperBound(key: key) { other in
        SortOrder.isAfter(elements.text(of: other).storedIdentity, element.storedIdentity)
      }
      insertRow(handle, section: 0, at: row, key: key, log)
      return step.added.append(IndexPath(section: 0, row: UInt32(row)))
    }
    if Self.equal(elements.text(of: known).text, element.text) { return element.release() }
    preserve(known)
    exchangeText(known, element, at: moment, log)
    guard let row = section.rows.row(of: known) else { preconditionFailure("a listed feed has no row") }
    step.updated.append(IndexPath(section: 0, row: UInt32(row)))
  }

  /// Removes the row of a feed and leaves the change in `step`.
  func remove(_ name: String, _ log: UndoLog) {
    step.removeAll(keepingCapacity: true)
    guard let handle = handles[name], let row = sections[0].rows.row(of: handle) else { return }
    removeRow(section: 0, at: row, log)
    removeElement(handle, log)
    step.deleted.append(IndexPath(section: 0, row: UInt32(row)))
  }

  /// Writes the element of a feed to `text`. A definition that does not fit in a frame is written as null.
  private func write(_ definition: FeedDefinition) {
    text.removeAll(keepingCapacity: true)
    text.append("{\"feed\":", quoted: definition.name)
    text.append(",\"kind\":", quoted: definition.kind)
    text.append(",\"definition\":")
    let start = text.count
    text.append(UInt8(ascii: "{"))
    definition.appendMembers(to: &text)
    text.append("}}")
    if text.count <= limits.elementRoom { return }
    text.truncate(to: start)
    text.append("null}")
  }
}

/// A pass over the histories of all feeds that discards recorded changes beyond the limits. One call does a part of it, because a
/// user may define so many feeds and bins that looking at all of them takes longer than a turn may.
///
/// The first round discards what a feed may not keep. If too much is left in all, a second one leaves equal shares.
struct HistoryTrimming {
  /// The numbers of feeds and bins that one part looks at: about a millisecond.
  private static let numbersPerPart = 4096
  /// The words of histories that one part moves: about two milliseconds. One of the default size needs no more.
  private static let wordsToMove = 3 << 19

  /// Whether a pass has begun and not ended.
  private(set) var isUnderWay = false
  /// The number that is looked at next.
  private var next = 0
  /// The histories that this round found, and their bytes.
  private var found = (histories: 0, bytes: 0)
  /// The bytes that each feed may keep; nil in the first round.
  private var share: Int?

  /// Begins a pass, or begins it again.
  mutating func begin() {
    self = HistoryTrimming()
    isUnderWay = true
  }

  /// Does a part of the pass, if one is under way.
  mutating func advance(over table: FeedTable, _ limits: Limits, before moment: Instant) {
    var (left, words) = (Self.numbersPerPart, Self.wordsToMove)
    while isUnderWay, left > 0 {
      let end = min(next + left, table.numberCount)
      left -= end - next
      for number in next..<max(next, end) {
        guard let history = table.history(ofNumber: number) else { continue }
        history.trim(bytes: share ?? limits.historyBytes, before: moment)
        words -= history.compact(moving: words)
        found.histories += 1
        found.bytes &+= history.bytes
      }
      next = end
      if end == table.numberCount { endRound(limits) }
    }
  }

  private mutating func endRound(_ limits: Limits) {
    isUnderWay = share == nil && found.bytes > limits.maxHistoryBytes
    if isUnderWay { share = limits.maxHistoryBytes / found.histories }
    (next, found) = (0, (0, 0))
  }
}
