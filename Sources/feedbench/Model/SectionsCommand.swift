import FeedJSON
import FeedModel
import FeedSystem

extension BenchmarkCommand {
  static let sections = BenchmarkCommand(
    name: "sections", summary: "compare a section for each element with rows of one section",
    about: """
      Measures, without sockets, what sections by value cost: a collection with a section for each element against one with \
      all elements in one bin sorted by the same key. Runs of both alternate. The ratio is the median of the ratios of the \
      runs, and should be 1.
      """,
    options: [
      count("commits of one element per run", default: defaultSectionsCount),
      OptionDescription(
        "elements", value: .integer(1...1_000_000), help: "elements of a collection",
        defaultText: grouped(defaultSectionsElements)),
    ]
  ) { options, report in
    try SectionMeasures(
      count: options.integer("count") ?? defaultSectionsCount,
      size: options.integer("elements") ?? defaultSectionsElements
    ).run(&report)
  }

  private static let defaultSectionsCount = 8192
  private static let defaultSectionsElements = 10_000
}

/// The cases of `feedbench sections`.
struct SectionMeasures {
  let count: Int
  let size: Int

  private static let rows = #""bins":[{"name":"all","sort":[{"by":"$.at"}]}]"#
  private static let sections = #""section":"$.at""#

  func run(_ report: inout Report) throws {
    try report.title("\(counted(size, "element")), each in a section of its own; × one section with all of them")
    let (rows, sections) = try (collection(Self.rows), collection(Self.sections))
    for (name, operation) in [
      ("push of a new element", CollectionOperation.insert), ("update within the section", .edit),
      ("update that changes the section", .update), ("delete", .delete),
    ] {
      try compare(name, each: count, report) {
        try rows.measureOnce(operation, count)
      } sections: {
        try sections.measureOnce(operation, count)
      }
    }
    try compareBulk("update of all within their sections", report) { try $0.update(0..<size, keepsPlace: true) }
    try compareBulk("update of all that changes their sections", report) { try $0.update(0..<size, keepsPlace: false) }
    try compareBulk("push of as many new elements", report) { try $0.update(size..<(2 * size), keepsPlace: false) }
    try compareBulk("delete of every other one", report) { try $0.delete(stride(from: 0, to: size, by: 2)) }
    try compareBulk("delete of all", report) { try $0.delete(stride(from: 0, to: size, by: 1)) }
    try compareBulk("set of a tenth as many new ones", report) { try $0.set(size..<(size + size / 10)) }
    try compareBulk("set of the same identities", report) { try $0.set(0..<size) }
    let plain = #""bins":[{"name":"all"}]"#
    try compare("redefinition", each: size, report) {
      try collection(plain).redefine(Self.rows)
    } sections: {
      try collection(plain).redefine(Self.sections)
    }
    try SectionsInEngine(size: size, count: count).compare(Self.rows, Self.sections, self, report)
  }

  private func collection(_ members: String) throws -> CollectionUnderTest {
    try CollectionUnderTest(members, size: size)
  }

  /// Compares one operation on a new collection for each run.
  private func compareBulk(
    _ name: String, _ report: Report, _ body: (CollectionUnderTest) throws -> UInt64
  ) throws {
    try compare(name, each: size, report) {
      try body(collection(Self.rows))
    } sections: {
      try body(collection(Self.sections))
    }
  }

  /// Prints the times of both for each of `each` elements, and their ratio.
  func compare(
    _ name: String, each: Int, _ report: Report, rows measureRows: () throws -> UInt64,
    sections measureSections: () throws -> UInt64
  ) throws {
    var samples: (rows: [Double], sections: [Double], ratios: [Double]) = ([], [], [])
    for run in 0...report.runs {
      let rows = try measureRows()
      let sections = try measureSections()
      if run == 0 { continue }
      samples.rows.append(Double(rows))
      samples.sections.append(Double(sections))
      samples.ratios.append(Double(sections) / Double(rows))
    }
    let sections = Sample(samples.sections)
    try report.add(
      name,
      [
        .nanoseconds(sections.median / Double(each)),
        .ratio(Sample(samples.ratios).median, to: "rows"),
      ], noise: Sample(samples.ratios).noise)
  }
}

/// The same two collections below an engine, with a watcher.
struct SectionsInEngine {
  let size: Int
  let count: Int

  func compare(_ rows: String, _ sections: String, _ measures: SectionMeasures, _ report: Report) throws {
    for (name, frames) in [("engine: push of a new element, then delete", arrivals()), ("engine: update", updates())] {
      let (rows, sections) = (try driver(rows, frames), try driver(sections, frames))
      try measures.compare(name, each: frames.count, report) {
        try time { try rows.run(frames.count) }
      } sections: {
        try time { try sections.run(frames.count) }
      }
      let bytes = Double(sections.delivered) / Double(max(1, rows.delivered))
      try report.add("\(name), bytes to a watcher", [.ratio(bytes, to: "rows")])
    }
    let (rows, sections) = (try driver(rows, .frame("")), try driver(sections, .frame("")))
    for (name, spanning) in [("snapshot", true), ("snapshot in parts within sections", false)] {
      try measures.compare(name, each: size, report) {
        try rows.watch(spanning: spanning)
      } sections: {
        try sections.watch(spanning: spanning)
      }
      let bytes = Double(sections.delivered - rows.delivered) / Double(size)
      try report.add("\(name), more bytes than of rows", [.bytes(bytes, each: "section")])
    }
  }

  private func time(_ body: () throws -> Void) rethrows -> UInt64 {
    let start = ProcessorClock.now
    try body()
    return ProcessorClock.now - start
  }

  /// Pushes of new elements, then their deletion in another order.
  private func arrivals() -> Texts {
    let frames = Texts()
    var random = BenchmarkRandom(seed: 4)
    let ids = Array(size..<(size + count))
    for id in ids { append(id, place: random.below(1_000_000_000), &random, to: frames) }
    for id in ids.shuffled(using: &random) {
      frames.append(frame: Texts.request("delete", #"{"feed":"bench","id":\#(id)}"#))
    }
    return frames
  }

  /// Updates that change the section of elements.
  private func updates() -> Texts {
    let frames = Texts()
    var random = BenchmarkRandom(seed: 5)
    for _ in 0..<(2 * count) { append(random.below(size), place: random.below(1_000_000_000), &random, to: frames) }
    return frames
  }

  private func append(_ id: Int, place: Int, _ random: inout BenchmarkRandom, to frames: Texts) {
    let element = #"{"id":\#(id),"at":\#(1_700_000_000_000 + place),"text":"\#(random.words(150))"}"#
    frames.append(frame: Texts.request("update", #"{"feed":"bench","element":\#(element)}"#))
  }

  private func driver(_ members: String, _ frames: Texts) throws -> EngineDriver {
    let preparation = Texts()
    preparation.append(frame: Texts.request("define", #"{"feed":"bench","kind":"collection",\#(members)}"#))
    var random = BenchmarkRandom(seed: 3)
    for id in 0..<size { append(id, place: id * 7919, &random, to: preparation) }
    var limits = Limits()
    limits.maxSections = max(limits.maxSections, 2 * (size + count))
    return try EngineDriver(
      preparation: preparation, watched: frames.count > 1 ? [PushJob.feed] : [], frames: frames,
      window: PushJob.defaultWindow, limits: limits)
  }
}
