import FeedModel
import FeedSystem

/// Operations of the tree of positions at random rows.
struct PositionMeasures {
  let count: Int
  let sizes: [Int]

  func run(_ report: inout Report) throws {
    try report.title("positions")
    var table = SizeTable()
    for size in sizes {
      let tree = PositionTree(keyed: false)
      for item in 0..<size { tree.insert(UInt32(item), at: item) }
      var random = BenchmarkRandom(seed: 3)
      let items = (0..<count).map { _ in random.below(size) }

      let rank = Sample.measure(runs: report.runs) {
        var sum = 0
        for item in items { sum &+= tree.row(of: UInt32(item)) ?? 0 }
        Sink.take(sum)
      }
      try table.add("row of an item", size: size, rank, count: count, report)

      let kth = Sample.measure(runs: report.runs) {
        var sum = 0
        for row in items { sum &+= Int(tree[row]) }
        Sink.take(sum)
      }
      try table.add("item of a row", size: size, kth, count: count, report)
      try change(tree, size, items, &table, report)
    }
  }

  private func change(
    _ tree: PositionTree, _ size: Int, _ rows: [Int], _ table: inout SizeTable, _ report: Report
  ) throws {
    // A small part of the tree, so that its size changes little.
    let batch = max(1, min(count, size / 10))
    let rounds = max(1, count / batch)
    var (insert, remove): ([Double], [Double]) = ([], [])
    for run in 0...report.runs {
      var (inserting, removing): (UInt64, UInt64) = (0, 0)
      for round in 0..<rounds {
        let start = ProcessorClock.now
        for index in 0..<batch { tree.insert(UInt32(size + index), at: rows[(round + index) % rows.count]) }
        let middle = ProcessorClock.now
        for index in 0..<batch { tree.remove(UInt32(size + (index * 7919) % batch)) }
        inserting += middle - start
        removing += ProcessorClock.now - middle
        for index in 0..<batch { tree.remove(UInt32(size + index)) }
      }
      if run > 0 {
        insert.append(Double(inserting))
        remove.append(Double(removing))
      }
    }
    try table.add("insert at a row", size: size, Sample(insert), count: batch * rounds, report)
    try table.add("remove an item", size: size, Sample(remove), count: batch * rounds, report)
  }
}
