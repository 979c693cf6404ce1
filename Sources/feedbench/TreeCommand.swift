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

/// Pushes into a collection below feeds made of feeds, against pushes into the bare collection.
struct NestingMeasures {
  let job: PushJob
  /// Feeds above the collection.
  let levels: Int
  /// Rows of the array beside it.
  let rows: Int

  let towers: [Tower]

  /// What the levels are.
  enum Tower: String, CaseIterable {
    case composed, segmented, slots
    /// One of each in turn.
    case mixed

    /// The definition of the feed of a level, which shows `source` and, where it can show more, rows of others before it.
    func definition(of feed: String, level: Int, over source: String) -> String {
      switch self {
      case .composed: #"{"feed":"\#(feed)","kind":"composed","children":["few","\#(source)"]}"#
      case .segmented: #"{"feed":"\#(feed)","kind":"segmented","children":["few","\#(source)"],"current":1}"#
      case .slots:
        #"{"feed":"\#(feed)","kind":"slots","contents":{"Few":"few","Row":"\#(source)"},"pattern":["Few","Row","Row"],"repeatables":["Row"]}"#
      case .mixed:
        ([.composed, .segmented, .slots] as [Tower])[level % 3].definition(of: feed, level: level, over: source)
      }
    }
  }

  func run(_ report: inout Report) throws {
    try report.title("pushes of \(job.payload) bytes below \(levels) levels, \(rows) rows beside, a watcher at the top")
    let bare = try measure(nil, report)
    try report.add("the bare collection", [.nanoseconds(bare.best / Double(job.count))], noise: bare.noise)
    for tower in towers {
      let sample = try measure(tower, report)
      try report.add(
        tower.rawValue, [.nanoseconds(sample.best / Double(job.count)), .ratio(sample.best / bare.best, to: "bare")],
        noise: sample.noise)
    }
  }

  private func measure(_ tower: Tower?, _ report: Report) throws -> Sample {
    let frames = Texts.preparation(of: job)
    var top = PushJob.feed
    func define(_ feed: String, _ definition: String) {
      frames.append(frame: Texts.request("define", definition))
      top = feed
    }
    if let tower {
      frames.append(array: "many", count: rows)
      frames.append(array: "few", count: 3)
      define("level1", #"{"feed":"level1","kind":"composed","children":["many","\#(PushJob.feed)"]}"#)
      for level in stride(from: 2, through: levels, by: 1) {
        define("level\(level)", tower.definition(of: "level\(level)", level: level, over: top))
      }
    }
    let driver = try EngineDriver(
      preparation: frames, watched: [top], frames: .pushes(job), window: job.window)
    return try Sample.measure(runs: report.runs) { try driver.run(job.count) }
  }
}

extension Texts {
  /// Appends the frames that make an array of so many short elements.
  func append(array feed: String, count: Int, batch: Int = 1000) {
    append(frame: Texts.request("define", #"{"feed":"\#(feed)","kind":"array"}"#))
    for start in stride(from: 0, to: count, by: batch) {
      let elements = (start..<min(count, start + batch)).map { #"{"row":\#($0)}"# }.joined(separator: ",")
      append(frame: Texts.request("insert", #"{"feed":"\#(feed)","elements":[\#(elements)]}"#))
    }
  }
}

/// Appends to one content of a slots feed, and removals from its end, at several lengths of the content.
struct SlotsMeasures {
  let count: Int
  let window: Int
  let sizes: [Int]

  func run(_ report: inout Report) throws {
    try report.title("appends to a content of a watched slots feed, and removals of what was appended")
    var table = SizeTable()
    for size in sizes {
      let frames = Texts()
      frames.append(array: "posts", count: size)
      frames.append(array: "ads", count: size / 2)
      frames.append(
        frame: Texts.request(
          "define",
          #"{"feed":"both","kind":"slots","contents":{"Post":"posts","Ad":"ads"},"pattern":["Post","Post","Post","Ad"],"repeatables":["Post"],"header":["Ad","Post"]}"#
        ))
      let driver = try EngineDriver(
        preparation: frames, watched: ["both"], frames: steps(at: size), window: window)
      let sample = try Sample.measure(runs: report.runs) { try driver.run(count) }
      try table.add("rows", size: size, sample, count: count, report)
    }
  }

  /// An append and a removal, again and again.
  private func steps(at size: Int) -> Texts {
    let frames = Texts()
    for step in 0..<512 {
      frames.append(frame: Texts.request("insert", #"{"feed":"posts","elements":[{"new":\#(step)}]}"#))
      frames.append(frame: Texts.request("remove", #"{"feed":"posts","at":[\#(size)]}"#))
    }
    return frames
  }
}
