import FeedJSON
import FeedSystem

extension BenchmarkCommand {
  static let json = BenchmarkCommand(
    name: "json", summary: "scan, copy and compare JSON texts",
    about: """
      Measures the JSON scanner on objects of 250 bytes, with and without white space, and on an array of them: \
      validating into a tape, finding a member, writing without white space, comparing.
      """,
    options: [count("number of objects per run", default: defaultJSONCount)]
  ) { options, report in
    try JSONMeasures(count: options.integer("count") ?? defaultJSONCount).run(&report)
  }

  private static let defaultJSONCount = 200_000
}

/// The cases of `feedbench json`.
private struct JSONMeasures: ~Copyable {
  private let count: Int
  private let compact = Elements.texts(distinct, bytes: size)
  private let spaced: Texts

  private static let size = 250
  private static let distinct = 1024

  init(count: Int) {
    self.count = count
    var random = BenchmarkRandom()
    let spaced = Texts()
    for id in 0..<Self.distinct {
      let text = Elements.text(id: id, bytes: Self.size, &random)
      spaced.append(String(text.flatMap { $0 == "," || $0 == ":" ? [$0, " "] : [$0] }))
    }
    self.spaced = spaced
  }

  func run(_ report: inout Report) throws {
    try report.title("objects of \(Self.size) bytes")
    try scan(compact, "scan", report)
    try scan(spaced, "scan, with white space", report)
    try scanArray(report)
    try findMember(report)
    try compactCopy(report)
    try compare(report)
  }

  private func scan(_ texts: Texts, _ name: String, _ report: Report) throws {
    var scanner = JSONScanner()
    let sample = try Sample.measure(runs: report.runs) {
      var members = 0
      for index in 0..<count { members &+= try scanner.scan(texts[index % texts.count]).count }
      Sink.take(members)
    }
    try report.add(name, sample, count: count, bytes: texts.bytes / texts.count)
  }

  private func scanArray(_ report: Report) throws {
    var scanner = JSONScanner()
    let array = compact.array()
    let rounds = max(1, count / compact.count)
    let sample = try Sample.measure(runs: report.runs) {
      for _ in 0..<rounds { Sink.take(try scanner.scan(array.bytes).count) }
    }
    try report.add(
      "scan an array of them, each", sample, count: rounds * compact.count, bytes: array.count / compact.count)
  }

  private func findMember(_ report: Report) throws {
    var scanner = JSONScanner()
    let array = compact.array()
    let root = try scanner.scan(array.bytes)
    let rounds = max(1, count / compact.count)
    let sample = Sample.measure(runs: report.runs) {
      var sum = 0
      for _ in 0..<rounds {
        for element in root.elements { sum &+= element.member("priority")?.int ?? 0 }
      }
      Sink.take(sum)
    }
    try report.add("find a member, read a number", sample, count: rounds * compact.count)
  }

  private func compactCopy(_ report: Report) throws {
    var scanner = JSONScanner()
    var out = ByteBuffer()
    let sample = try Sample.measure(runs: report.runs) {
      for index in 0..<count {
        out.removeAll(keepingCapacity: true)
        out.append(compact: try scanner.scan(spaced[index % spaced.count]))
      }
      Sink.take(out.count)
    }
    try report.add("scan and write without white space", sample, count: count, bytes: spaced.bytes / spaced.count)
  }

  private func compare(_ report: Report) throws {
    var scanner = JSONScanner()
    var other = JSONScanner()
    let first = compact.array()
    let second = spaced.array()
    let (a, b) = (try scanner.scan(first.bytes), try other.scan(second.bytes))
    let rounds = max(1, count / compact.count)
    let sample = Sample.measure(runs: report.runs) {
      var same = 0
      for _ in 0..<rounds {
        for (left, right) in zip(a.elements, b.elements) where left.equals(right) { same &+= 1 }
      }
      Sink.take(same)
    }
    try report.add("compare by value, other white space", sample, count: rounds * compact.count)
  }
}
