import FeedSystem

extension BenchmarkCommand {
  static let tree = BenchmarkCommand(
    name: "tree", summary: "push below levels of feeds made of feeds; append to a content of slots",
    about: """
      Measures, in the engine without sockets, what feeds made of feeds cost. A push into a collection below several levels of \
      composed, segmented and slots feeds, with many rows beside it and a watcher at the top, against one into the bare \
      collection with a watcher on it: it should cost at most twice as much below ten levels. An append to one content of a \
      slots feed, against one to a content a hundredth as long: it should cost the same.
      """,
    options: [
      count("pushes of a run", default: defaultTreeCount),
      OptionDescription(
        "levels", value: .integer(1...100), help: "feeds above the collection", defaultText: "\(defaultLevels)"),
      OptionDescription(
        "rows", value: .integer(1...10_000_000), help: "rows beside the collection, and of a content of slots",
        defaultText: "\(defaultRows)"),
      OptionDescription(
        "kind", value: .choice(NestingMeasures.Tower.allCases.map(\.rawValue)),
        help: "measure only levels of this kind; mixed: composed, segmented and slots in turn; may be repeated"),
      OptionDescription(
        "window", value: .integer(1...65_536), help: "pushes in a turn", defaultText: "\(PushJob.defaultWindow)"),
    ]
  ) { options, report in
    var job = PushJob(count: options.integer("count") ?? defaultTreeCount)
    job.window = options.integer("window") ?? job.window
    let rows = options.integer("rows") ?? defaultRows
    let towers = options.texts("kind").compactMap(NestingMeasures.Tower.init)
    try NestingMeasures(
      job: job, levels: options.integer("levels") ?? defaultLevels, rows: rows,
      towers: towers.isEmpty ? NestingMeasures.Tower.allCases : towers
    ).run(&report)
    if !towers.isEmpty { return }
    try SlotsMeasures(count: job.count, window: job.window, sizes: [max(1, rows / 100), rows]).run(&report)
  }

  private static let defaultTreeCount = 200_000
  private static let defaultLevels = 10
  private static let defaultRows = 100_000
}
