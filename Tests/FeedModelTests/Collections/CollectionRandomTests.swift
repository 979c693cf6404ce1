import FeedQuery
import TestSupport
import Testing

@testable import FeedModel

/// Long random histories of collections under changing definitions; some transactions are rolled back.
struct CollectionRandomTests {
  typealias Bin = CollectionRules.Bin
  typealias Term = CollectionRules.Term

  private static func path(_ text: String) -> SingularPath { try! SingularPath(parsing: text) }

  /// Definitions that share bin names, so that a history moves between them.
  static let rules: [CollectionRules] = [
    CollectionRules(bins: [
      Bin(name: "x", filter: "@.v > 2", sort: [Term(by: "$.v")]), Bin(name: "y", filter: "@.w == true"), Bin(name: "z"),
    ]),
    CollectionRules(
      type: path("$.k"), exclusive: true,
      bins: [
        Bin(name: "y", filter: "@.v < 2", sort: [Term(by: "$.v", descending: true)]),
        Bin(name: "x", filter: "@.v", sort: [Term(by: "$.k"), Term(by: "$.v", descending: true)]),
      ], retainCount: 6),
    CollectionRules(
      bins: [Bin(name: "z", sort: [Term(by: "$.k", descending: true)]), Bin(name: "x", filter: "@.v > 2")],
      retainSeconds: 5),
    CollectionRules(
      id: path("$.v"), type: path("$.id"), bins: [Bin(name: "x", sort: [Term(by: "$.v")]), Bin(name: "z")],
      retainCount: 3, retainSeconds: 9),
    CollectionRules(bins: [
      Bin(name: "z"), Bin(name: "y", sort: [Term(by: "$.v")]),
      Bin(name: "x", sort: [Term(by: "$.v", descending: true)]),
    ]),
  ]

  static let values = [
    "0", "1", "1.0", "2", "3", "10e-1", "-4", "null", "true", "false", "\"b\"", "\"a\"", "\"\\u0061\"", "[1]", "{}",
    "1e300",
  ]

  @Test(arguments: 1...16) func randomHistoriesMatchTheReference(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    do {
      let pair = try CollectionPair(Self.rules[Int(seed) % Self.rules.count], seed: seed)
      for _ in 0..<60 {
        pair.now += UInt64.random(in: 0..<3_000_000_000, using: &random)
        if Int.random(in: 0..<4, using: &random) == 0 { try pair.expire() }
        try transaction(pair, &random)
      }
    } catch {
      Issue.record("seed \(seed): \(error)")
    }
  }

  /// Executes some operations as one commit, or rolls them back and checks that the state is restored.
  private func transaction(_ pair: CollectionPair, _ random: inout SeededRandom) throws {
    let earlier = pair.reference
    try pair.begin()
    for _ in 0..<Int.random(in: 1...4, using: &random) { try pair.apply(operation(&random)) }
    if Int.random(in: 0..<4, using: &random) == 0 {
      pair.catalog.rollBack()
      pair.restore(earlier)
      try pair.compare()
    } else {
      try pair.commit(from: earlier)
    }
  }

  private func operation(_ random: inout SeededRandom) -> CollectionPair.Operation {
    func elements(_ most: Int) -> [String] {
      (0..<Int.random(in: 0...most, using: &random)).map { _ in element(&random) }
    }
    switch Int.random(in: 0..<20, using: &random) {
    case ..<9: return .update([element(&random)])
    case ..<13: return .update(elements(6))
    case ..<15: return .delete((0..<Int.random(in: 0..<4, using: &random)).map { _ in id(&random) })
    case ..<16: return .delete([Int.random(in: 0..<5, using: &random) == 0 ? "null" : id(&random)])
    case ..<18: return .set(elements(8))
    default: return .redefine(Self.rules.randomElement(using: &random)!)
    }
  }

  private func id(_ random: inout SeededRandom) -> String {
    ["1", "2", "3", "4", "5", "6", "1.0", "20e-1", "\"1\"", "\"two\""].randomElement(using: &random)!
  }

  private func element(_ random: inout SeededRandom) -> String {
    if Int.random(in: 0..<40, using: &random) == 0 { return #"{"v":1}"# }
    let value = Self.values.randomElement(using: &random)!
    var members = [#""id":\#(id(&random))"#]
    if Int.random(in: 0..<8, using: &random) > 0 { members.append(#""v":\#(value)"#) }
    if Bool.random(using: &random) { members.append(#""w":\#(Bool.random(using: &random))"#) }
    if Bool.random(using: &random) { members.append(#""k":\#(Self.values.randomElement(using: &random)!)"#) }
    return "{" + members.joined(separator: Bool.random(using: &random) ? "," : " , ") + "}"
  }
}
