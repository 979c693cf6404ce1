import TestSupport
import Testing

@testable import FeedCommands

@Suite("merging the bins of a collection") struct BinMergeTests {
  @Test("every element comes once, and unsorted bins keep their order") func random() {
    var random = SeededRandom(seed: UInt64.random(in: 0...UInt64.max))
    for _ in 0..<200 {
      let arrival = (0..<Int.random(in: 0...20, using: &random)).map { Array("\($0)".utf8) }.shuffled(using: &random)
      let sorted = (0..<Int.random(in: 1...4, using: &random)).map { _ in Bool.random(using: &random) }
      var merge = BinMerge(isSorted: sorted)
      var bins: [[[UInt8]]] = []
      for (bin, isSorted) in sorted.enumerated() {
        var rows = arrival.filter { _ in Int.random(in: 0...2, using: &random) > 0 }
        if isSorted { rows.shuffle(using: &random) }
        for row in rows { merge.add(row, bin: bin) }
        bins.append(rows)
      }
      let merged = merge.merged()
      let present = Set(bins.joined())
      expect(merged.count == present.count && Set(merged) == present, "seed \(random.seed)")
      for (bin, isSorted) in sorted.enumerated() where !isSorted {
        expectEqual(merged.filter(Set(bins[bin]).contains), bins[bin], "seed \(random.seed)")
      }
    }
  }

  @Test("a sorted bin keeps the order of rows with equal keys") func ties() {
    var merge = BinMerge(isSorted: [true, true])
    for row in ["b", "a", "c"] { merge.add(Array(row.utf8), bin: 0) }
    for row in ["d", "b"] { merge.add(Array(row.utf8), bin: 1) }
    let merged = merge.merged().map { String(decoding: $0, as: UTF8.self) }
    expectEqual(merged, ["d", "b", "a", "c"])
  }

  // The cost of each such element must not grow with their number.
  @Test("of unsorted bins that contradict each other, the order of the first one is kept") func contradiction() {
    let rows = (0..<100_000).map { Array("\($0)".utf8) }
    var merge = BinMerge(isSorted: [false, false])
    for row in rows { merge.add(row, bin: 0) }
    for row in rows.reversed() { merge.add(row, bin: 1) }
    expectEqual(merge.merged(), rows)
  }
}
