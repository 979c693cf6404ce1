import FeedSystem

extension BenchmarkCommand {
  static let engine = BenchmarkCommand(
    name: "engine", summary: "drive the engine without sockets: requests in, frames out",
    about: """
      Measures the engine alone: frames of pushes handed in as a socket would bring them, in turns of a window each, and what is \
      queued for the pusher and the watchers taken out as a socket would take it. What the daemon adds to this is the kernel's.
      """,
    options: [
      count("number of updates per run", default: defaultEngineCount),
      OptionDescription(
        "watchers", value: .integer(0...10_000), help: "number of watching connections",
        defaultText: defaultWatchers.map { "\($0)" }.joined(separator: ", "), repeats: true),
      OptionDescription(
        "elements", value: .integer(1...100_000_000),
        help: "elements of the feed, updated in no order",
        defaultText: defaultSizes.map { "\($0)" }.joined(separator: ", "), repeats: true),
      OptionDescription(
        "window", value: .integer(1...65_536), help: "pushes in a turn", defaultText: "\(PushJob.defaultWindow)"),
      OptionDescription(
        "payload", value: .integer(50...1_000_000), help: "size of an element in bytes",
        defaultText: "\(PushJob.defaultPayload)"),
    ]
  ) { options, report in
    var job = PushJob(count: options.integer("count") ?? defaultEngineCount)
    job.window = options.integer("window") ?? job.window
    job.payload = options.integer("payload") ?? job.payload
    let watchers = options.texts("watchers").compactMap { Int($0) }
    let sizes = options.texts("elements").compactMap { Int($0) }
    try EngineMeasures(
      job: job, watchers: watchers.isEmpty ? defaultWatchers : watchers, sizes: sizes.isEmpty ? defaultSizes : sizes
    ).run(&report)
  }

  private static let defaultEngineCount = 400_000
  private static let defaultWatchers = [0, 1, 8, 32]
  private static let defaultSizes = [1000, 1_000_000]
}
