import FeedJSON
import FeedSystem

/// Pushes into a collection below nested feeds, compared with pushes into a collection without parents.
struct NestingMeasures {
  let job: PushJob

  /// The number of feeds above the collection.
  private static let levels = 10
  /// The number of rows of the array beside the collection.
  private static let rows = 100_000

  /// The kind of the levels.
  private enum Tower: String, CaseIterable {
    case composed, segmented, slots

    /// Returns the definition of the feed of a level, which contains the feed "few" and then `source`.
    func definition(of feed: String, level: Int, over source: String) -> String {
      switch self {
      case .composed: #"{"feed":"\#(feed)","kind":"composed","children":["few","\#(source)"]}"#
      case .segmented: #"{"feed":"\#(feed)","kind":"segmented","children":["few","\#(source)"],"current":1}"#
      case .slots:
        #"{"feed":"\#(feed)","kind":"slots","contents":{"Few":"few","Row":"\#(source)"},"pattern":["Few","Row","Row"],"repeatables":["Row"]}"#
      }
    }
  }

  func run(_ report: inout Report) throws {
    try report.title(
      "pushes of \(counted(job.payload, "byte")) below \(counted(Self.levels, "level")), \(counted(Self.rows, "row")) beside, a watcher at the top"
    )
    let bare = try measure(nil, report)
    try report.add("the bare collection", bare, count: job.count)
    for tower in Tower.allCases {
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
      frames.append(array: "many", count: Self.rows)
      frames.append(array: "few", count: 3)
      define("level1", #"{"feed":"level1","kind":"composed","children":["many","\#(PushJob.feed)"]}"#)
      for level in stride(from: 2, through: Self.levels, by: 1) {
        define("level\(level)", tower.definition(of: "level\(level)", level: level, over: top))
      }
    }
    let driver = try EngineDriver(preparation: frames, watched: [top], frames: .pushes(job), window: job.window)
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
