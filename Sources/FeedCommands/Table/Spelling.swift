import FeedClient

/// How far apart two words are, for suggestions.
enum Spelling {
  /// The number of letters to insert, delete, change or swap with their neighbour. O(n·m) on the first 64 letters.
  static func distance(_ first: String, _ second: String) -> Int {
    let (a, b) = (Array(first.utf8.prefix(64)), Array(second.utf8.prefix(64)))
    var rows = [Array(0...b.count)]
    for i in a.indices {
      var row = [i + 1]
      for j in b.indices {
        var best = min(rows[i][j] + (a[i] == b[j] ? 0 : 1), rows[i][j + 1] + 1, row[j] + 1)
        if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, rows[i - 1][j - 1] + 1) }
        row.append(best)
      }
      rows.append(row)
    }
    return rows[a.count][b.count]
  }
}
