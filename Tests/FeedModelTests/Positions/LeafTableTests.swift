import TestSupport
import Testing

@testable import FeedModel

/// The map from items to leaves, compared with a dictionary.
struct LeafTableTests {
  @Test(arguments: 1...6) func randomHistories(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var table = LeafTable()
    var known: [UInt32: NodeID] = [:]
    for step in 0..<2000 {
      // The greatest item grows over several chunks.
      let item = UInt32.random(in: 0...UInt32(step * 20), using: &random)
      if known[item] != nil, Bool.random(using: &random) {
        table.set(item, .none)
        known[item] = nil
      } else {
        table.reserve(item)
        table.set(item, UInt32(step))
        known[item] = UInt32(step)
      }
      for _ in 0..<20 {
        let other = UInt32.random(in: 0...60_000, using: &random)
        expectEqual(table[other], known[other] ?? .none, "seed \(seed)")
      }
      expectEqual(table[item], known[item] ?? .none, "seed \(seed)")
    }
    var copy = table.copy(Pace())
    table.removeAll()
    for (item, leaf) in known { expect(copy[item] == leaf && table[item] == .none) }
    expect(table.byteCount == 0 && copy.byteCount >= known.count * 4)
    copy.removeAll()
  }

  @Test func itemsFarFromOthersTakeOneChunk() {
    for first in [0, 100, 4095, 4096, 5000] as [UInt32] {
      var table = LeafTable()
      table.reserve(first)
      table.set(first, 7)
      table.reserve(1_000_000)
      table.set(1_000_000, 8)
      expect(table[first] == 7 && table[1_000_000] == 8 && table[first + 1] == .none && table[999_999] == .none)
      expect(table.byteCount <= 2 * 16_384 + 2 * 250 * 8)
      table.removeAll()
    }
  }

  @Test func fewReservedItemsTakeNoMore() {
    var table = LeafTable()
    table.reserve(first: 100)
    expectEqual(table.byteCount, 100 * 4 + 8)
    table.removeAll()
  }
}
