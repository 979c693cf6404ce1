import Glibc
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedModel
@testable import ReferenceModel

/// Random trees of all kinds of feeds under random mutations, with a watcher of every feed, compared with a reference that
/// rebuilds every feed after each operation.
///
/// 4,500 operations, a million with `scripts/test --long`, or `FEEDD_TREE_OPERATIONS`: a ninth with each of eight fixed
/// seeds, and with a fresh one or that of `FEEDD_TREE_SEED`.
struct TreesTests {
  /// The number of operations after which a new tree begins.
  private static let life = 500

  private static var operations: Int {
    TestEffort.count(4_500, long: 1_000_000, variable: "FEEDD_TREE_OPERATIONS")
  }

  private static var fresh: UInt64 {
    getenv("FEEDD_TREE_SEED").flatMap { UInt64(String(cString: $0)) } ?? .random(in: 1000...(.max))
  }

  @Test(arguments: UInt64(1)...8)
  func fixedSeed(_ seed: UInt64) {
    run(seed: seed, operations: Self.operations / 9)
  }

  @Test func freshSeed() {
    run(seed: Self.fresh, operations: Self.operations / 9)
  }

  private func run(seed: UInt64, operations: Int) {
    var statistics: [String: Int] = [:]
    for life in 0..<max(1, operations / Self.life) {
      // Elements of all feeds refer to it, so it is freed only if every feed is.
      weak var discarded: DiscardedElements?
      do {
        let world = TreeWorld(seed: seed &+ UInt64(life) << 32, expires: true)
        discarded = world.harness.engine.catalog.discarded
        for step in 0..<Self.life {
          do {
            try world.step()
          } catch {
            Issue.record("seed \(seed), life \(life), step \(step): \(error)")
            return
          }
        }
        statistics.merge(world.statistics) { $0 + $1 }
      }
      expect(discarded == nil, "seed \(seed), life \(life): a feed is not freed with its catalog")
    }
    // A short run of a fresh seed need not include every kind of operation.
    guard operations >= Self.life * 4 else { return }
    for kind in [
      "update", "set", "move", "insertChild", "removeChild", "activate", "define", "undefine", "transaction",
      "evictions", "rows", "configure",
    ] {
      expect(statistics[kind, default: 0] > 0, "\(kind) was never executed: \(statistics)")
    }
    if getenv("FEEDD_TREE_STATISTICS") != nil { print("seed \(seed): \(statistics.sorted { $0.key < $1.key })") }
  }
}
