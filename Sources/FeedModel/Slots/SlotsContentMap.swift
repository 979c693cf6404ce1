import FeedChange
import FeedJSON

/// Carries the rows of one content type across a change of its content.
struct SlotsContentMap {
  private let deleted: [Int]
  private let added: [Int]
  /// The new rows of the moved among `deleted`, by their places there.
  private let moved: [Int: Int]

  /// `change` is of the content's rows in one flat list: of its paths only the rows count.
  init(_ change: Change) {
    deleted = change.deleted.map { Int($0.row) }
    let added = change.added.map { Int($0.row) }
    self.added = added
    var moved: [Int: Int] = [:]
    for move in change.moves { moved[Int(move.deleted)] = added[Int(move.added)] }
    self.moved = moved
  }

  /// The new row of a row, nil when it is gone, and the row after it up to which rows go along with it: between `index` and `end`
  /// all move by the same distance. O(log size).
  func map(_ index: Int) -> (index: Int, end: Int)? {
    let gone = deleted.countOfPrefix { $0 < index }
    if gone < deleted.count, deleted[gone] == index {
      return moved[gone].map { ($0, index + 1) }
    }
    let rank = index - gone
    let come = countOfAdded(upTo: rank)
    var end = gone < deleted.count ? deleted[gone] : Int.max
    if come < added.count { end = min(end, index + added[come] - come - rank) }
    return (rank + come, end)
  }

  /// How many added rows stand before the survivor of that rank.
  private func countOfAdded(upTo rank: Int) -> Int {
    added.indices.partitionPoint { added[$0] - $0 <= rank }
  }
}
