/// Suggestions for misspelt names.
public enum Spelling {
  /// The number of bytes to insert, delete, replace or swap with a neighbour to turn one word into the other (optimal string
  /// alignment). O(n·m) on the first 64 bytes.
  public static func distance(_ first: String, _ second: String) -> Int {
    let (a, b) = (Array(first.utf8.prefix(64)), Array(second.utf8.prefix(64)))
    var beforeLast: [Int] = []
    var last = Array(0...b.count)
    for i in a.indices {
      var row = [i + 1]
      for j in b.indices {
        var best = min(last[j] + (a[i] == b[j] ? 0 : 1), last[j + 1] + 1, row[j] + 1)
        if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, beforeLast[j - 1] + 1) }
        row.append(best)
      }
      (beforeLast, last) = (last, row)
    }
    return last[b.count]
  }

  /// The known name that is most like `name`, ignoring case; nil when more than about a third of it differs.
  public static func nearest(to name: String, in known: [String]) -> String? {
    let wanted = name.lowercased()
    let ranked = known.map { (name: $0, distance: distance(wanted, $0.lowercased())) }
    guard let best = ranked.min(by: { $0.distance < $1.distance }) else { return nil }
    return best.distance <= max(1, min(wanted.utf8.count, best.name.utf8.count) / 3 + 1) ? best.name : nil
  }
}
