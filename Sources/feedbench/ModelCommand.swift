import FeedChange
import FeedJSON
import FeedModel
import FeedSystem

extension BenchmarkCommand {
  static let model = BenchmarkCommand(
    name: "model", summary: "change collections of several sizes; positions; composition",
    about: """
      Measures the model without engine and sockets: commits of one element each into collections of several sizes, in order \
      of arrival, sorted, and with sections by value; operations that change a whole collection; the tree of positions; the \
      composition of changes. For each size but the first, prints the ratio to the first one. An update of 1,000,000 \
      elements should take at most three times as long as one of 1,000.
      """,
    options: [
      count("number of operations per run", default: defaultModelCount),
      OptionDescription(
        "elements", value: .integer(1...100_000_000), help: "number of elements of a collection",
        defaultText: sizes.map { grouped($0) }.joined(separator: ", "), repeats: true),
    ]
  ) { options, report in
    let count = options.integer("count") ?? defaultModelCount
    let given = options.texts("elements").compactMap(Count.parse)
    let sizes = given.isEmpty ? sizes : given
    try CatalogMeasures(count: count, sizes: sizes).run(&report)
    try BulkMeasures(sizes: sizes).run(&report)
    try PositionMeasures(count: count, sizes: sizes).run(&report)
    try ComposeMeasures(count: count).run(&report)
  }

  private static let defaultModelCount = 200_000
  private static let sizes = [1000, 100_000, 1_000_000]
}

/// Commits of one element each, for collections of several sizes.
struct CatalogMeasures {
  let count: Int
  let sizes: [Int]

  /// A kind of collection to measure.
  private struct Kind {
    let name: String
    /// The members of the definition, as JSON.
    let members: String
  }

  private static let kinds = [
    Kind(name: "order of arrival", members: #""bins":[{"name":"all"}]"#),
    Kind(name: "sorted", members: #""bins":[{"name":"all","sort":[{"by":"$.at"}]}]"#),
    Kind(name: "a section for each element", members: #""section":"$.at""#),
    Kind(
      name: "two filtered bins",
      members: #""bins":[{"name":"high","filter":"@.priority >= 5"},{"name":"low","filter":"@.priority < 5"}]"#),
  ]

  func run(_ report: inout Report) throws {
    for kind in Self.kinds {
      try report.title("a collection, \(kind.name): elements of \(CollectionUnderTest.elementBytes) bytes")
      var table = SizeTable()
      for size in sizes {
        let collection = try CollectionUnderTest(kind.members, size: size)
        for operation in [CollectionOperation.update, .insert, .delete] {
          let sample = try collection.measure(operation, count: count, runs: report.runs)
          try table.add(operation.rawValue, size: size, sample.sample, count: sample.count, report)
        }
      }
    }
  }
}

/// Operations that change most of a collection: `set` with a tenth as many other elements, `delete` of every second element,
/// and a redefinition.
struct BulkMeasures {
  let sizes: [Int]

  func run(_ report: inout Report) throws {
    try report.title("a whole collection at once, for each element that was there")
    for size in sizes {
      try measure("set of a tenth as many new ones, \(grouped(size))", size, report) { collection in
        try collection.set(size..<(size + size / 10))
      }
      try measure("delete of every other one, \(grouped(size))", size, report) { collection in
        try collection.delete(stride(from: 0, to: size, by: 2))
      }
      try measure("other bins, \(grouped(size))", size, report) { collection in
        try collection.redefine(
          #""bins":[{"name":"high","filter":"@.priority >= 5"},{"name":"all","sort":[{"by":"$.at"}]}]"#)
      }
    }
  }

  /// Measures an operation on a new collection for each run.
  private func measure(
    _ name: String, _ size: Int, _ report: Report, _ body: (CollectionUnderTest) throws -> UInt64
  ) throws {
    var times: [Double] = []
    for _ in 0..<report.runs {
      let collection = try CollectionUnderTest(#""bins":[{"name":"all"}]"#, size: size)
      times.append(Double(try body(collection)))
    }
    try report.add(name, Sample(times), count: size)
  }
}

/// Composition of changes, as for a watcher that fell behind.
struct ComposeMeasures {
  let count: Int

  private static let rows = 1_000_000

  func run(_ report: inout Report) throws {
    try report.title("composing changes of one row into one, each; \(counted(Self.rows, "row"))")
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
