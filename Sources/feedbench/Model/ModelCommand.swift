import FeedSystem

extension BenchmarkCommand {
  static let model = BenchmarkCommand(
    name: "model", summary: "change collections of several sizes; positions; composition",
    about: """
      Measures the model without wire and sockets: commits of one element each into collections of several sizes, in order of \
      arrival and sorted; operations that change a whole collection at once; the tree of positions under them; the composition of changes. For each size but the first the ratio to \
      the first is printed: an update among 1,000,000 elements should cost at most three times one among 1,000.
      """,
    options: [
      count("operations that a run makes", default: defaultModelCount),
      OptionDescription(
        "elements", value: .integer(1...100_000_000), help: "elements of a collection",
        defaultText: sizes.map { "\($0)" }.joined(separator: ", "), repeats: true),
    ]
  ) { options, report in
    let count = options.integer("count") ?? defaultModelCount
    let given = options.texts("elements").compactMap { Int($0) }
    let sizes = given.isEmpty ? sizes : given
    try CatalogMeasures(count: count, sizes: sizes).run(&report)
    try BulkMeasures(sizes: sizes).run(&report)
    try PositionMeasures(count: count, sizes: sizes).run(&report)
    try ComposeMeasures(count: count).run(&report)
  }

  private static let defaultModelCount = 200_000
  private static let sizes = [1000, 100_000, 1_000_000]
}
