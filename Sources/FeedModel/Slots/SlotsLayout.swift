import FeedJSON

/// One row of a slots list: a content type and a row of that content.
public struct SlotsItem: Hashable, Sendable {
  /// The index of the content type.
  public var type: Int
  /// The row in the content of that type, from 0.
  public var index: Int

  /// The row `index` of `type`.
  public init(type: Int, index: Int) {
    self.type = type
    self.index = index
  }
}

/// A number of equal, consecutive passes. The list is periodic from one exhaustion of a type to the next.
struct SlotsRun: Sendable {
  /// The item of one row of a pass.
  struct Emission: Sendable {
    /// The row of the type that the first pass shows here.
    var first: Int
    var type: Int
    /// The number of rows of the type in a pass, by which the row grows from one pass to the next.
    var step: Int
  }

  /// The first row of the first pass, before fixed rows are inserted.
  let start: Int
  let passes: Int
  let emissions: [Emission]

  /// The number of rows of all passes, never 0.
  var count: Int { passes * emissions.count }
  var end: Int { start + count }

  /// The item at `offset` in the run.
  @inline(__always)
  func item(at offset: Int) -> SlotsItem {
    let (pass, slot) = offset.quotientAndRemainder(dividingBy: emissions.count)
    let emission = emissions[slot]
    return SlotsItem(type: emission.type, index: emission.first + pass * emission.step)
  }
}

/// The positions of the rows of several contents in one list, computed by arithmetic without building the list.
///
/// Created for every state of the contents: O(pattern length · types), whatever the row counts. Immutable, so a layout
/// from before a commit still gives the former positions.
public final class SlotsLayout: Sendable {
  /// The rows of one type in one run.
  private struct Appearance {
    var run: Int
    /// The first row of the type that the run shows.
    var first: Int
    /// The positions of the type in a pass, ascending.
    var slots: [Int]
  }

  /// The number of rows of the list.
  public let count: Int

  private let runs: [SlotsRun]
  private let appearances: [[Appearance]]
  /// The number of rows before fixed rows are inserted.
  private let baseCount: Int
  /// The positions of the fixed rows in the list, ascending, and their items.
  private let fixedRows: [Int]
  private let fixedItems: [SlotsItem]
  /// For each type with fixed rows its first row that one of them shows, and where they stand, ascending.
  private let fixedOfType: [Int: (first: Int, rows: [Int])]

  /// Creates the layout of contents with these row counts. `counts` has one entry for every type of the rule.
  public init(_ rule: SlotsRule, counts: [Int]) {
    var builder = SlotsBuilder(rule, counts: counts)
    let mayHaveFixed = builder.build()
    let runs = builder.runs
    self.runs = runs
    baseCount = runs.last?.end ?? 0
    appearances = Self.appearances(in: runs, types: counts.count)

    var rows: [Int] = []
    var items: [SlotsItem] = []
    var used = builder.used
    var ofType: [Int: (first: Int, rows: [Int])] = [:]
    // The number of types of which more rows can be inserted.
    var waiting = mayHaveFixed ? rule.insertedTypes.count { used[$0] < counts[$0] } : 0
    for (position, type) in rule.insertions {
      // The list grows by one row for each that is inserted, so a position beyond its end is never reached.
      if waiting == 0 || position > baseCount + rows.count { break }
      guard used[type] < counts[type] else { continue }
      ofType[type, default: (used[type], [])].rows.append(position)
      rows.append(position)
      items.append(SlotsItem(type: type, index: used[type]))
      used[type] += 1
      if used[type] == counts[type] { waiting -= 1 }
    }
    fixedRows = rows
    fixedItems = items
    fixedOfType = ofType
    count = baseCount + rows.count
  }

  /// The positions of the fixed rows that are in the list, ascending.
  var fixedPositions: [Int] { fixedRows }

  private static func appearances(in runs: [SlotsRun], types: Int) -> [[Appearance]] {
    var result = [[Appearance]](repeating: [], count: types)
    for (index, run) in runs.enumerated() {
      for (slot, emission) in run.emissions.enumerated() {
        let last = result[emission.type].count - 1
        if last >= 0 && result[emission.type][last].run == index {
          result[emission.type][last].slots.append(slot)
        } else {
          result[emission.type].append(Appearance(run: index, first: emission.first, slots: [slot]))
        }
      }
    }
    return result
  }

  /// The item at a row in `0..<count`. O(log(pattern length · types)).
  public func item(at row: Int) -> SlotsItem {
    precondition(row >= 0 && row < count, "row out of range")
    switch stretch(at: row) {
    case .fixed(let item): return item
    case .periodic(let run, let offset, _): return runs[run].item(at: offset)
    }
  }

  /// The row that shows an item; nil if no row does. O(log(pattern length · types)).
  public func row(of item: SlotsItem) -> Int? {
    guard item.index >= 0, item.type >= 0, item.type < appearances.count else { return nil }
    // Accessed in place: copying parts would retain their lists.
    let type = item.type
    let place = appearances[type].indices.partitionPoint { appearances[type][$0].first <= item.index } &- 1
    if place >= 0 {
      let run = appearances[type][place].run
      let (pass, slot) = (item.index - appearances[type][place].first)
        .quotientAndRemainder(dividingBy: appearances[type][place].slots.count)
      if pass < runs[run].passes {
        return final(runs[run].start + pass * runs[run].emissions.count + appearances[type][place].slots[slot])
      }
    }
    guard let fixed = fixedOfType[type], (0..<fixed.rows.count).contains(item.index - fixed.first) else { return nil }
    return fixed.rows[item.index - fixed.first]
  }

  /// The final row of a row that is numbered without the fixed rows.
  private func final(_ base: Int) -> Int {
    base + fixedRows.indices.partitionPoint { fixedRows[$0] - $0 <= base }
  }

  /// A range of rows that follow the same rule.
  enum Stretch {
    /// A single fixed row.
    case fixed(SlotsItem)
    /// Rows of a run: the offset of the first one in the run, and their number.
    case periodic(run: Int, offset: Int, count: Int)
  }

  /// The longest stretch that begins at a row in `0..<count`.
  func stretch(at row: Int) -> Stretch {
    let fixedBefore = fixedRows.countOfPrefix { $0 < row }
    let isBounded = fixedBefore < fixedRows.count
    if isBounded && fixedRows[fixedBefore] == row { return .fixed(fixedItems[fixedBefore]) }
    let base = row - fixedBefore
    let index = runs.countOfPrefix { $0.start <= base } - 1
    let toNextFixed = isBounded ? fixedRows[fixedBefore] - row : count - row
    return .periodic(run: index, offset: base - runs[index].start, count: min(runs[index].end - base, toNextFixed))
  }

  func run(_ index: Int) -> SlotsRun { runs[index] }
}

extension Array {
  /// The number of leading elements that satisfy `isBefore`; no later element may satisfy it. O(log n).
  func countOfPrefix(where isBefore: (Element) -> Bool) -> Int {
    indices.partitionPoint { isBefore(self[$0]) }
  }
}
