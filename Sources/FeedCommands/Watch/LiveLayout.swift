/// The visible sections, and the number of visible rows of each.
///
/// If there is room for a heading and a row of every section, all sections are visible: short ones are complete, and
/// long ones share the rest equally. Otherwise as many sections are visible as have room for a few rows, around the
/// section with the focus.
struct LiveLayout: Equatable {
  /// The index of the first visible section.
  private(set) var first = 0
  /// The number of visible rows of each visible section.
  private(set) var rooms: [Int] = []
  /// The number of sections that do not fit.
  private(set) var hiddenSections = 0

  /// The visible sections.
  var shown: Range<Int> { first..<first + rooms.count }

  /// - Parameters:
  ///   - first: the first visible section of the last drawing.
  ///   - focus: a section that must be visible.
  init(counts: [Int], height: Int, first previous: Int = 0, focus: Int? = nil) {
    var left = height
    let needed = counts.reduce(0) { $0 + min($1, 1) + 1 }
    if needed <= height {
      rooms = [Int](repeating: 0, count: counts.count)
    } else {
      // One line shows the number of hidden sections.
      left = max(height - 1, 0)
      rooms = [Int](repeating: 0, count: min(left == 0 ? 0 : max(left / 3, 1), counts.count))
      hiddenSections = counts.count - rooms.count
      if hiddenSections == 0 { left = height }
      first = previous
      if let focus { first = max(min(first, focus), focus - rooms.count + 1) }
      first = max(0, min(first, hiddenSections))
    }
    left -= rooms.count
    var open = shown.sorted { counts[$0] < counts[$1] }[...]
    // Shortest section first: the rows that it does not need are for longer ones.
    while let section = open.first {
      rooms[section - first] = min(counts[section], left / open.count)
      left -= rooms[section - first]
      open = open.dropFirst()
    }
    // Distributes the remainder of the division.
    for section in shown where left > 0 && rooms[section - first] < counts[section] {
      rooms[section - first] += 1
      left -= 1
    }
  }
}
