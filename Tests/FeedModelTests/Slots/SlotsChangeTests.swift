import TestSupport
import Testing

@testable import FeedChange
@testable import FeedModel

/// Changes of slots lists, compared with lists of tokens.
struct SlotsChangeTests {
  /// Contents whose rows have unique tokens, so that two lists can be compared by their rows.
  private struct Contents {
    var feeds: [TokenFeed]

    init(counts: [Int]) { feeds = counts.map { TokenFeed(rowCounts: [$0]) } }

    var counts: [Int] { feeds.map { $0.rowCounts[0] } }

    func applying(_ changes: [Change]) -> Contents {
      var result = self
      for (type, change) in changes.enumerated() { result.feeds[type] = feeds[type].applying(change) }
      return result
    }

    /// Describes each row of a list: its type, its token in `old`, if any, and whether it is unchanged since.
    func tokens(_ list: [SlotsItem], since old: Contents) -> [Token] {
      list.map { item in
        let row = feeds[item.type].sections[0].rows[item.index]
        let before = Set(old.feeds[item.type].sections[0].rows.map(\.token))
        if before.contains(row.token) { return Token(type: item.type, token: row.token, changed: row.version > 0) }
        let origin = feeds[item.type].origins[row.token] ?? -row.token
        return Token(type: item.type, token: origin, changed: true)
      }
    }
  }

  private struct Token: Hashable {
    var type: Int
    var token: Int
    var changed: Bool
    var identity: SlotsItem { SlotsItem(type: type, index: token) }
  }

  /// The length of a longest common subsequence.
  private func common(_ a: [SlotsItem], _ b: [SlotsItem]) -> Int {
    var row = [Int](repeating: 0, count: b.count + 1)
    for x in a {
      var diagonal = 0
      for (j, y) in b.enumerated() {
        let above = row[j + 1]
        row[j + 1] = x == y ? diagonal + 1 : max(above, row[j])
        diagonal = above
      }
    }
    return row[b.count]
  }

  private func check(_ rule: SlotsRule, _ newRule: SlotsRule, _ counts: [Int], _ changes: [Change], _ note: String) {
    let before = Contents(counts: counts)
    let after = before.applying(changes)
    let old = before.tokens(SlotsReference.list(rule, counts), since: before)
    let new = after.tokens(SlotsReference.list(newRule, after.counts), since: before)
    let layout = SlotsLayout(rule, counts: counts)
    let newLayout = SlotsLayout(newRule, counts: after.counts, former: layout)
    let list = SlotsReference.list(newRule, after.counts)
    expectEqual((0..<newLayout.count).map(newLayout.item), list, "\(note)")
    expect(list.indices.allSatisfy { newLayout.row(of: list[$0]) == $0 }, "\(note)")
    let change = layout.change(to: newLayout, contents: changes.map { FlatChange($0) })

    let listed = (change.added + change.updated).map { new[Int($0.row)] }
    var mirror = [old]
    do {
      try apply(change, to: &mirror, elements: listed)
    } catch {
      Issue.record("\(note): \(error) in \(change)")
      return
    }
    expectEqual(mirror[0].map(\.identity), new.map(\.identity), "\(note): \(change)")
    let kept = common(old.map(\.identity), new.map(\.identity))
    expectEqual(change.deleted.count, old.count - kept, "\(note): \(change) is not minimal")
    let updated = new.indices.filter { row in
      new[row].changed && !change.added.contains(IndexPath(section: 0, row: UInt32(row)))
    }
    expectEqual(change.updated.map { Int($0.row) }, updated, "\(note): \(change)")
    for move in change.moves {
      let from = old[Int(change.deleted[Int(move.deleted)].row)]
      expectEqual(from.identity, new[Int(change.added[Int(move.added)].row)].identity, "\(note): \(change)")
    }
    let came = Set(old.map(\.identity)).intersection(change.added.map { new[Int($0.row)].identity })
    expectEqual(change.moves.count, came.count, "\(note): \(change)")
  }

  @Test(arguments: UInt64(1)...300)
  func random(_ seed: UInt64) {
    var slots = RandomSlots(random: SeededRandom(seed: seed))
    for round in 0..<6 {
      let types = 1 + Int(seed % 4)
      let rule = slots.rule(types: types)
      let newRule = round == 5 ? slots.rule(types: types) : rule
      let counts = (0..<types).map { _ in Int.random(in: 0...(round % 2 == 0 ? 8 : 30), using: &slots.random) }
      let changes = counts.map { slots.change(of: $0, rows: 3) }
      check(rule, newRule, counts, changes, "seed \(seed) round \(round): \(rule) of \(counts) by \(changes)")
    }
  }

  /// Lists of many fixed rows of several types, some of which also stand in the header or replace others.
  @Test(arguments: UInt64(1)...20)
  func manyFixedRows(_ seed: UInt64) {
    var slots = RandomSlots(random: SeededRandom(seed: seed))
    let types = 3 + Int(seed % 3)
    var rule = slots.rule(types: types)
    rule.pattern = rule.pattern.map { $0 % 2 }
    for position in 0..<200 where Bool.random(using: &slots.random) {
      rule.fixed[position] = Int.random(in: 1..<types, using: &slots.random)
    }
    for round in 0..<4 {
      let counts = (0..<types).map { _ in Int.random(in: 0...(round % 2 == 0 ? 60 : 150), using: &slots.random) }
      let changes = counts.map { slots.change(of: $0, rows: 3) }
      check(rule, rule, counts, changes, "seed \(seed) round \(round): \(rule) of \(counts) by \(changes)")
    }
  }

  /// Every deletion, addition or update of one row under small rules.
  @Test(arguments: SlotsLayoutExhaustiveTests.lists(of: 2, upTo: 3))
  func singleChanges(_ pattern: [Int]) {
    let rules = [
      SlotsRule(pattern: pattern), SlotsRule(pattern: pattern, header: [1], repeatables: [0], fixed: [1: 1]),
      SlotsRule(pattern: pattern, defaultType: 0, fixed: [2: 1]),
    ]
    for rule in rules {
      for counts in [[0, 0], [1, 3], [5, 2], [4, 4]] {
        for (type, count) in counts.enumerated() {
          for change in AllChanges(budget: 1, sectionsAdded: 0).changes(from: [count])
          where change.sectionsDeleted.isEmpty {
            var changes = [Change.empty, .empty]
            changes[type] = change
            check(rule, rule, counts, changes, "\(rule) of \(counts) by \(changes)")
          }
        }
      }
    }
  }
}
