import FeedChange
import FeedJSON

/// The selection of a feed, shared by all its watchers (Protocol/README.md, "Selection").
///
/// The selection follows rows, not positions: a selected row stays so when it moves, and is deselected when deleted.
///
/// A row obeys the rules of each feed that it comes from. In a composed feed, rows of a child with `"multiple": false`
/// replace each other in the selection, and rows of a child with `"selectable": false` cannot be selected.
extension Feed {
  /// Adds rows to the selection, or replaces it if only one row may be selected. Returns whether anything changed.
  /// O(rows) if no feed below restricts the selection, otherwise O(rows · levels · log).
  /// - Parameters:
  ///   - checkRoom: throws if so many rows may not be selected.
  ///   - mayName: whether errors may name a feed that this one shows.
  /// - Throws: `permissionDenied`, `indexOutOfRange`, `invalidParams` for several rows if only one may be selected,
  ///   `limitExceeded`.
  public func select(
    _ paths: [IndexPath], namedBy member: String = "at",
    checkRoom: (_ count: Int) throws(FeedError) -> Void = { _ throws(FeedError) in },
    mayName: (Feed) -> Bool = { _ in true }, _ pace: Pace = Pace()
  ) throws(FeedError) -> Bool {
    try checkMaySelect()
    try check(paths)
    let wanted = paths.ascending()
    if !behaviours.multiple && wanted.count > 1 {
      throw .invalidParams(
        member: member, reason: "names several rows, and feed \"\(name)\" is defined with \"multiple\": false")
    }
    if !behaviours.multiple && wanted.isEmpty { return false }
    var trace = SelectionTrace(pace)
    let replaced = try checkOrigins(of: wanted, namedBy: member, mayName, &trace)
    guard behaviours.multiple else {
      try checkRoom(wanted.count)
      return setSelection(wanted)
    }
    var kept = selection
    try remove(replaced, from: &kept, &trace)
    let merged = mergeAscending(kept, wanted)
    try checkRoom(merged.count)
    return setSelection(merged)
  }

  /// Checks rows by the rules of the feeds that they come from. Returns the feeds of which only one row may be selected.
  private func checkOrigins(
    of paths: [IndexPath], namedBy member: String, _ mayName: (Feed) -> Bool, _ trace: inout SelectionTrace
  ) throws(FeedError) -> Set<FeedNumber> {
    var single: Set<FeedNumber> = []
    try trace.forEachRule(below: self, of: paths) { (feed, rows) throws(FeedError) in
      func mention() -> String { mayName(feed) ? "feed \"\(feed.name)\"" : "a feed that \"\(name)\" shows" }
      try feed.checkMaySelect(mention)
      guard rows.count == 1, single.insert(feed.number).inserted else {
        throw .invalidParams(
          member: member, reason: "names several rows of \(mention()), which is defined with \"multiple\": false")
      }
    }
    return single
  }

  /// Removes the rows that come through some feeds.
  private func remove(
    _ feeds: Set<FeedNumber>, from paths: inout [IndexPath], _ trace: inout SelectionTrace
  ) throws(FeedError) {
    if feeds.isEmpty { return }
    var isGone = [Bool](repeating: false, count: paths.count)
    try trace.forEachRule(below: self, of: paths) { (feed, rows) throws(FeedError) in
      if feeds.contains(feed.number) { for row in rows { isGone[row.index] = true } }
    }
    paths = zip(paths, isGone).filter { !$1 }.map(\.0)
  }

  /// Throws `permissionDenied` if the definition does not allow selection.
  public func checkMaySelect() throws(FeedError) { try checkMaySelect { "feed \"\(name)\"" } }

  private func checkMaySelect(_ mention: () -> String) throws(FeedError) {
    guard behaviours.selectable else {
      throw .permissionDenied(reason: "\(mention()) is defined with \"selectable\": false")
    }
  }

  /// Removes rows from the selection; rows that are not selected are ignored. Returns whether anything changed.
  public func deselect(_ paths: [IndexPath]) throws(FeedError) -> Bool {
    try check(paths)
    let gone = paths.ascending()
    var next = 0
    return setSelection(
      selection.filter { path in
        while next < gone.count, gone[next] < path { next += 1 }
        return next == gone.count || gone[next] != path
      })
  }

  public func deselectAll() -> Bool { setSelection([]) }

  public var allPaths: [IndexPath] {
    sections.enumerated().flatMap { index, section in
      (0..<section.count).map { IndexPath(section: UInt32(index), row: UInt32($0)) }
    }
  }

  /// Maps the selection through a change of this feed. It follows rows that move, also out of a deleted section. Returns whether the selected paths changed. O(selected + change).
  func carrySelection(across change: Change) -> Bool {
    if selection.isEmpty { return false }
    var map = ChangeMap(forward: change)
    var carried: [IndexPath] = []
    for path in selection {
      switch map.map(path) {
      case .at(let target): carried.append(target)
      case .listed(let place):
        let move = change.moves.countOfPrefix { $0.deleted < UInt32(place) }
        if move < change.moves.count, change.moves[move].deleted == UInt32(place) {
          carried.append(change.added[Int(change.moves[move].added)])
        }
      case .sectionGone:
        let place = change.transfers.countOfPrefix { $0.from < path }
        if place < change.transfers.count, change.transfers[place].from == path {
          carried.append(change.added[Int(change.transfers[place].added)])
        }
      }
    }
    return setSelection(carried.sorted())
  }

  /// Whether the selected rows exist, in ascending order. O(selected).
  var hasValidSelection: Bool {
    zip(selection, selection.dropFirst()).allSatisfy(<)
      && selection.allSatisfy { (try? path(section: Int($0.section), row: Int($0.row))) != nil }
  }

  private func check(_ paths: [IndexPath]) throws(FeedError) {
    _ = try self.paths(ofRows: paths.map { (Int($0.section), Int($0.row)) }, Pace())
  }
}

extension [IndexPath] {
  /// The same paths in ascending order, each once. O(n) if they are so already, otherwise O(n log n).
  fileprivate func ascending() -> [IndexPath] {
    if zip(self, dropFirst()).allSatisfy({ $0 < $1 }) { return self }
    var result: [IndexPath] = []
    for path in sorted() where result.last != path { result.append(path) }
    return result
  }
}

/// How many rows may be selected.
extension Catalog {
  /// Throws `limitExceeded` if so many rows of a feed may not be selected. Each change of the feed carries all of them.
  ///
  /// Rows of managed feeds are not there during replay, which must decide as the daemon did. So rows of feeds that show
  /// managed feeds are left out of the sums for other feeds. O(1), or O(feeds) if only these rows leave no room.
  public func checkSelected(_ count: Int, of feed: Feed) throws(FeedError) {
    guard count <= limits.maxSelected else {
      throw limits.exceeded(
        \.maxSelected, "\(counted(count, "row")) of feed \"\(feed.name)\" would be selected; select fewer")
    }
    let added = count - feed.selection.count
    guard added > 0, feed.derived != nil, let account = feed.account else { return }
    let all = (user: account.selected, all: accounts.total.selected)
    guard let error = account.noRoom(selected: added, besides: all, limits) else { return }
    if containsManagedRows(feed) { throw error }
    var stable = all
    for other in feeds.values where other.derived != nil && containsManagedRows(other) {
      stable.all -= other.selection.count
      if other.account === account { stable.user -= other.selection.count }
    }
    if let error = account.noRoom(selected: added, besides: stable, limits) { throw error }
  }
}

struct TracedRow {
  /// The path of the row in the feed below.
  let path: IndexPath
  /// The index of the row among those that are traced.
  let index: Int
}

/// Traces rows of a feed to the feeds below that restrict which rows may be selected.
///
/// All rows are traced together, from feed to feed: to look for each row alone takes long below many levels. Feeds are left out if neither
/// they nor any feed below them has such a rule. Mostly none has.
struct SelectionTrace {
  private let pace: Pace
  /// Whether any feed below a feed has a rule, as far as it is known.
  private var known: [FeedNumber: Bool] = [:]

  init(_ pace: Pace) { self.pace = pace }

  /// Calls `body` with each feed below `feed` that has a rule, and the rows that come through it, which are not empty. A feed comes before
  /// the feeds below it, and once for each way in which `feed` shows its rows.
  ///
  /// O(feeds below) if none has a rule, otherwise O(rows · levels · log).
  mutating func forEachRule(
    below feed: Feed, of rows: [IndexPath], _ body: (_ rule: Feed, _ rows: [TracedRow]) throws(FeedError) -> Void
  ) throws(FeedError) {
    guard !rows.isEmpty, hasRules(below: feed) else { return }
    try descend(from: feed, with: rows.enumerated().map { TracedRow(path: $1, index: $0) }, body)
  }

  private mutating func descend(
    from feed: Feed, with rows: [TracedRow], _ body: (_ rule: Feed, _ rows: [TracedRow]) throws(FeedError) -> Void
  ) throws(FeedError) {
    guard hasRules(below: feed), let derived = feed.derived else { return }
    for (source, rows) in derived.origins(of: rows, pace) {
      if source.behaviours.restrictSelection { try body(source, rows) }
      try descend(from: source, with: rows, body)
    }
  }

  private mutating func hasRules(below feed: Feed) -> Bool {
    if let known = known[feed.number] { return known }
    var found = false
    for (_, source) in feed.derived?.sources ?? [] {
      found = source.behaviours.restrictSelection || hasRules(below: source)
      if found { break }
    }
    pace.spend()
    known[feed.number] = found
    return found
  }
}

extension Behaviours {
  /// Whether rows of feeds above may not be selected like others.
  fileprivate var restrictSelection: Bool { !selectable || !multiple }
}

extension [TracedRow] {
  /// The rows as rows of another feed. O(rows).
  /// - Parameter paths: their paths there.
  func moved(to paths: [IndexPath]) -> [TracedRow] { zip(self, paths).map { TracedRow(path: $1, index: $0.index) } }
}

extension Feed {
  /// The paths of existing rows of the flattened order. O(rows · levels · log n).
  func paths(ofFlat rows: [Int], _ pace: Pace) -> [IndexPath] {
    rows.map(pace) { row in
      pace.spend()
      return kind.path(ofFlat: row)
    }
  }
}
