import FeedChange

/// A change of one flat list, which maps the rows of the list across it.
///
/// A class, so that an array of changes is copied and searched without counting references to the lists of each.
final class FlatChange: Sendable {
  /// The rows after the change that may show other elements: updated ones and moved ones, unless the move keeps
  /// the element.
  let replaced: [Int]
  private let deleted: [Int]
  private let added: [Int]
  /// The new rows of moved rows, by index in `deleted`; -1 for rows that are gone. Empty if no row moved.
  private let moved: [Int]
  /// For each entry of `deleted`, the end of the moved rows from there on that stay next to each other. Empty if no row moved.
  private let movedEnds: [Int]

  /// The change that changes nothing.
  static let none = FlatChange(.empty)

  /// Uses the rows of the paths only: all sections are taken for one list. O(size).
  init(_ change: borrowing Change, _ pace: Pace? = nil) {
    deleted = Self.rows(change.deleted, pace)
    added = Self.rows(change.added, pace)
    var replaced = Self.rows(change.updated, pace)
    var moved = [Int](repeating: -1, count: change.moves.isEmpty ? 0 : deleted.count)
    for index in change.moves.indices {
      let move = change.moves[index]
      let row = Int(change.added[Int(move.added)].row)
      moved[Int(move.deleted)] = row
      if !move.keepsElement { replaced.append(row) }
      if index & 127 == 127 { pace?.spend() }
    }
    self.replaced = replaced
    self.moved = moved
    movedEnds = Self.ends(of: moved, deleted, pace)
  }

  /// For each deleted row, the end of the rows from there on that move by the same distance.
  private static func ends(of moved: [Int], _ deleted: [Int], _ pace: Pace?) -> [Int] {
    var ends: [Int] = []
    ends.reserveCapacity(moved.count)
    for place in moved.indices.reversed() {
      let isJoined =
        place + 1 < moved.count && moved[place] >= 0 && moved[place + 1] == moved[place] + 1
        && deleted[place + 1] == deleted[place] + 1
      ends.append(isJoined ? ends[ends.count - 1] : deleted[place] + 1)
      if place & 127 == 127 { pace?.spend() }
    }
    return ends.reversed()
  }

  private static func rows(_ paths: [IndexPath], _ pace: Pace?) -> [Int] {
    if paths.isEmpty { return [] }
    var rows: [Int] = []
    rows.reserveCapacity(paths.count)
    for path in paths {
      rows.append(Int(path.row))
      if rows.count & 255 == 0 { pace?.spend() }
    }
    return rows
  }

  /// Whether no row was added, deleted or moved.
  var isIdentity: Bool { deleted.isEmpty && added.isEmpty }

  /// Maps a row. Returns its new row and the end of the range that shifts with it: all rows from `index` to `end` shift
  /// by the same distance. Returns nil if the row was deleted. O(log size).
  func map(_ index: Int) -> (index: Int, end: Int)? {
    let gone = deleted.countOfPrefix { $0 < index }
    if gone < deleted.count, deleted[gone] == index {
      return moved.isEmpty || moved[gone] < 0 ? nil : (moved[gone], movedEnds[gone])
    }
    let rank = index - gone
    let come = countOfAdded(upTo: rank)
    var end = gone < deleted.count ? deleted[gone] : Int.max
    if come < added.count { end = min(end, index + added[come] - come - rank) }
    return (rank + come, end)
  }

  /// The number of added rows before the surviving row with a rank.
  private func countOfAdded(upTo rank: Int) -> Int { added.indices.partitionPoint { added[$0] - $0 <= rank } }
}
