import FeedChange
import FeedModel

/// Composing the changes that a watch missed.
///
/// Nothing is kept of a composition that is not complete: a user can have many watches, and each would keep its rows.
extension FeedChannel {
  /// The largest composed change that is sent: a snapshot of the feed is shorter than a longer one.
  private var maxSize: Int { max(1024, feed.count) }

  /// Whether the changes since a revision are so many, or have so many rows, that they are composed in parts. O(log changes + fewRows).
  ///
  /// - Parameter fewRows: the rows that are composed at once.
  func missedMuch(since revision: UInt64, fewRows: Int) -> Bool {
    guard let history = feed.history, history.reaches(revision) else { return false }
    return history.lists(moreThan: fewRows, from: history.place(after: revision))
  }

  /// Composes the changes of the feed from one revision to another. Watches of counts get only the changes of sections.
  ///
  /// Returns nil if the history no longer reaches the revision, or if the change would be larger than a snapshot.
  ///
  /// - Parameter pace: stops between two steps. The feed may change meanwhile.
  func change(from: UInt64, to revision: UInt64, _ pace: Pace? = nil) -> Change? {
    guard let history = feed.history, history.reaches(from) else { return nil }
    var accumulator = ChangeAccumulator()
    var reached = from
    while reached < revision {
      guard let history = feed.history, history.reaches(reached),
        let (change, to) = history.change(at: history.place(after: reached))
      else { return nil }
      if isCounting {
        accumulator.add(change.withoutRows) { pace?.didCompose() }
      } else {
        accumulator.add(change) { pace?.didCompose() }
      }
      reached = to
      // The upper bound falls when the next changes are composed.
      if accumulator.size > 2 * maxSize { return nil }
      pace?.didCompose()
    }
    if accumulator.size > maxSize { return nil }
    return accumulator.finish { pace?.didCompose() }.normalizingMoves { pace?.didCompareMoves() }
  }
}
