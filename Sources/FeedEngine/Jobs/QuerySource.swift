import FeedModel

/// The elements of a feed in flattened order, as of one revision, read once from the first to the last.
final class QuerySource {
  let limits: Limits
  /// Elements in all.
  let count: Int
  private let snapshot: FeedSnapshot
  private var section = 0

  var revision: UInt64 { snapshot.revision }
  var isFinished: Bool { section >= snapshot.sections.count }

  init(_ feed: Feed, limits: Limits) {
    self.limits = limits
    snapshot = feed.makeSnapshot()
    count = snapshot.sections.reduce(0) { $0 + $1.count }
  }

  /// Hands out up to `max` elements of one section; returns how many, 0 only when there are none left.
  func next(max: Int, _ body: (UnsafeRawBufferPointer) -> Void) -> Int {
    while section < snapshot.sections.count {
      let rows = snapshot.sections[section]
      let read = rows.next(max: max) { body($0.text) }
      if rows.position >= rows.count { section += 1 }
      if read > 0 { return read }
    }
    return 0
  }
}
