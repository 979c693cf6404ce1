import TestSupport
import Testing

@testable import FeedModel

/// The computed layout, compared with a list built row by row.
struct SlotsLayoutExhaustiveTests {
  /// Returns all lists of at most `length` types below `types`.
  static func lists(of types: Int, upTo length: Int) -> [[Int]] {
    var result: [[Int]] = [[]]
    var last = result
    for _ in 0..<length {
      last = last.flatMap { list in (0..<types).map { list + [$0] } }
      result += last
    }
    return result
  }

  static func isRight(_ rule: SlotsRule, _ counts: [Int]) -> Bool {
    let list = SlotsReference.list(rule, counts)
    let layout = SlotsLayout(rule, counts: counts)
    if layout.count != list.count { return false }
    for (row, item) in list.enumerated() where layout.item(at: row) != item || layout.row(of: item) != row {
      return false
    }
    for type in counts.indices {
      var before = 0
      for row in 0...list.count {
        if layout.contentRows(of: type, in: row..<list.count).lowerBound != before { return false }
        if row < list.count, list[row].type == type, layout.fixed.item(at: row) == nil { before += 1 }
      }
    }
    let shown = Set(list)
    for type in counts.indices {
      for index in -1...counts[type] {
        let item = SlotsItem(type: type, index: index)
        if !shown.contains(item) && layout.row(of: item) != nil { return false }
      }
    }
    return true
  }

  private func check(_ rules: [SlotsRule], counts: [[Int]]) {
    for rule in rules {
      for counts in counts where !Self.isRight(rule, counts) {
        Issue.record("\(rule) of \(counts)")
        return
      }
    }
  }

  private func allCounts(_ types: Int, upTo most: Int) -> [[Int]] {
    (0..<types).reduce([[]]) { lists, _ in lists.flatMap { list in (0...most).map { list + [$0] } } }
  }

  private let repeatables = AllChanges.subsets([0, 1, 2], upTo: 3).map(Set.init)

  @Test(arguments: lists(of: 3, upTo: 3))
  func patterns(_ pattern: [Int]) {
    let plain = repeatables.map { SlotsRule(pattern: pattern, repeatables: $0) }
    let withDefault = (0..<3).map { SlotsRule(pattern: pattern, repeatables: [0, 2], defaultType: $0) }
    check(plain + withDefault, counts: allCounts(3, upTo: 4))
  }

  @Test(arguments: lists(of: 3, upTo: 2))
  func headersAndFixedRows(_ header: [Int]) {
    let fixed: [[Int: Int]] = [[:], [0: 2, -1: 2], [1: 1, 3: 2, 4: 2], [0: 0, 9: 2, 2: 1]]
    let rules = Self.lists(of: 3, upTo: 2).flatMap { pattern in
      fixed.flatMap { fixed in
        [
          SlotsRule(pattern: pattern, header: header, fixed: fixed),
          SlotsRule(pattern: pattern, header: header, repeatables: [1], fixed: fixed),
          SlotsRule(pattern: pattern, header: header, defaultType: 2, fixed: fixed),
        ]
      }
    }
    check(rules, counts: allCounts(3, upTo: 2))
  }

  @Test(arguments: UInt64(1)...200)
  func random(_ seed: UInt64) {
    var random = RandomSlots(random: SeededRandom(seed: seed))
    for round in 0..<10 {
      let rule = random.rule(types: 5)
      let counts = (0..<5).map { _ in Int.random(in: 0...40, using: &random.random) }
      expect(Self.isRight(rule, counts), "seed \(seed) round \(round): \(rule) of \(counts)")
    }
  }
}
