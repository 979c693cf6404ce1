import FeedChange

/// A copy of a feed, kept right by what a watch sends: snapshots, deltas and bookmarks, in the order they come.
///
/// A value without any connection of its own. Every `apply` either takes the whole message in or throws a ``FeedFault``
/// and leaves the mirror as it was; after a fault, start over with a new watch. The rows of a snapshot become visible
/// with its last part, so that the mirror always shows one revision of the feed.
public struct Mirror: Sendable {
  /// A section of the feed, in flattened order.
  public struct Section: Sendable {
    public var name: String
    public var rows: ChunkedList<Row>
  }

  public let feed: String
  /// The rows of ``WatchProgress/revision``; those of the last complete state while a snapshot is under way.
  public internal(set) var sections: [Section] = []
  /// The rows that are selected, as the daemon told last; it tells again when a change moves them.
  public internal(set) var selected: [IndexPath] = []
  /// How far the mirror is.
  public internal(set) var progress: WatchProgress
  /// The snapshot under way.
  var incoming: IncomingSnapshot

  /// An empty mirror for a watch that has just been answered and was not resumed.
  /// - Parameter initial: whether a snapshot was asked for; without one the mirror is right only for a feed that is
  ///   empty.
  public init(_ start: WatchStart, initial: Bool = true) {
    feed = start.feed
    progress = WatchProgress(start, since: nil, initial: initial)
    incoming = IncomingSnapshot(sections: start.sections)
    if !initial { sections = incoming.emptySections }
  }

  /// Goes on with another watch of the same feed, after a connection was lost, that was asked for with `since` of the
  /// mirror's own position and a snapshot in case that is out of reach.
  public mutating func restart(_ start: WatchStart) {
    progress.restart(start, initial: true)
    incoming = IncomingSnapshot(sections: start.sections)
  }

  /// Whether a snapshot was complete: the rows are those of some revision of the feed.
  public var isShown: Bool { progress.position != nil }

  /// How many rows there are. O(sections).
  public var count: Int { sections.reduce(0) { $0 + $1.rows.count } }

  /// The row at `path`; nil when there is none.
  public subscript(path: IndexPath) -> Row? {
    guard Int(path.section) < sections.count, Int(path.row) < sections[Int(path.section)].rows.count else { return nil }
    return sections[Int(path.section)].rows[Int(path.row)]
  }
}
