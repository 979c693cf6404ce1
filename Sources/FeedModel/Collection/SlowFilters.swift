/// The sizes of elements over which the filters of collections may take many steps.
///
/// Invariant: `smallest` is the least ``RowStore/slowSize`` of all feeds of the table.
struct SlowFilters {
  private(set) var smallest = Int.max

  /// Follows that a feed was added to the table, or removed. O(1), or O(feeds) if one with the least size was removed.
  mutating func follow(_ feed: Feed, in table: FeedTable) {
    guard let size = feed.kind.rows?.slowSize, size <= smallest, size < .max else { return }
    if table.byName[feed.name] === feed { smallest = size } else { refresh(from: table) }
  }

  /// Follows a change of definitions. O(feeds).
  mutating func refresh(from table: FeedTable) {
    smallest = table.all.reduce(.max) { min($0, $1.kind.rows?.slowSize ?? .max) }
  }

  /// O(feeds).
  func checkInvariants(_ table: FeedTable) {
    var fresh = SlowFilters()
    fresh.refresh(from: table)
    precondition(smallest == fresh.smallest, "the size of elements for slow filters is out of date")
  }
}

extension CollectionDefinition {
  /// The sizes of elements that are told apart.
  private static let sizes = (5..<15).map { 1 << $0 }
  /// The steps that take about two milliseconds.
  private static let manySteps = 50_000

  /// The bytes of the shortest elements over which the filters may take long, rounded down to a power of two; `Int.max` if
  /// there are none shorter than 16 KiB. O(bytes of the filters).
  var slowSize: Int {
    let filters = bins.compactMap(\.filter).filter { !$0.isShort }
    if filters.isEmpty { return .max }
    return Self.sizes.first { size in
      filters.reduce(0) { min($0 + $1.mostSteps(over: 2 * size), 1 << 50) } >= Self.manySteps
    } ?? .max
  }
}

extension Catalog {
  /// Whether an update of `bytes` bytes may take long in some collection. O(1).
  public func mayHaveSlowFilters(for bytes: Int) -> Bool { bytes >= slowFilters.smallest }
}

extension Feed {
  /// Whether the filters of the feed may take long over an element of `bytes` bytes. O(1).
  public func hasSlowFilters(for bytes: Int) -> Bool { bytes >= kind.rows?.slowSize ?? .max }
}
