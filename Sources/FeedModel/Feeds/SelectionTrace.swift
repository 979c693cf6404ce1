import FeedChange

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
