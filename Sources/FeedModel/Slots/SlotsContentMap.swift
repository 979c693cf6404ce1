import FeedChange
import FeedJSON

/// Maps the rows of one content across a change of that content.
struct SlotsContentMap {
  private let deleted: [Int]
  private let added: [Int]
  /// The new rows of moved rows, by index in `deleted`.
  private let moved: [Int: Int]

  /// Only the rows of the paths are used: `change` is that of the content as one flat list.
  init(_ change: Change) {
    deleted = change.deleted.map { Int($0.row) }
    let added = change.added.map { Int($0.row) }
    self.added = added
    var moved: [Int: Int] = [:]
    for move in change.moves { moved[Int(move.deleted)] = added[Int(move.added)] }
    self.moved = moved
  }

  /// Maps a row. Returns its new row and the end of the range that shifts with it: all rows from `index` to `end` shift
  /// by the same distance. Returns nil if the row was deleted. O(log size).
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

  /// The number of added rows before the surviving row with a rank.
  private func countOfAdded(upTo rank: Int) -> Int {
    added.indices.partitionPoint { added[$0] - $0 <= rank }
  }
}
