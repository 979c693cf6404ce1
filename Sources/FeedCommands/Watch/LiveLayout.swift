import FeedClient

/// How many rows of each section a screen shows: every section its heading, and the rest shared so that short sections
/// are whole and long ones get equal parts.
struct LiveLayout: Equatable {
  /// The rows shown of each section whose heading fits.
  private(set) var rooms: [Int] = []
  /// How many sections have no place at all.
  private(set) var hiddenSections = 0

  init(counts: [Int], height: Int) {
    // A line is needed to say that sections are hidden.
    let shown = counts.count <= height ? counts.count : max(height - 1, 0)
    hiddenSections = counts.count - shown
    var left = max(height - shown - (hiddenSections > 0 ? 1 : 0), 0)
    rooms = [Int](repeating: 0, count: shown)
    var open = Array(0..<shown).sorted { counts[$0] < counts[$1] }[...]
    // The shortest first: what one does not need goes to those that are longer.
    while let section = open.first {
      rooms[section] = min(counts[section], left / open.count)
      left -= rooms[section]
      open = open.dropFirst()
    }
    // What division left over.
    for section in 0..<shown where left > 0 && rooms[section] < counts[section] {
      rooms[section] += 1
      left -= 1
    }
  }
}
