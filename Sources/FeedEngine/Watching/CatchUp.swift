import FeedChange
import FeedModel

/// Composes the changes that a watch missed, a bounded number at a time, so that long catch-up does not block the loop.
struct CatchUp {
  private var accumulator = ChangeAccumulator()
  /// The revision up to which changes have been composed.
  private(set) var reached: UInt64

  /// Starts from the revision of the watcher's copy.
  init(from revision: UInt64) {
    reached = revision
  }

  enum Outcome {
    /// There are more changes; continue in the next turn.
    case more
    /// The composed change has many rows. The rest is done in parts.
    case long
    /// The composed change up to the feed's revision.
    case complete(Change)
    /// The history no longer reaches this revision, or the change would be larger than a snapshot.
    case outOfReach
  }

  /// Composes changes of `feed` to one with at most `maxSize` rows.
  /// - Parameters:
  ///   - budget: the changes and their rows that may be composed. Each composed one is subtracted. It ends below 0 if
  ///     the last change has more rows than were left.
  ///   - fewRows: the rows of a composed change that is not long.
  mutating func advance(_ feed: Feed, budget: inout Int, maxSize: Int, fewRows: Int = .max) -> Outcome {
    guard let history = feed.history, history.reaches(reached) else { return .outOfReach }
    var place = history.place(after: reached)
    while place < history.endPlace, budget > 0 {
      guard let (change, to) = history.change(at: place) else { return .outOfReach }
      if change.size > fewRows - accumulator.size { return .long }
      budget -= 1 + change.size
      accumulator.add(change)
      reached = to
      place += 1
    }
    if accumulator.size > maxSize { return .outOfReach }
    if place < history.endPlace { return .more }
    return .complete(accumulator.finish().normalizingMoves())
  }

  /// Composes the changes of `feed` up to a revision. Returns nil if they are out of reach; see ``Outcome``.
  ///
  /// - Parameters:
  ///   - maxSize: the largest number of rows.
  ///   - pace: stops between two steps. The feed may change meanwhile.
  mutating func compose(_ feed: Feed, to revision: UInt64, maxSize: Int, _ pace: Pace) -> Change? {
    while reached < revision {
      guard let history = feed.history, history.reaches(reached),
        let (change, to) = history.change(at: history.place(after: reached))
      else { return nil }
      accumulator.add(change) { pace.didCompose() }
      reached = to
      // The upper bound falls when the next changes are composed.
      if accumulator.size > 2 * maxSize { return nil }
      pace.didCompose()
    }
    if accumulator.size > maxSize { return nil }
    return accumulator.finish { pace.didCompose() }.normalizingMoves { pace.didCompareMoves() }
  }
}
