import FeedJSON
import FeedSystem

extension BenchmarkCommand {
  static let view = BenchmarkCommand(
    name: "view", summary: "push below views of a large collection",
    about: """
      Measures, in the engine without sockets, what views cost. A push into a collection below a view of its first 20 rows, and \
      below one that is filtered and sorted, each with a watcher on the view, against one into the bare collection with a \
      watcher on it: it should cost at most twice and three times as much.
      """,
    options: [
      count("pushes of a run", default: defaultViewCount),
      OptionDescription(
        "elements", value: .integer(1...10_000_000), help: "elements of the collection",
        defaultText: grouped(defaultViewElements)),
      window(),
    ]
  ) { options, report in
    var job = PushJob(count: options.integer("count") ?? defaultViewCount)
    job.window = options.integer("window") ?? job.window
    job.elements = options.integer("elements") ?? defaultViewElements
    try ViewMeasures(job: job).run(&report)
  }

  private static let defaultViewCount = 200_000
  private static let defaultViewElements = 1_000_000
}

/// Pushes into a collection below a view, against pushes into the bare collection.
struct ViewMeasures {
  let job: PushJob

  /// Views by name. Each push changes the sort key of an element and so its place in the sorted views.
  private static let views = [
    ("the first 20 rows", #""limit":20"#),
    ("filtered and sorted", #""filter":"@.version > 0","sort":[{"by":"$.version","order":"descending"}]"#),
    ("filtered and sorted, 20 rows", #""filter":"@.version > 0","sort":[{"by":"$.version"}],"limit":20"#),
  ]

  func run(_ report: inout Report) throws {
    try report.title(
      "pushes of \(counted(job.payload, "byte")) below a view of \(counted(job.elements, "row")), a watcher on the view"
    )
    let bare = try measure(nil, report)
    try report.add("the bare collection", bare, count: job.count)
    for (name, members) in Self.views {
      try report.add(name, try measure(members, report), count: job.count, bare: bare)
    }
  }

  private func measure(_ members: String?, _ report: Report) throws -> Sample {
    let frames = Texts.preparation(of: job)
    if let members {
      frames.append(
        frame: Texts.request("define", #"{"feed":"view","kind":"view","of":"\#(PushJob.feed)",\#(members)}"#))
    }
    let driver = try EngineDriver(
      preparation: frames, watched: [members == nil ? PushJob.feed : "view"], frames: .pushes(job), window: job.window)
    return try Sample.measure(runs: report.runs) { try driver.run(job.count, reachesWatchers: members == nil) }
  }
}
