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
