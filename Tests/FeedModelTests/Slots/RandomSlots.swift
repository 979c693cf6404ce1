import TestSupport

@testable import FeedChange
@testable import FeedModel

/// Makes random rules and random changes of contents.
struct RandomSlots {
  var random: SeededRandom

  mutating func rule(types: Int) -> SlotsRule {
    var rule = SlotsRule(pattern: list(types, 1...8))
    if Bool.random(using: &random) { rule.header = list(types, 0...4) }
    switch Int.random(in: 0..<3, using: &random) {
    case 0: rule.repeatables = Set(list(types, 1...3))
    case 1: rule.defaultType = Int.random(in: 0..<types, using: &random)
    default: break
    }
    if Bool.random(using: &random) {
      for position in list(30, 0...4) { rule.fixed[position] = Int.random(in: 0..<types, using: &random) }
    }
    return rule
  }

  private mutating func list(_ types: Int, _ lengths: ClosedRange<Int>) -> [Int] {
    let count = Int.random(in: lengths, using: &random)
    return (0..<count).map { _ in Int.random(in: 0..<types, using: &random) }
  }

  /// Returns a change of a content of `count` rows; often empty.
  mutating func change(of count: Int, rows: Int) -> Change {
    if Bool.random(using: &random) { return .empty }
    var changes = RandomChanges(random: SeededRandom(seed: random.next()), rows: rows, sections: 0)
    while true {
      let change = changes.next(for: [count])
      if change.sectionsAdded.isEmpty { return change }
    }
  }
}
