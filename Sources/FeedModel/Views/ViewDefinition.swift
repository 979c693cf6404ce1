import FeedChange
import FeedJSON
import FeedQuery

/// The definition of a `view` feed: the source, the filter, the sort and the window (Protocol/README.md, "Views").
public struct ViewDefinition: Equatable, Sendable {
  public let of: String
  /// The condition on elements. If nil, every row is shown.
  public let filter: Filter?
  /// The sort terms, the most significant first. If empty, the order is that of the source.
  public let sort: [CollectionDefinition.SortTerm]
  public let window: ViewWindow

  /// The steps that following the change of one row may take.
  func stepsPerRow(_ limits: Limits) -> Int {
    let ordered = 1000 + 500 * sort.count
    guard let filter else { return ordered }
    let most = ViewJudge.maxSteps(limits)
    return ordered + (filter.isShort ? min(most, 4000) : most) + filter.testCount
  }

  /// Whether the view has neither a filter nor a sort, only a window.
  var isPlain: Bool { filter == nil && sort.isEmpty }
}

extension ViewDefinition {
  /// Reads the members of the definition.
  /// - Throws: `invalidParams` or `badQuery`.
  init(reading reader: DefinitionReader, limits: Limits) throws(FeedError) {
    let rule = "must name a feed, or a bin as collection/bin"
    guard let name = try reader.string("of", atMost: FeedName.maxReferenceLength, else: rule) else {
      throw reader.refuse("of", "is missing; give the name of the feed to show")
    }
    guard FeedName.isValidReference(name) else { throw reader.refuse("of", rule) }
    of = name
    filter = try reader.filter("filter", limits)
    sort = try CollectionDefinition.SortTerm.list(reading: reader)
    let offset = try reader.integer("offset") ?? 0
    guard offset >= 0 else { throw reader.refuse("offset", "must be a non-negative integer") }
    window = ViewWindow(offset: offset, limit: try reader.positiveInteger("limit"))
  }
}

/// The part of a list of rows that a view shows.
public struct ViewWindow: Equatable, Sendable {
  /// The number of rows before the window.
  public let offset: Int
  /// The maximum number of rows in the window; nil for no limit.
  public let limit: Int?

  /// The rows of the window in a list of `count` rows.
  func range(of count: Int) -> Range<Int> {
    let start = min(offset, count)
    return start..<(start + min(limit ?? .max, count - start))
  }

  var isWhole: Bool { offset == 0 && limit == nil }

  /// Adds the change of the window to `result`, which is empty. A row that moves past an edge is deleted or added.
  ///
  /// The rows that `whole` does not list keep their order, so each has a rank among them. The ranks in the window
  /// before and after the change determine which of them enter and leave.
  /// - Parameters:
  ///   - whole: a change of one section, as `Change.flattened` returns it.
  ///   - before: the number of rows of the list before the change.
  ///   - after: the number of rows of the list after the change.
  ///
  /// O((m + k) log m) for m listed rows and k rows that enter or leave, whatever the lengths of list and window. O(1) for a change
  /// after the window.
  func follow(_ whole: borrowing Change, before: Int, after: Int, _ pace: Pace, into result: inout Change) {
    let (old, new) = (range(of: before), range(of: after))
    if whole.isAfter(old: old.upperBound, new: new.upperBound) { return }
    let deleted = whole.deleted.map { Int($0.row) }
    let added = whole.added.map { Int($0.row) }
    let oldRanks = deleted.rank(of: old.lowerBound)..<deleted.rank(of: old.upperBound)
    let newRanks = added.rank(of: new.lowerBound)..<added.rank(of: new.upperBound)
    let leaving = deleted.listed(in: old, and: oldRanks.subtracting(newRanks))
    let entering = added.listed(in: new, and: newRanks.subtracting(oldRanks))
    result.deleted = leaving.rows.map { IndexPath(section: 0, row: UInt32($0 - old.lowerBound)) }
    result.added = entering.rows.map { IndexPath(section: 0, row: UInt32($0 - new.lowerBound)) }
    for path in whole.updated where new.contains(Int(path.row)) && oldRanks.contains(added.rank(of: Int(path.row))) {
      result.updated.append(IndexPath(section: 0, row: path.row - UInt32(new.lowerBound)))
    }
    for move in whole.moves {
      guard let from = leaving.place(ofListed: Int(move.deleted)), let to = entering.place(ofListed: Int(move.added))
      else { continue }
      result.moves.append(Move(deleted: from, added: to, keepsElement: move.keepsElement))
    }
    if !result.moves.isEmpty { result = result.normalizingMoves { pace.didCompareMoves() } }
  }
}

/// The rows of one side of a window's change: rows that the list's change lists, and rows that cross an edge.
private struct WindowRows {
  /// Ascending.
  var rows: [Int] = []
  /// The range of the list's entries that are in the window, and the index of each in `rows`.
  var listed: Range<Int>
  var places: [UInt32] = []

  func place(ofListed index: Int) -> UInt32? { listed.contains(index) ? places[index - listed.lowerBound] : nil }
}

extension Change {
  /// Whether a change of one section lists no row before these rows of the old and the new list. O(1).
  fileprivate func isAfter(old: Int, new: Int) -> Bool {
    deleted.first.map { $0.row >= old } ?? true && added.first.map { $0.row >= new } ?? true
      && updated.first.map { $0.row >= new } ?? true
  }
}

extension [Int] {
  /// The number of rows before `row` that are not in this array, which ascends. O(log n).
  fileprivate func rank(of row: Int) -> Int { row - countOfPrefix { $0 < row } }

  /// The row of the unlisted row with a rank. O(log n).
  private func row(ofRank rank: Int) -> Int { rank + indices.partitionPoint { self[$0] - $0 <= rank } }

  /// The rows of this array that are in `range`, and the unlisted rows with the ranks in `ranks`.
  fileprivate func listed(in range: Range<Int>, and ranks: [Range<Int>]) -> WindowRows {
    let (first, end) = (countOfPrefix { $0 < range.lowerBound }, countOfPrefix { $0 < range.upperBound })
    var others: [Int] = []
    for range in ranks { for rank in range { others.append(row(ofRank: rank)) } }
    var result = WindowRows(listed: first..<end)
    var next = 0
    for index in first..<end {
      while next < others.count, others[next] < self[index] {
        result.rows.append(others[next])
        next += 1
      }
      result.places.append(UInt32(result.rows.count))
      result.rows.append(self[index])
    }
    result.rows.append(contentsOf: others[next...])
    return result
  }
}

extension Range<Int> {
  /// The parts of this range outside another range, ascending.
  fileprivate func subtracting(_ other: Range<Int>) -> [Range<Int>] {
    if other.isEmpty || !overlaps(other) { return isEmpty ? [] : [self] }
    let parts = [
      lowerBound..<Swift.max(lowerBound, other.lowerBound), Swift.min(upperBound, other.upperBound)..<upperBound,
    ]
    return parts.filter { !$0.isEmpty }
  }
}

/// The definition of a view and its source. Compared by identity.
final class ViewPlan {
  let definition: ViewDefinition
  let source: Feed

  init(_ definition: ViewDefinition, source: Feed) { (self.definition, self.source) = (definition, source) }
}

/// Evaluates the filter of a view and computes sort keys.
///
/// An element for which the filter takes more than `maxSteps` steps is not accepted. The filter must not fail, because
/// the view follows a change that has already taken effect.
final class ViewJudge {
  private let filter: Filter?
  private let order: SortOrder?
  private let maxSteps: Int
  private var scanner = JSONScanner(maxDepth: Limits.largestDepth)
  private var keys = ByteBuffer()

  init(_ definition: ViewDefinition, limits: Limits) {
    filter = definition.filter
    order =
      definition.sort.isEmpty
      ? nil : SortOrder(terms: definition.sort.map { .init(path: $0.by, descending: $0.descending) })
    maxSteps = Self.maxSteps(limits)
  }

  /// The steps that the filter of a view may take over one element.
  static func maxSteps(_ limits: Limits) -> Int { min(limits.maxQuerySteps, limits.maxViewSteps) }

  /// Whether the view shows the element. If so, ``key`` is its sort key.
  func accepts(_ text: ElementText, _ pace: Pace) -> Bool {
    keys.removeAll(keepingCapacity: true)
    guard let view = try? scanner.scan(text.text, pace) else { return false }
    var steps = maxSteps
    defer { pace.didJudge(text.text, steps: maxSteps &- steps) }
    if let filter {
      guard filter.accepts(view, steps: &steps), steps >= 0 else { return false }
    }
    appendKey(of: view)
    return true
  }

  /// Sets ``key`` to the key of an element. It has as many bytes as the element, and 1 KiB, which is enough unless several terms
  /// find the same long value: the keys of all rows are in memory while these are sorted. It ends after so many steps too.
  private func appendKey(of element: JSONView) {
    var room = SortOrder.Room(bytes: element.text.count &+ Self.keyRoom, steps: Self.keySteps)
    order?.appendKey(of: element, to: &keys, within: &room)
  }

  private static let keyRoom = 1 << 10
  /// A term takes one for four members visited.
  private static let keySteps = 2_000_000

  /// The steps that the filter takes over an element, and one for the element.
  func steps(over text: ElementText, _ pace: Pace? = nil) -> Int {
    guard let view = try? scanner.scan(text.text, pace) else { return 1 }
    return steps(over: view)
  }

  func steps(over element: JSONView) -> Int {
    guard let filter else { return 1 }
    var steps = maxSteps
    _ = filter.accepts(element, steps: &steps)
    return maxSteps - max(steps, 0) + 1 + filter.testCount >> 2
  }

  func makeKey(_ text: ElementText) {
    keys.removeAll(keepingCapacity: true)
    guard order != nil, let view = try? scanner.scan(text.text) else { return }
    appendKey(of: view)
  }

  /// The key of the last element; empty without a sort. Valid until the next call.
  var key: UnsafeRawBufferPointer {
    order == nil ? UnsafeRawBufferPointer(start: nil, count: 0) : SortOrder.key(0, in: keys.bytes)
  }

  /// The first bytes of ``key``. No key is a prefix of another, so equal prefixes of short keys mean equal keys.
  var prefix: UInt64 { order == nil ? 0 : SortOrder.prefix(of: key) }
  var isLong: Bool { key.count > 8 }
}

/// Accepted rows of a source, collected to be sorted at once.
struct ViewEntries: ~Copyable {
  private struct Entry {
    let prefix: UInt64
    let start: Int
    let length: Int
    let row: UInt32
  }

  private var entries: [Entry] = []
  /// The long keys.
  private var keys = ByteBuffer()

  /// - Parameter most: the number of rows that may be added. An array that grows copies everything at once.
  init(most: Int) { entries.reserveCapacity(most) }

  /// Adds the row that `judge` accepted last. Rows must be added in the order of the source.
  mutating func append(_ row: UInt32, _ judge: ViewJudge) {
    let start = keys.count
    if judge.isLong { keys.append(judge.key) }
    entries.append(Entry(prefix: judge.prefix, start: start, length: keys.count - start, row: row))
  }

  /// The rows by sort key, then in the order of the source. O(n log n).
  mutating func sorted(_ pace: Pace = Pace()) -> [(row: UInt32, prefix: UInt64)] {
    let bytes = keys.bytes
    func key(_ entry: Entry) -> UnsafeRawBufferPointer {
      UnsafeRawBufferPointer(rebasing: bytes[entry.start..<(entry.start + entry.length)])
    }
    entries.sort(pace) { a, b in
      if a.prefix != b.prefix { return a.prefix < b.prefix }
      if a.length > 0 && b.length > 0 {
        let order = SortOrder.compare(key(a), key(b))
        if order != 0 { return order < 0 }
      }
      return a.row < b.row
    }
    var rows: [(row: UInt32, prefix: UInt64)] = []
    rows.reserveCapacity(entries.count)
    for entry in entries {
      rows.append((entry.row, entry.prefix))
      if rows.count & 31 == 0 { pace.spend() }
    }
    return rows
  }
}
