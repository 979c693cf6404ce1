import FeedChange
import FeedJSON
import FeedQuery

/// The definition of a view and its source. Compared by identity.
final class ViewPlan {
  let definition: ViewDefinition
  let source: Feed

  init(_ definition: ViewDefinition, source: Feed) {
    (self.definition, self.source) = (definition, source)
  }
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
    defer { pace.didJudge(steps: maxSteps &- steps) }
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

  /// Computes ``key`` for an element that was accepted before.
  func makeKey(_ text: ElementText) {
    keys.removeAll(keepingCapacity: true)
    guard order != nil, let view = try? scanner.scan(text.text) else { return }
    appendKey(of: view)
  }

  /// The key of the last element; empty without a sort. Valid until the next call.
  var key: UnsafeRawBufferPointer {
    order == nil ? UnsafeRawBufferPointer(start: nil, count: 0) : SortOrder.key(0, in: keys.bytes)
  }

  /// The first bytes of ``key``. No key is a prefix of another, so equal prefixes of keys that are not long mean equal
  /// keys.
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
