import FeedSystem

extension Command {
  static let engine = Command(
    name: "engine", summary: "drive the engine without sockets: requests in, frames out",
    about: """
      Measures the engine alone: frames of pushes handed in as a socket would bring them, in turns of a window each, and what is \
      queued for the pusher and the watchers taken out as a socket would take it. What the daemon adds to this is the kernel's.
      """,
    options: [
      count("updates that a run pushes", default: defaultEngineCount),
      OptionDescription(
        "watchers", value: .integer(0...10_000), help: "connections that watch; may be repeated",
        defaultText: watchers.map { "\($0)" }.joined(separator: ", ")),
      OptionDescription(
        "window", value: .integer(1...65_536), help: "pushes in a turn", defaultText: "\(PushJob.defaultWindow)"),
      OptionDescription(
        "payload", value: .integer(50...1_000_000), help: "bytes of an element",
        defaultText: "\(PushJob.defaultPayload)"),
    ]
  ) { options, report in
    let given = options.texts("watchers").compactMap { Int($0) }
    var job = PushJob(count: options.integer("count") ?? defaultEngineCount)
    job.window = options.integer("window") ?? job.window
    job.payload = options.integer("payload") ?? job.payload
    try report.title("pushes of \(job.payload) bytes, \(job.window) in a turn")
    for watchers in given.isEmpty ? watchers : given {
      job.watchers = watchers
      let driver = try EngineDriver(job)
      let sample = try Sample.measure(runs: report.runs) { try driver.run() }
      let each = sample.best / Double(job.count)
      try report.add(
        "an update, \(watchers) watchers",
        [.nanoseconds(each), .millionsPerSecond("updates", 1e3 / each)], noise: sample.noise)
    }
  }

  private static let defaultEngineCount = 400_000
  private static let watchers = [0, 1, 8, 32]
}
