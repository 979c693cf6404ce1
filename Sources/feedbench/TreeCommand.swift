import FeedJSON
import FeedSystem

extension BenchmarkCommand {
  static let tree = BenchmarkCommand(
    name: "tree", summary: "push into nested feeds; append to a content of a slots feed",
    about: """
      Measures the cost of nested feeds in the engine, without sockets. Pushes into a collection below several levels of \
      composed, segmented and slots feeds, with many other rows and a watcher of the top feed, are compared with pushes into \
      a watched collection without parents; below ten levels they should take at most twice as long. Appends to one content \
      of a slots feed are compared with appends to a content with a hundredth of the rows; they should take equally long.
      """,
    options: [
      count("number of pushes per run", default: defaultTreeCount),
      OptionDescription(
        "levels", value: .integer(1...100), help: "number of feeds above the collection",
        defaultText: "\(defaultLevels)"),
      OptionDescription(
        "rows", value: .integer(1...10_000_000),
        help: "number of rows beside the collection, and of a content of the slots feed",
        defaultText: grouped(defaultRows)),
      OptionDescription(
        "kind", value: .choice(NestingMeasures.Tower.allCases.map(\.rawValue)),
        help: "kind of the levels; mixed alternates composed, segmented and slots", defaultText: "all kinds",
        repeats: true),
      window(),
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

/// Pushes into a collection below nested feeds, compared with pushes into a collection without parents.
struct NestingMeasures {
  let job: PushJob
  /// The number of feeds above the collection.
  let levels: Int
  /// The number of rows of the array beside the collection.
  let rows: Int

  let towers: [Tower]

  /// The kind of the levels.
  enum Tower: String, CaseIterable {
    case composed, segmented, slots
    /// The other kinds in alternation.
    case mixed

    /// Returns the definition of the feed of a level, which contains the feed "few" and then `source`.
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
    try report.title(
      "pushes of \(counted(job.payload, "byte")) below \(counted(levels, "level")), \(counted(rows, "row")) beside, a watcher at the top"
    )
    let bare = try measure(nil, report)
    try report.add("the bare collection", bare, count: job.count)
    for tower in towers {
      try report.add(tower.rawValue, try measure(tower, report), count: job.count, bare: bare)
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
  /// Appends the frames that define an array and insert `count` short elements.
  func append(array feed: String, count: Int, batch: Int = 1000) {
    append(frame: Texts.request("define", #"{"feed":"\#(feed)","kind":"array"}"#))
    for start in stride(from: 0, to: count, by: batch) {
      let elements = (start..<min(count, start + batch)).map { #"{"row":\#($0)}"# }.joined(separator: ",")
      append(frame: Texts.request("insert", #"{"feed":"\#(feed)","elements":[\#(elements)]}"#))
    }
  }
}

/// Appends to one content of a slots feed and removals from its end, for several sizes of the content.
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

  /// Returns alternating frames that append an element and remove it.
  private func steps(at size: Int) -> Texts {
    let frames = Texts()
    for step in 0..<512 {
      frames.append(frame: Texts.request("insert", #"{"feed":"posts","elements":[{"new":\#(step)}]}"#))
      frames.append(frame: Texts.request("remove", #"{"feed":"posts","at":[\#(size)]}"#))
    }
    return frames
  }
}
