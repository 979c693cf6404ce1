/// The rule by which the rows of several contents are interleaved in one list: Protocol/README.md, "Slots", defines how.
///
/// Types are indices, from 0, into the list of counts that a `SlotsLayout` is created with.
public struct SlotsRule: Equatable, Sendable {
  /// The types of the first pass.
  public var header: [Int]
  /// The types of every later pass.
  public var pattern: [Int] { didSet { sortInsertions() } }
  /// The types that continue when others are exhausted.
  public var repeatables: Set<Int>
  /// The type that replaces exhausted types.
  public var defaultType: Int?
  /// The types of fixed rows by their position in the finished list, from 0. Negative positions are ignored.
  public var fixed: [Int: Int] { didSet { sortInsertions() } }
  /// The entries of `fixed` that may be inserted: not at negative positions, no types of the pattern.
  private(set) var insertions = SlotsInsertions([])

  public init(
    pattern: [Int], header: [Int] = [], repeatables: Set<Int> = [], defaultType: Int? = nil, fixed: [Int: Int] = [:]
  ) {
    (self.pattern, self.header, self.repeatables, self.defaultType) = (pattern, header, repeatables, defaultType)
    self.fixed = fixed
    sortInsertions()
  }

  private mutating func sortInsertions() {
    let shown = Set(pattern)
    insertions = SlotsInsertions(
      fixed.filter { $0.key >= 0 && !shown.contains($0.value) }.map { (position: $0.key, type: $0.value) }
        .sorted { $0.position < $1.position })
  }

  public static func == (a: SlotsRule, b: SlotsRule) -> Bool {
    a.header == b.header && a.pattern == b.pattern && a.repeatables == b.repeatables && a.defaultType == b.defaultType
      && a.fixed == b.fixed
  }
}

/// Computes the runs of a slots list. It processes all passes up to the next exhaustion of a type at once.
///
/// O(pattern length · types): every pass that is processed alone exhausts a type, ends a repeatable or ends the list.
struct SlotsBuilder {
  private let rule: SlotsRule
  private let counts: [Int]
  /// The number of rows of each type that are shown so far.
  private(set) var used: [Int]
  private(set) var runs: [SlotsRun] = []
  private var live: [Bool]
  private var liveCount = 0
  /// For every type, the number of rows in the pass under construction.
  private var perPass: [Int]
  private var rows = 0

  init(_ rule: SlotsRule, counts: [Int]) {
    (self.rule, self.counts) = (rule, counts)
    used = [Int](repeating: 0, count: counts.count)
    live = [Bool](repeating: false, count: counts.count)
    perPass = used
    if rule.defaultType == nil {
      for type in rule.pattern where rule.repeatables.contains(type) && !live[type] {
        live[type] = true
        liveCount += 1
      }
    }
  }

  /// Builds all runs. Returns whether processing got beyond the header; only then fixed rows follow.
  mutating func build() -> Bool {
    if rule.pattern.isEmpty { return false }
    let (types, ended) = pass(over: rule.header)
    append(types, passes: 1)
    if ended { return false }
    while true {
      if let (types, passes) = steadyPasses() { append(types, passes: passes) }
      let (types, ended) = pass(over: rule.pattern)
      append(types, passes: 1)
      if ended { return true }
    }
  }

  private func remaining(_ type: Int) -> Int { counts[type] - used[type] }

  /// Processes one pass. Returns its types, and whether processing ends in it. `append` counts the rows as used.
  private mutating func pass(over list: [Int]) -> (types: [Int], ended: Bool) {
    var types: [Int] = []
    var foundEmpty = false
    defer { for type in types { perPass[type] = 0 } }
    func has(_ type: Int, _ builder: SlotsBuilder) -> Bool { builder.remaining(type) > builder.perPass[type] }
    for type in list {
      var shown = type
      if has(type, self) {
        if foundEmpty && !live[type] { continue }
      } else if let fallback = rule.defaultType, has(fallback, self) {
        shown = fallback
      } else {
        if live[type] {
          live[type] = false
          liveCount -= 1
        } else {
          foundEmpty = true
        }
        if liveCount == 0 { return (types, true) }
        continue
      }
      perPass[shown] += 1
      types.append(shown)
    }
    return (types, false)
  }

  /// The types of the passes before one that finds a type newly empty, and their number; nil if it is the next one.
  private mutating func steadyPasses() -> (types: [Int], passes: Int)? {
    var types: [Int] = []
    var foundEmpty = false
    defer { for type in types { perPass[type] = 0 } }
    for type in rule.pattern {
      var shown = type
      if remaining(type) > 0 {
        // A type that runs out here is skipped anyway: the pass is already marked as having found an empty type.
        if foundEmpty && !live[type] { continue }
      } else if let fallback = rule.defaultType, remaining(fallback) > 0 {
        shown = fallback
      } else if live[type] || liveCount == 0 {
        return nil
      } else {
        foundEmpty = true
        continue
      }
      perPass[shown] += 1
      types.append(shown)
    }
    let passes = types.map { remaining($0) / perPass[$0] }.min() ?? 0
    return passes > 0 ? (types, passes) : nil
  }

  private mutating func append(_ types: [Int], passes: Int) {
    if types.isEmpty { return }
    var emissions = types.map { type in
      perPass[type] += 1
      return SlotsRun.Emission(first: used[type] + perPass[type] - 1, type: type, step: 0)
    }
    for (slot, type) in types.enumerated() { emissions[slot].step = perPass[type] }
    for type in types {
      used[type] += perPass[type] * passes
      perPass[type] = 0
    }
    runs.append(SlotsRun(start: rows, passes: passes, emissions: emissions))
    rows += types.count * passes
  }
}

/// The fixed rows that a rule may insert, ascending by position. Immutable, and shared by all layouts of the rule.
final class SlotsInsertions: Sendable {
  /// The positions in the finished list.
  let positions: [Int]
  /// For each insertion, the place of its type in `types`, and the number of insertions of this type before it.
  let places: [Int]
  let ordinals: [Int]
  /// The types, each once, and the insertions of each.
  let types: [Int]
  let ofType: [[Int]]
  /// For each type its place in `types`; -1 if nothing of it is inserted.
  private let placeOfType: [Int]

  init(_ insertions: [(position: Int, type: Int)]) {
    assert(zip(insertions, insertions.dropFirst()).allSatisfy { $0.position < $1.position })
    let types = Set(insertions.map(\.type)).sorted()
    var placeOfType = [Int](repeating: -1, count: (types.last ?? -1) + 1)
    for (place, type) in types.enumerated() { placeOfType[type] = place }
    var (places, ordinals): ([Int], [Int]) = ([], [])
    var ofType = [[Int]](repeating: [], count: types.count)
    for (index, insertion) in insertions.enumerated() {
      let place = placeOfType[insertion.type]
      places.append(place)
      ordinals.append(ofType[place].count)
      ofType[place].append(index)
    }
    positions = insertions.map(\.position)
    (self.places, self.ordinals, self.types, self.ofType, self.placeOfType) = (
      places, ordinals, types, ofType, placeOfType
    )
  }

  var count: Int { positions.count }

  func place(of type: Int) -> Int? {
    placeOfType.indices.contains(type) && placeOfType[type] >= 0 ? placeOfType[type] : nil
  }

  func first(at row: Int) -> Int { positions.indices.partitionPoint { positions[$0] < row } }
}

/// Which fixed rows a list shows, and which rows of the contents these are.
///
/// An insertion is available if its type has unused rows. The list shows those before the first whose position it does
/// not reach: `cut`. Invariant: `ranks` has the number of available insertions before each word of `available`.
struct SlotsFixedRows {
  let insertions: SlotsInsertions
  /// For each inserted type the first row that a fixed row may show, and the number of insertions that are available.
  private var firsts: [Int]
  private var counts: [Int]
  /// One bit for each insertion.
  private var available: [UInt64]
  private var ranks: [Int]
  private let cut: Int
  let count: Int

  /// - Parameters:
  ///   - used: the number of rows of each type that the list shows before fixed rows are inserted, `baseCount` in all.
  ///   - counts: the number of rows of each type; none if the list has no fixed rows.
  ///   - former: those of another list. Without them all insertions are visited.
  init(_ insertions: SlotsInsertions, used: [Int], counts: [Int]?, baseCount: Int, former: SlotsFixedRows?) {
    self.insertions = insertions
    if let former, former.insertions === insertions {
      (firsts, self.counts, available, ranks) = (former.firsts, former.counts, former.available, former.ranks)
    } else {
      firsts = [Int](repeating: 0, count: insertions.types.count)
      self.counts = firsts
      available = [UInt64](repeating: 0, count: (insertions.count + 63) / 64)
      ranks = [Int](repeating: 0, count: available.count + 1)
    }
    var changed = available.count
    for (place, type) in insertions.types.enumerated() {
      let all = insertions.ofType[place]
      let (before, after) = (self.counts[place], min(max((counts?[type] ?? 0) - used[type], 0), all.count))
      firsts[place] = used[type]
      self.counts[place] = after
      for ordinal in min(before, after)..<max(before, after) {
        available[all[ordinal] >> 6] ^= 1 << UInt64(all[ordinal] & 63)
        changed = min(changed, all[ordinal] >> 6)
      }
    }
    for word in changed..<available.count { ranks[word + 1] = ranks[word] + available[word].nonzeroBitCount }
    // Positions ascend at least as fast as the insertions before them.
    let (ranks, available) = (ranks, available)
    cut = insertions.positions.indices.partitionPoint {
      insertions.positions[$0] - Self.rank($0, ranks, available) <= baseCount
    }
    count = Self.rank(cut, ranks, available)
  }

  /// The number of available insertions before one. O(1).
  private static func rank(_ index: Int, _ ranks: [Int], _ available: [UInt64]) -> Int {
    let (word, bit) = (index >> 6, UInt64(index & 63))
    return bit == 0 ? ranks[word] : ranks[word] + (available[word] & ((1 << bit) - 1)).nonzeroBitCount
  }

  private func rank(_ index: Int) -> Int { Self.rank(index, ranks, available) }
  private func isShown(_ index: Int) -> Bool { index < cut && available[index >> 6] >> UInt64(index & 63) & 1 == 1 }

  /// The available insertion with this rank. O(log insertions).
  private func available(withRank rank: Int) -> Int? {
    guard rank < ranks[ranks.count - 1] else { return nil }
    let word = ranks.indices.partitionPoint { ranks[$0] <= rank } - 1
    var bits = available[word]
    for _ in ranks[word]..<rank { bits &= bits - 1 }
    return word << 6 + bits.trailingZeroBitCount
  }

  // MARK: Rows

  /// The number of fixed rows before `row`. O(log insertions).
  func count(before row: Int) -> Int { rank(min(insertions.first(at: row), cut)) }

  /// The number of fixed rows before the row that is number `base` without them. O(log insertions).
  func count(beforeBase base: Int) -> Int {
    rank((0..<cut).partitionPoint { insertions.positions[$0] - rank($0) <= base })
  }

  /// The item of the fixed row at `row`; nil if there is none. O(log insertions).
  func item(at row: Int) -> SlotsItem? {
    let index = insertions.first(at: row)
    guard index < insertions.count, insertions.positions[index] == row, isShown(index) else { return nil }
    return item(of: index)
  }

  /// The fixed row that shows an item; nil if none does. O(1).
  func row(of item: SlotsItem) -> Int? {
    guard let place = insertions.place(of: item.type), item.index >= firsts[place] else { return nil }
    let ordinal = item.index - firsts[place]
    guard ordinal < counts[place] else { return nil }
    let index = insertions.ofType[place][ordinal]
    return index < cut ? insertions.positions[index] : nil
  }

  /// The first fixed row at `row` or behind it; nil if there is none. O(log insertions).
  func next(at row: Int) -> Int? {
    guard let index = available(withRank: rank(insertions.first(at: row))), index < cut else { return nil }
    return insertions.positions[index]
  }

  private func item(of index: Int) -> SlotsItem {
    let place = insertions.places[index]
    return SlotsItem(type: insertions.types[place], index: firsts[place] + insertions.ordinals[index])
  }

  // MARK: Differences

  /// The positions, ascending, at which only one of two lists has a fixed row, or at which they show different items; nil if
  /// the lists have different rules. O(types + insertions / 64 + result · log result).
  func differences(to new: SlotsFixedRows, _ contents: [FlatChange]) -> [Int]? {
    guard insertions === new.insertions else { return nil }
    var indices: [Int] = []
    let (least, most) = (min(cut, new.cut), max(cut, new.cut))
    for word in available.indices {
      var bits = available[word] ^ new.available[word]
      if bits == 0 && (word << 6 + 64 <= least || word << 6 >= most) { continue }
      let (own, other) = (shownBits(of: word), new.shownBits(of: word))
      bits = own ^ other
      while bits != 0 {
        indices.append(word << 6 + bits.trailingZeroBitCount)
        bits &= bits - 1
      }
    }
    for place in insertions.types.indices { appendMoved(place, to: new, contents[insertions.types[place]], &indices) }
    return indices.sorted().map { insertions.positions[$0] }
  }

  /// The bits of a word for the insertions that are shown.
  private func shownBits(of word: Int) -> UInt64 {
    let left = cut - word << 6
    return left >= 64 ? available[word] : left <= 0 ? 0 : available[word] & ((1 << UInt64(left)) - 1)
  }

  /// Appends the insertions of a type that both lists show with different items.
  private func appendMoved(_ place: Int, to new: SlotsFixedRows, _ content: FlatChange, _ indices: inout [Int]) {
    let (old, other) = (firsts[place], new.firsts[place])
    if content.isIdentity && old == other { return }
    let all = insertions.ofType[place]
    let count = min(counts[place], new.counts[place])
    var ordinal = 0
    while ordinal < count, all[ordinal] < min(cut, new.cut) {
      guard let (index, end) = content.map(old + ordinal), index == other + ordinal else {
        indices.append(all[ordinal])
        ordinal += 1
        continue
      }
      ordinal = end == Int.max ? count : end - old
    }
  }
}
