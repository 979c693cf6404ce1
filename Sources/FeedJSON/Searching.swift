extension Range<Int> {
  /// Returns the first index for which `belongsBefore` is false; `upperBound` if there is none. This is the binary search of
  /// the package. O(log count) calls.
  /// - Precondition: no index for which `belongsBefore` is false precedes one for which it is true.
  ///
  ///     let place = paths.indices.partitionPoint { paths[$0] < path }
  @inlinable @inline(__always)
  public func partitionPoint(_ belongsBefore: (Int) throws -> Bool) rethrows -> Int {
    var (low, high) = (lowerBound, upperBound)
    while low < high {
      let middle = low &+ (high &- low) / 2
      if try belongsBefore(middle) { low = middle &+ 1 } else { high = middle }
    }
    return low
  }
}

/// Suggestions for misspelled names.
public enum Spelling {
  /// Returns the edit distance of two words: the minimum number of bytes to insert, delete or replace, or of neighbours to
  /// swap (optimal string alignment). Only the first 64 bytes of each word count. O(n·m).
  public static func distance(_ first: String, _ second: String) -> Int {
    let (source, target) = (Array(first.utf8.prefix(64)), Array(second.utf8.prefix(64)))
    // Row i holds the distances from the first i bytes of the source to each prefix of the target.
    var rowBeforeLast: [Int] = []
    var lastRow = Array(0...target.count)
    for i in source.indices {
      var row = [i + 1]
      for j in target.indices {
        var best = min(lastRow[j] + (source[i] == target[j] ? 0 : 1), lastRow[j + 1] + 1, row[j] + 1)
        if i > 0, j > 0, source[i] == target[j - 1], source[i - 1] == target[j] {
          best = min(best, rowBeforeLast[j - 1] + 1)
        }
        row.append(best)
      }
      (rowBeforeLast, lastRow) = (lastRow, row)
    }
    return lastRow[target.count]
  }

  /// Returns the known words that begin with `word`, or whose distance to it is close to the smallest, nearest first.
  public static func similar(to word: String, in known: [String]) -> [String] {
    let scored = known.map { ($0, distance(word, $0)) }
    let close = scored.filter { name, distance in
      let shorter = min(word.count, name.count)
      return distance <= max(1, shorter / 3) && distance < shorter || !word.isEmpty && name.hasPrefix(word)
    }
    let nearest = close.map(\.1).min() ?? 0
    let best = close.filter { $0.1 <= nearest + 1 || !word.isEmpty && $0.0.hasPrefix(word) }
    return best.sorted { ($0.1, $0.0) < ($1.1, $1.0) }.map(\.0)
  }

  /// Returns `; did you mean inbox or inbox/urgent?`, or `otherwise` if no known word is similar.
  /// - Parameter prefix: what each suggestion begins with.
  public static func suggestion(
    for word: String, in known: [String], prefix: String = "", otherwise: String = ""
  ) -> String {
    let similar = similar(to: word, in: known).prefix(3).map { prefix + $0 }
    return similar.isEmpty ? otherwise : "; did you mean \(similar.joined(separator: " or "))?"
  }

  /// Returns the known name with the smallest distance from `name`, ignoring case; nil if more than about a third of the
  /// bytes differ.
  public static func nearest(to name: String, in known: [String]) -> String? {
    let wanted = name.lowercased()
    let ranked = known.map { (name: $0, distance: distance(wanted, $0.lowercased())) }
    guard let best = ranked.min(by: { $0.distance < $1.distance }) else { return nil }
    return best.distance <= max(1, min(wanted.utf8.count, best.name.utf8.count) / 3 + 1) ? best.name : nil
  }
}
