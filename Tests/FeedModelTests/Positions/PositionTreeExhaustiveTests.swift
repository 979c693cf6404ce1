import TestSupport
import Testing

@testable import FeedModel

/// Every short sequence of mutations of small trees with the smallest nodes. The trees check their invariants.
struct PositionTreeExhaustiveTests {
  /// Ways to build a tree, with different resulting nodes.
  enum Growth: CaseIterable {
    case append, prepend, middle, drained
  }

  private func grown(_ count: Int, _ growth: Growth) -> TreeModel {
    var model = TreeModel(keyed: true, leafLimit: 4, innerLimit: 4)
    let extra = growth == .drained ? count : 0
    for index in 0..<count + extra {
      let row =
        switch growth {
        case .append, .drained: index
        case .prepend: 0
        case .middle: index / 2
        }
      model.insert(at: row, key: UInt64(index))
    }
    for index in 0..<extra { model.remove(at: (index * 7) % (count + extra - index)) }
    return model
  }

  /// Performs the step with this number, below `steps(of:)`.
  private func perform(_ step: Int, on model: inout TreeModel) {
    let count = model.items.count
    if step <= count {
      model.insert(at: step, key: 100)
    } else if step <= 2 * count {
      model.remove(at: step - count - 1)
    } else {
      model.replace(at: step - 2 * count - 1, key: 200)
    }
  }

  private func steps(of count: Int) -> Int { 3 * count + 1 }

  private func explore(_ count: Int, _ growth: Growth, prefix: [Int], depth: Int) -> Int {
    if depth == 0 {
      var model = grown(count, growth)
      for step in prefix { perform(step, on: &model) }
      if !model.agrees() { Issue.record("\(growth) to \(count), then steps \(prefix)") }
      return 1
    }
    var size = count
    for step in prefix {
      // The number of a step determines the resulting size.
      if step <= size { size += 1 } else if step <= 2 * size { size -= 1 }
    }
    return (0..<steps(of: size)).reduce(0) {
      $0 + explore(count, growth, prefix: prefix + [$1], depth: depth - 1)
    }
  }

  @Test(arguments: Growth.allCases)
  func twoSteps(_ growth: Growth) {
    for count in [0, 1, 2, 3, 4, 5, 8, 9, 13, 17] {
      expect(explore(count, growth, prefix: [], depth: 2) > 0)
    }
  }

  @Test(arguments: Growth.allCases)
  func threeSteps(_ growth: Growth) {
    for count in [0, 1, 4, 5] {
      expect(explore(count, growth, prefix: [], depth: 3) > 0)
    }
  }

  @Test(arguments: Growth.allCases)
  func drainedFromEveryRow(_ growth: Growth) {
    for start in 0..<40 {
      var model = grown(40, growth)
      for step in 0..<40 {
        model.removeItem(at: (start + step * 3) % model.items.count)
        expect(model.agrees(), "\(growth), start \(start), step \(step)")
      }
    }
  }
}
