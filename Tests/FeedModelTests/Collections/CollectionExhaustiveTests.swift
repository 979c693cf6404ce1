import TestSupport
import Testing

@testable import FeedModel

/// Every short sequence of operations on a few elements. Each step is rolled back, which must restore the state before.
struct CollectionExhaustiveTests {
  typealias Bin = CollectionRules.Bin

  static let rules: [CollectionRules] = [
    CollectionRules(bins: [
      Bin(name: "a", filter: "@.v >= 1", sort: [.init(by: "$.v")]), Bin(name: "b", filter: "@.v != 2"),
    ]),
    CollectionRules(
      exclusive: true,
      bins: [
        Bin(name: "a", filter: "@.v == 1 || @.v == 2", sort: [.init(by: "$.v", descending: true)]),
        Bin(name: "b", filter: "@.v", sort: [.init(by: "$.v")]),
      ], retainCount: 2),
    CollectionRules(
      bins: [Bin(name: "a", sort: [.init(by: "$.v", descending: true)]), Bin(name: "b")], retainCount: 1),
  ]

  static let operations: [CollectionPair.Operation] =
    [1, 2, 3].flatMap { id in
      ["", ",\"v\":0", ",\"v\":1", ",\"v\":2"].map { .update(["{\"id\":\(id)\($0)}"]) }
    } + [.delete(["1"]), .delete(["2"])]

  @Test(arguments: 0..<3) func allShortHistories(index: Int) throws {
    let pair = try CollectionPair(Self.rules[index])
    try pair.begin()
    try explore(pair, Self.operations, depth: 3)
    pair.catalog.rollBack()
    try expectEqual(pair.collection.state.elements.count, 0)
  }

  /// Every sequence with two elements and operations on several elements.
  @Test(arguments: 0..<3) func allHistoriesOfSeveral(index: Int) throws {
    let pair = try CollectionPair(Self.rules[index])
    let operations: [CollectionPair.Operation] = [
      .update([#"{"id":1,"v":1}"#]), .update([#"{"id":2,"v":1}"#]), .update([#"{"id":1,"v":2}"#, #"{"id":1,"v":1}"#]),
      .update([#"{"id":2,"v":0}"#, #"{"id":1,"v":2}"#]), .update([#"{"id":2,"v":1}"#, "{}"]),
      .set([#"{"id":2,"v":1}"#, #"{"id":3,"v":1}"#]), .delete(["1", "2"]), .delete(["3", "null"]),
    ]
    try pair.begin()
    try explore(pair, operations, depth: 4)
    pair.catalog.rollBack()
  }

  /// Every transaction of three operations publishes a minimal change.
  @Test(arguments: 0..<3) func allShortTransactions(index: Int) throws {
    let operations: [CollectionPair.Operation] = [
      .update([#"{"id":1,"v":1}"#]), .update([#"{"id":1,"v":2}"#]), .update([#"{"id":2,"v":1}"#]),
      .update([#"{"id":2,"v":2}"#]), .update([#"{"id":1,"v":0}"#, #"{"id":3,"v":1}"#]), .delete(["2"]),
    ]
    for first in operations {
      for second in operations {
        for third in operations {
          let pair = try CollectionPair(Self.rules[index])
          try pair.begin()
          try pair.apply(.update([#"{"id":1,"v":1}"#, #"{"id":2,"v":2}"#]))
          try pair.commit(from: CollectionReference(Self.rules[index]))
          let before = pair.reference
          try pair.begin()
          for operation in [first, second, third] { try pair.apply(operation) }
          do { try pair.commit(from: before) } catch { throw Mismatch("\(error): \([first, second, third])") }
        }
      }
    }
  }

  private func explore(_ pair: CollectionPair, _ operations: [CollectionPair.Operation], depth: Int) throws {
    if depth == 0 { return }
    let (earlier, mark) = (pair.reference, pair.catalog.commit.log.position)
    for operation in operations {
      try pair.apply(operation)
      try explore(pair, operations, depth: depth - 1)
      pair.catalog.commit.undo(to: mark)
      pair.restore(earlier)
      try pair.compare()
    }
  }
}
