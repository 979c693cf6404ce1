/// Finds what somebody who misspelt a name may have meant.
enum NearestName {
  /// The known name with the fewest letters to change, if it is near enough. O(names · length²).
  static func find(_ name: String, in known: [String]) -> String? {
    let wanted = Array(name.lowercased().utf8.prefix(64))
    let ranked = known.map { (name: $0, distance: distance(wanted, Array($0.lowercased().utf8))) }
    guard let best = ranked.min(by: { $0.distance < $1.distance }) else { return nil }
    return best.distance <= max(1, min(wanted.count, best.name.utf8.count) / 3 + 1) ? best.name : nil
  }

  /// Letters to insert, delete or exchange (Levenshtein).
  private static func distance(_ a: [UInt8], _ b: [UInt8]) -> Int {
    var row = Array(0...b.count)
    for (i, x) in a.enumerated() {
      var diagonal = row[0]
      row[0] = i + 1
      for (j, y) in b.enumerated() {
        let above = row[j + 1]
        row[j + 1] = x == y ? diagonal : min(diagonal, above, row[j]) + 1
        diagonal = above
      }
    }
    return row[b.count]
  }
}
