import FeedChange
import FeedJSON

/// What becomes of the rows of a managed feed when it is given others: which stay, which move, which go and which come.
///
/// Rows are told apart by identity. Sections of the same name that keep their order among each other stay; in each, the longest
/// run of rows that keep their order among each other stays. Equal texts at either end of a section are not looked at.
/// O(n) for what is equal, O(m log m) for the m rows between.
struct ManagedPlan {
  /// A row as it shall be, between the equal ends of its section.
  struct NewRow {
    /// Its place in the given rows.
    let entry: Int
    let path: IndexPath
    /// The row of the same identity that is there; nil for one that comes.
    let known: UInt32?
    /// Whether the known row keeps its place among those that stay.
    var stays = false
  }

  /// A row as it is, between the equal ends of its section.
  struct OldRow {
    let handle: UInt32
    let path: IndexPath
  }

  /// The names of the sections as they shall be.
  var names: [String] = []
  /// For every section as it shall be, the one that it is now; nil for one that comes.
  var before: [Int?] = []
  /// For every section that is there, the one that it shall be; nil for one that goes.
  var after: [Int?] = []
  /// Ascending.
  var olds: [OldRow] = []
  /// Ascending.
  var news: [NewRow] = []
  /// The rows that stay among `olds`.
  var staying: Set<UInt32> = []
  /// The rows among `olds` that are still there afterwards.
  var kept: Set<UInt32> = []

  /// Marks the rows that stay. `paths` says where the known rows are now.
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
