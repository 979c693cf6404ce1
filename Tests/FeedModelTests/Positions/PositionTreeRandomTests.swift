import TestSupport
import Testing

@testable import FeedModel

/// Long random histories. A failure prints the seed.
struct PositionTreeRandomTests {
  private func row(_ style: Int, _ count: Int, _ random: inout SeededRandom) -> Int {
    switch style {
    case 0: 0
    case 1: count - 1
    case 2: count / 2
    default: Int.random(in: 0..<count, using: &random)
    }
  }

  /// Grows and shrinks alternately, each time at the start, the end, the middle or random rows.
  private func history(_ seed: UInt64, _ model: inout TreeModel, phases: Int, length: Int) {
    var random = SeededRandom(seed: seed)
    for phase in 0..<phases {
      let style = Int.random(in: 0..<6, using: &random)
      let grows = phase % 3 != 2
      for step in 0..<Int.random(in: 1...length, using: &random) {
        let count = model.items.count
        switch Int.random(in: 0..<10, using: &random) {
        case 0 where count > 0: model.replace(at: row(style, count, &random), key: UInt64(step))
        case 1...6 where grows, 8 where !grows, _ where count == 0:
          model.insert(at: row(style, count + 1, &random), key: UInt64(step))
        case 7: model.removeItem(at: row(style, count, &random))
        default: model.remove(at: row(style, count, &random))
        }
      }
      if !model.agrees() {
        Issue.record("seed \(seed), phase \(phase)")
        return
      }
    }
  }

  @Test(arguments: UInt64(1)...20)
  func smallNodes(_ seed: UInt64) {
    var model = TreeModel(keyed: seed % 2 == 0, leafLimit: 4 + Int(seed % 5), innerLimit: 4 + Int(seed % 3))
    history(seed, &model, phases: 12, length: 120)
  }

  @Test(arguments: UInt64(1)...6)
  func fullNodes(_ seed: UInt64) {
    var model = TreeModel(keyed: seed % 2 == 0)
    history(seed, &model, phases: 9, length: 4000)
    let before = model.items.count
    model.removeAll()
    expect(model.agrees() && (before == 0 || model.tree.row(of: 0) == nil))
    history(seed, &model, phases: 3, length: 500)
  }

  @Test(arguments: UInt64(1)...10)
  func sortedByKeyAndTie(_ seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var model = TreeModel(keyed: true, leafLimit: 6, innerLimit: 4)
    // Few keys and few ties, so that most elements have equal neighbours.
    var tie: [UInt32: Int] = [:]
    for step in 0..<1500 {
      if model.items.count > 200 || (step % 5 == 4 && !model.items.isEmpty) {
        model.remove(at: Int.random(in: 0..<model.items.count, using: &random))
        continue
      }
      let key = UInt64.random(in: 0..<4, using: &random)
      let mine = Int.random(in: 0..<3, using: &random)
      let expected =
        model.items.indices.first { row in
          model.keys[row] > key || (model.keys[row] == key && (tie[model.items[row]] ?? 0) > mine)
        } ?? model.items.count
      var asked = 0
      let row = model.insertSorted(key: key) { item in
        asked += 1
        return (tie[item] ?? 0) > mine
      }
      tie[model.items[row]] = mine
      expectEqual(row, expected, "seed \(seed) step \(step)")
      expect(asked <= 16, "seed \(seed) step \(step)")
    }
    expect(model.agrees(), "seed \(seed)")
  }
}
