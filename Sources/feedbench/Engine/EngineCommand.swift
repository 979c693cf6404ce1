import FeedJSON
import FeedSystem

extension BenchmarkCommand {
  static let engine = BenchmarkCommand(
    name: "engine", summary: "drive the engine without sockets: requests in, frames out",
    about: """
      Measures the engine without sockets. One connection pushes elements, a window of requests per turn, and the output for \
      it and for the watchers is discarded. The time that the daemon takes in addition is spent in the kernel.
      """,
    options: [
      count("number of updates per run", default: defaultEngineCount),
      OptionDescription(
        "watchers", value: .integer(0...10_000), help: "number of watching connections",
        defaultText: defaultWatchers.map { "\($0)" }.joined(separator: ", "), repeats: true),
      OptionDescription(
        "elements", value: .integer(1...100_000_000),
        help: "number of elements of the feed, updated in random order",
        defaultText: defaultSizes.map { grouped($0) }.joined(separator: ", "), repeats: true),
      window(), payload,
    ]
  ) { options, report in
    var job = PushJob(count: options.integer("count") ?? defaultEngineCount)
    job.window = options.integer("window") ?? job.window
    job.payload = options.integer("payload") ?? job.payload
    let watchers = options.texts("watchers").compactMap(Count.parse)
    let sizes = options.texts("elements").compactMap(Count.parse)
    try EngineMeasures(
      job: job, watchers: watchers.isEmpty ? defaultWatchers : watchers, sizes: sizes.isEmpty ? defaultSizes : sizes
    ).run(&report)
  }

  private static let defaultEngineCount = 400_000
  private static let defaultWatchers = [0, 1, 8, 32]
  private static let defaultSizes = [1000, 1_000_000]
}

/// The cases of `feedbench engine`.
struct EngineMeasures {
  let job: PushJob
  /// The numbers of watchers to measure with.
  let watchers: [Int]
  /// The numbers of elements to measure with. Only the first one is measured with all numbers of watchers.
  let sizes: [Int]

  func run(_ report: inout Report) throws {
    try report.title("pushes of \(counted(job.payload, "byte")), \(grouped(job.window)) in a turn")
    var first: Double?
    for size in sizes {
      for number in size == sizes.first ? watchers : Array(watchers.prefix(1)) {
        var job = job
        (job.elements, job.watchers) = (size, number)
        let driver = try EngineDriver(job)
        let sample = try Sample.measure(runs: report.runs) { try driver.run(job.count) }
        let each = sample.best / Double(job.count)
        var metrics = [Metric.nanoseconds(each), .millionsPerSecond("updates", 1e3 / each)]
        if let first, size != sizes.first { metrics.append(.ratio(each / first, to: grouped(sizes[0]))) }
        first = first ?? each
        try report.add("an update of \(grouped(size)), \(counted(number, "watcher"))", metrics, noise: sample.noise)
      }
    }
    try measureCounts(&report)
    try measureStalled(&report)
  }

  /// Watchers of counts beside as many watchers of rows: what an update costs, and what each of them receives.
  private func measureCounts(_ report: inout Report) throws {
    guard let number = watchers.max(), number > 0 else { return }
    var job = job
    (job.elements, job.watchers, job.watchesCounts) = (sizes[0], number, true)
    let driver = try EngineDriver(job)
    let sample = try Sample.measure(runs: report.runs) { try driver.run(job.count) }
    let bytes = Double(driver.delivered) / Double(job.count * number)
    try report.add(
      "an update of \(grouped(sizes[0])), \(counted(number, "watcher")) of counts",
      [.nanoseconds(sample.best / Double(job.count)), .bytes(bytes, each: "change")], noise: sample.noise)
  }

  /// Pushes one element at a time while watchers of another feed read nothing. They should not slow down the pushes.
  private func measureStalled(_ report: inout Report) throws {
    var alone: Double?
    for number in [0, 4000] {
      var job = job
      (job.count, job.window, job.elements, job.watchers) = (max(1, job.count / 8), 1, sizes[0], 0)
      let driver = try EngineDriver(job, stalled: number)
      let sample = try Sample.measure(runs: report.runs) { try driver.run(job.count) }
      let each = sample.best / Double(job.count)
      var metrics = [Metric.nanoseconds(each)]
      if let alone { metrics.append(.ratio(each / alone, to: "0")) }
      alone = alone ?? each
      try report.add(
        "stalled watchers, \(grouped(number)), and an update of another feed", metrics, noise: sample.noise)
    }
  }
}
