import TestSupport
import Testing

@testable import FeedChange

struct ChunkedListTests {
  private func list(_ count: Int, capacity: Int) -> ChunkedList<Int> {
    var list = ChunkedList<Int>(chunkCapacity: capacity)
    list.append(contentsOf: 0..<count)
    return list
  }

  /// The members of 0..<`count` whose bit is set.
  private func subset(_ bits: Int, of count: Int) -> [Int] { (0..<count).filter { bits & (1 << $0) != 0 } }

  @Test(arguments: 2...5) func everyRemovalMatchesAnArray(capacity: Int) {
    for count in 0...9 {
      for bits in 0..<(1 << count) {
        let rows = subset(bits, of: count)
        var list = list(count, capacity: capacity)
        list.remove(rows)
        expectEqual(Array(list), (0..<count).filter { !rows.contains($0) }, "\(count) rows less \(rows)")
        expectEqual(list.count, count - rows.count)
      }
    }
  }

  @Test(arguments: 2...5) func everyInsertionMatchesAnArray(capacity: Int) {
    for count in 0...5 {
      for added in 0...4 {
        // Rows after the change: every choice of `added` positions among count + added.
        for bits in 0..<(1 << (count + added)) where bits.nonzeroBitCount == added {
          let rows = subset(bits, of: count + added)
          var expected = Array(0..<count)
          for (place, row) in rows.enumerated() { expected.insert(100 + place, at: row) }
          var list = list(count, capacity: capacity)
          list.insert((0..<added).map { 100 + $0 }, at: rows)
          expectEqual(Array(list), expected, "\(count) rows and \(rows)")
        }
      }
    }
  }

  @Test func replacementsChangeNoOtherElements() {
    for bits in 0..<(1 << 8) {
      let rows = subset(bits, of: 8)
      var list = list(8, capacity: 3)
      list.replace(rows, with: rows.map { -$0 - 1 })
      expectEqual(Array(list), (0..<8).map { rows.contains($0) ? -$0 - 1 : $0 })
    }
  }

  @Test func randomOperationsMatchAnArray() {
    var random = SeededRandom(seed: UInt64.random(in: 0...UInt64.max))
    var list = ChunkedList<Int>(chunkCapacity: 16)
    var reference: [Int] = []
    for step in 0..<2000 {
      if Bool.random(using: &random) || reference.count < 10 {
        let added = Int.random(in: 1...40, using: &random)
        let rows = Array(Array(0..<reference.count + added).shuffled(using: &random).prefix(added)).sorted()
        for (place, row) in rows.enumerated() { reference.insert(step * 100 + place, at: row) }
        list.insert((0..<added).map { step * 100 + $0 }, at: rows)
      } else {
        let gone = Int.random(in: 1...min(45, reference.count), using: &random)
        let rows = Array(Array(0..<reference.count).shuffled(using: &random).prefix(gone)).sorted()
        for row in rows.reversed() { reference.remove(at: row) }
        list.remove(rows)
      }
      expect(list.elementsEqual(reference), "seed \(random.seed), step \(step)")
      if let row = reference.indices.randomElement(using: &random) {
        expectEqual(list[row], reference[row], "seed \(random.seed), step \(step)")
      }
      // Small chunks are merged, so there are few of them.
      expect(list.chunkCount <= 2 + reference.count / 2, "seed \(random.seed), step \(step)")
    }
  }
}
