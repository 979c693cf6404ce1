import FeedChange
import FeedJSON

/// The plan of a `set` on a managed feed: the rows that stay, move, are deleted and are added.
///
/// Rows are matched by identity. Sections with the same name stay if they keep their order among each other. In each of
/// them, the longest sequence of rows that keep their order stays. The plan omits equal rows at both ends of a section.
/// O(n) for the equal rows, O(m log m) for the m rows between.
struct ManagedPlan {
  /// A new row, between the equal ends of its section.
  struct NewRow {
    /// The index of the row in the given rows.
    let entry: Int
    let path: IndexPath
    /// The existing row with the same identity; nil if the row is added.
    let known: UInt32?
    /// Whether the existing row keeps its order among the rows that stay.
    var stays = false
  }

  /// An existing row, between the equal ends of its section.
  struct OldRow {
    let handle: UInt32
    let path: IndexPath
  }

  /// The names of the new sections.
  var names: [String] = []
  /// For every new section, the index of the same old section; nil if the section is added.
  var before: [Int?] = []
  /// For every old section, the index of the same new section; nil if the section is deleted.
  var after: [Int?] = []
  /// The old rows, ascending.
  var olds: [OldRow] = []
  /// The new rows, ascending.
  var news: [NewRow] = []
  /// The rows that stay among `olds`.
  var staying: Set<UInt32> = []
  /// The rows among `olds` that still exist afterwards.
  var kept: Set<UInt32> = []

  /// Marks the rows that stay. `paths` has the current paths of the known rows.
  mutating func chooseStaying(_ paths: [UInt32: IndexPath]) {
    var start = 0
    while start < news.count {
      var end = start
      while end < news.count, news[end].path.section == news[start].path.section { end += 1 }
      chooseStaying(in: start..<end, paths)
      start = end
    }
  }

  private mutating func chooseStaying(in range: Range<Int>, _ paths: [UInt32: IndexPath]) {
    guard let first = range.first, let section = before[Int(news[first].path.section)] else { return }
    var candidates: [(place: Int, row: UInt32)] = []
    for place in range {
      guard let known = news[place].known, let path = paths[known], path.section == UInt32(section) else { continue }
      candidates.append((place, path.row))
    }
    for index in longestIncreasing(candidates.map(\.row)) {
      let place = candidates[index].place
      news[place].stays = true
      if let known = news[place].known { staying.insert(known) }
    }
  }
}
