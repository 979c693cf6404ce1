import FeedChange
import FeedModel
import FeedSystem

/// Composing changes, as for a watcher that fell behind.
struct ComposeMeasures {
  let count: Int

  private static let rows = 1_000_000

  func run(_ report: inout Report) throws {
    try report.title("composing changes of one row into one, each; \(Self.rows) rows")
    var random = BenchmarkRandom(seed: 5)
    let updates = (0..<count).map { _ in
      Change(updated: [IndexPath(section: 0, row: UInt32(random.below(Self.rows)))])
    }
    try compose("updates", updates, report)
    let moves = (0..<count).map { _ in
      Change(
        deleted: [IndexPath(section: 0, row: UInt32(random.below(Self.rows)))],
        added: [IndexPath(section: 0, row: UInt32(random.below(Self.rows)))], moves: [Move(deleted: 0, added: 0)])
    }
    try compose("moves", moves, report)
  }

  private func compose(_ name: String, _ changes: [Change], _ report: Report) throws {
    let sample = Sample.measure(runs: report.runs) {
      var accumulator = ChangeAccumulator()
      for change in changes { accumulator.add(change) }
      Sink.take(accumulator.finish().size)
    }
    try report.add(name, sample, count: changes.count)
  }
}
