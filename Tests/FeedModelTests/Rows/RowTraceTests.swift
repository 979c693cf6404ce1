import TestSupport
import Testing

@testable import FeedChange
@testable import FeedModel

/// Where removed rows stood before the first of several steps, compared with lists of numbered rows.
struct RowTraceTests {
  /// Lists of rows that remember where they stood in the beginning.
  private struct Model {
    var sections: [[IndexPath?]]
    var trace: RowTrace
    var expected: [IndexPath: Int] = [:]
    var steps = 0

    /// - Parameter blockSize: nil for the usual one.
    init(_ rowCounts: [Int], blockSize: Int? = nil) {
      sections = rowCounts.enumerated().map { section, count in
        (0..<count).map { IndexPath(section: UInt32(section), row: UInt32($0)) }
      }
      trace =
        blockSize.map { RowTrace(sections: rowCounts.count, blockSize: $0, Pace()) }
        ?? RowTrace(sections: rowCounts.count, Pace())
    }

    mutating func insert(_ section: Int, _ row: Int) {
      steps += 1
      sections[section].insert(nil, at: row)
      trace.insert(at: IndexPath(section: UInt32(section), row: UInt32(row)))
    }

    mutating func remove(_ section: Int, _ row: Int) {
      steps += 1
      if let before = sections[section].remove(at: row) { expected[before] = steps }
      trace.remove(at: IndexPath(section: UInt32(section), row: UInt32(row)), step: steps)
    }

    mutating func check(_ note: String) {
      let found = trace.finish()
      expectEqual(found.map(\.before), expected.keys.sorted(), "\(note)")
      expectEqual(found.map(\.step), found.map { expected[$0.before] }, "\(note)")
    }
  }

  /// All sequences of up to five steps on a section of two rows, in one block and in several.
  @Test(arguments: [1, 2, 256])
  func allShortSequences(blockSize: Int) {
    func visit(_ model: Model, _ left: Int, _ note: String) {
      var checked = model
      checked.check(note)
      if left == 0 { return }
      let count = model.sections[0].count
      for row in 0...count {
        var next = model
        next.insert(0, row)
        visit(next, left - 1, note + " +\(row)")
      }
      for row in 0..<count {
        var next = model
        next.remove(0, row)
        visit(next, left - 1, note + " -\(row)")
      }
    }
    visit(Model([2], blockSize: blockSize), 5, "blocks of \(blockSize):")
  }

  /// The work of a long trace can be divided.
  @Test func longTracesAreMadeInSteps() {
    let count = 50_000
    let pace = Pace()
    var stops = 0
    pace.begin(units: 0) {
      stops += 1
      return 0
    }
    var trace = RowTrace(sections: 1, pace)
    for step in 0..<count {
      trace.remove(at: IndexPath(section: 0, row: UInt32(count)), step: step)
      trace.insert(at: IndexPath(section: 0, row: 0))
    }
    let rows = trace.finish()
    pace.end()
    // Each step removes the row before the one that the last step removed.
    expectEqual(rows.map(\.step), (0..<count).reversed())
    expect(stops > 2 * count / 1024)
  }

  @Test func randomSequences() {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SeededRandom(seed: seed)
    for round in 0..<150 {
      var model = Model((0..<Int.random(in: 1...4, using: &random)).map { _ in Int.random(in: 0..<60, using: &random) })
      let inserts = Int.random(in: 1...9, using: &random)
      for _ in 0..<Int.random(in: 0..<1500, using: &random) {
        let section = model.sections.indices.randomElement(using: &random) ?? 0
        let count = model.sections[section].count
        if count == 0 || Int.random(in: 0..<10, using: &random) < inserts {
          model.insert(section, Int.random(in: 0...count, using: &random))
        } else {
          model.remove(section, Int.random(in: 0..<count, using: &random))
        }
      }
      model.check("seed \(seed), round \(round)")
    }
  }
}
