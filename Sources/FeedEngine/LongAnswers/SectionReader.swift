import FeedModel

/// Reads the rows of all sections of a snapshot in order, in parts.
struct SectionReader {
  /// What is read, in order: for each section its beginning, its rows and its end.
  enum Item {
    case begin(section: Int)
    case row(Row)
    case end
  }

  /// The number of short rows that are read between two looks at the budget.
  private static let rowsAtOnce = 16
  /// The bytes of a row above which rows are read one at a time.
  private static let longRow = 4096

  private let snapshot: FeedSnapshot
  private var section = 0
  private var hasBegun = false
  private var step = 1

  init(_ snapshot: FeedSnapshot) {
    self.snapshot = snapshot
  }

  /// Reads for about `budget` units of work, but at least one row. Returns whether everything was read.
  mutating func advance(budget: Int, _ body: (Item) -> Void) -> Bool {
    var left = max(1, budget)
    while section < snapshot.sectionCounts.count && left > 0 {
      if !hasBegun {
        hasBegun = true
        left -= 1
        body(.begin(section: section))
      }
      var (longest, bytes) = (0, 0)
      // Sections without rows are not read.
      if section == snapshot.section {
        let count = snapshot.next(max: min(max(1, left), step)) { row in
          longest = max(longest, row.text.count)
          bytes += row.text.count
          body(.row(row))
        }
        left -= WorkCost.reading(count, bytes: bytes)
      }
      step = longest > Self.longRow ? 1 : Self.rowsAtOnce
      if section < snapshot.section {
        body(.end)
        section += 1
        hasBegun = false
      }
    }
    return section == snapshot.sectionCounts.count
  }
}
