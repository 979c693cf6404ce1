import FeedJSON

/// One row of a slots list: a content type and a row of that content.
public struct SlotsItem: Hashable, Sendable {
  public var type: Int
  /// The row in the content of that type, from 0.
  public var index: Int

  public init(type: Int, index: Int) {
    self.type = type
    self.index = index
  }
}

/// A number of equal, consecutive passes. The list is periodic from one exhaustion of a type to the next.
struct SlotsRun: Sendable {
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
    /// The first row of the first pass, before fixed rows are inserted, and the number of rows of a pass.
    let start, length: Int
    let passes: Int
    /// The first row of the type that the run shows.
    let first: Int
    /// Where `slots` has the positions of the type in a pass, ascending.
    let slots: Range<Int>

    var end: Int { start &+ passes &* length }

    /// The pass that shows a row of the type, and the index of its position among those of the type.
    @inline(__always)
    func place(of row: Int) -> (pass: Int, slot: Int) {
      // Most types have one position in a pass. A division takes longer than the rest of the search.
      if slots.count == 1 { return (row &- first, 0) }
      let (pass, slot) = (row &- first).quotientAndRemainder(dividingBy: slots.count)
      return (pass, slot)
    }
  }

  public let count: Int

  private let runs: [SlotsRun]
  /// The appearances of all types, type by type, where those of each type are, and the positions of all. Flat lists: a list in
  /// another one costs a count of references for each look at it.
  private let appearances: [Appearance]
  private let ofType: [Range<Int>]
  private let slots: [Int]
  /// The number of rows before fixed rows are inserted.
  let baseCount: Int
  let fixed: SlotsFixedRows

  /// Creates the layout of contents with these row counts. `counts` has one entry for every type of the rule.
  /// - Parameter former: a layout of the same rule, whose fixed rows are changed as far as they differ. O(pattern length ·
  ///   types + fixed rows that come or go).
  public init(_ rule: SlotsRule, counts: [Int], former: SlotsLayout? = nil) {
    var builder = SlotsBuilder(rule, counts: counts)
    let mayHaveFixed = builder.build()
    let runs = builder.runs
    self.runs = runs
    baseCount = runs.last?.end ?? 0
    (appearances, ofType, slots) = Self.appearances(in: runs, types: counts.count)
    fixed = SlotsFixedRows(
      rule.insertions, used: builder.used, counts: mayHaveFixed ? counts : nil, baseCount: baseCount,
      former: former?.fixed)
    count = baseCount + fixed.count
  }

  private static func appearances(
    in runs: [SlotsRun], types: Int
  ) -> (all: [Appearance], ofType: [Range<Int>], slots: [Int]) {
    var byType = [[(run: Int, first: Int, slots: [Int])]](repeating: [], count: types)
    for (index, run) in runs.enumerated() {
      for (slot, emission) in run.emissions.enumerated() {
        let last = byType[emission.type].count - 1
        if last >= 0 && byType[emission.type][last].run == index {
          byType[emission.type][last].slots.append(slot)
        } else {
          byType[emission.type].append((index, emission.first, [slot]))
        }
      }
    }
    var result: (all: [Appearance], ofType: [Range<Int>], slots: [Int]) = ([], [], [])
    for found in byType {
      result.ofType.append(result.all.count..<result.all.count + found.count)
      for (run, first, slots) in found {
        let places = result.slots.count..<result.slots.count + slots.count
        let (start, length, passes) = (runs[run].start, runs[run].emissions.count, runs[run].passes)
        result.all.append(Appearance(start: start, length: length, passes: passes, first: first, slots: places))
        result.slots += slots
      }
    }
    return result
  }

  /// The item at a row in `0..<count`. O(log(pattern length · types · fixed)).
  public func item(at row: Int) -> SlotsItem {
    precondition(row >= 0 && row < count, "row out of range")
    if let item = fixed.item(at: row) { return item }
    let (run, offset, _) = stretch(atBase: base(of: row))
    return runs[run].item(at: offset)
  }

  /// The row that shows an item; nil if no row does. O(log(pattern length · types · fixed)).
  public func row(of item: SlotsItem) -> Int? {
    if let base = base(of: item) { return row(ofBase: base) }
    return fixed.row(of: item)
  }

  // MARK: Rows without the fixed rows

  /// The number of rows before `row` that are not fixed.
  func base(of row: Int) -> Int { row - fixed.count(before: row) }

  /// The row that is number `base` without the fixed rows.
  func row(ofBase base: Int) -> Int { base + fixed.count(beforeBase: base) }

  /// The rows of a type before row `base` without the fixed rows, maybe the end. O(log (pattern length · types)).
  ///
  /// Without the fixed rows, a list shows the rows of each type in order from the first.
  func count(of type: Int, beforeBase base: Int) -> Int {
    let place = ofType[type].partitionPoint { appearances[$0].start < base } - 1
    guard place >= ofType[type].lowerBound else { return 0 }
    let appearance = appearances[place]
    let offset = min(base, appearance.end) - appearance.start
    let (pass, slot) = offset.quotientAndRemainder(dividingBy: appearance.length)
    let before = appearance.slots.partitionPoint { slots[$0] < slot } - appearance.slots.lowerBound
    return appearance.first + pass * appearance.slots.count + before
  }

  /// The rows of a type that the list shows in `range`, without fixed rows.
  func contentRows(of type: Int, in range: Range<Int>) -> Range<Int> {
    count(of: type, beforeBase: base(of: range.lowerBound))..<count(of: type, beforeBase: base(of: range.upperBound))
  }

  /// The row of an item, without the fixed rows; nil if it is fixed or not shown.
  func base(of item: SlotsItem) -> Int? {
    guard let appearance = appearance(of: item) else { return nil }
    let (pass, slot) = appearance.place(of: item.index)
    guard pass < appearance.passes else { return nil }
    return appearance.start &+ pass &* appearance.length &+ slots[appearance.slots.lowerBound &+ slot]
  }

  /// The last appearance that begins at or before an item.
  private func appearance(of item: SlotsItem) -> Appearance? {
    guard item.index >= 0, item.type >= 0, item.type < ofType.count else { return nil }
    let places = ofType[item.type]
    let place = places.partitionPoint { appearances[$0].first <= item.index } &- 1
    return place >= places.lowerBound ? appearances[place] : nil
  }

  /// Rows of a content that the list shows one after another.
  struct Block {
    fileprivate(set) var type = -1
    /// The first row in the content, and the row of the list that shows it.
    fileprivate(set) var first = 0
    fileprivate(set) var row = 0
    fileprivate(set) var count = 0

    /// The row that shows an item of the block; nil for other items.
    @inline(__always)
    func row(of item: SlotsItem) -> Int? {
      let offset = item.index &- first
      return item.type == type && offset >= 0 && offset < count ? row &+ offset : nil
    }
  }

  /// The block with an item; nil if the list shows others beside it.
  func block(with item: SlotsItem) -> Block? {
    guard fixed.count == 0, let appearance = appearance(of: item), appearance.slots.count == appearance.length else {
      return nil
    }
    return Block(
      type: item.type, first: appearance.first, row: appearance.start, count: appearance.passes &* appearance.length)
  }

  /// The run of a row without the fixed rows, its offset in the run, and the number of rows to the end of the run.
  func stretch(atBase base: Int) -> (run: Int, offset: Int, count: Int) {
    let index = runs.countOfPrefix { $0.start <= base } - 1
    return (index, base - runs[index].start, runs[index].end - base)
  }

  func run(_ index: Int) -> SlotsRun { runs[index] }
}

extension Array {
  /// The number of leading elements that satisfy `isBefore`; no later element may satisfy it. O(log n).
  func countOfPrefix(where isBefore: (Element) -> Bool) -> Int { indices.partitionPoint { isBefore(self[$0]) } }
}
