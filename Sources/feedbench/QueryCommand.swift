import FeedJSON
import FeedQuery
import FeedSystem

extension BenchmarkCommand {
  static let query = BenchmarkCommand(
    name: "query", summary: "evaluate filters, paths and regular expressions",
    about: """
      Measures filters, singular paths and JSONPath queries on scanned objects of 250 bytes, and I-Regexp matching, on a long \
      text as well.
      """,
    options: [count("number of objects per run", default: defaultQueryCount)]
  ) { options, report in
    try QueryMeasures(count: options.integer("count") ?? defaultQueryCount).run(&report)
  }

  private static let defaultQueryCount = 200_000
}

/// The cases of `feedbench query`.
private struct QueryMeasures: ~Copyable {
  private let count: Int
  private let array = Elements.texts(distinct, bytes: 250).array()

  private static let distinct = 1024

  init(count: Int) { self.count = count }

  func run(_ report: inout Report) throws {
    var scanner = JSONScanner()
    let root = try scanner.scan(array.bytes)
    try report.title("filters, an object of 250 bytes")
    for text in [
      "@.priority >= 8", "@.priority >= 8 && @.read == false", "@.kind == 'alert' || @.author.id < 500000",
      "search(@.text, 'ab+c')", "match(@.kind, 'al.*|ma.*')", "@.author[?@ > 5]",
    ] {
      let filter = try Filter(parsing: text)
      try each(of: root, text, report) { filter.accepts($0) ? 1 : 0 }
    }
    try report.title("paths, an object of 250 bytes")
    for text in ["$.id", "$.author.name"] {
      let path = try SingularPath(parsing: text)
      try each(of: root, "\(text), singular", report) { path.resolve($0) == nil ? 0 : 1 }
    }
    for text in ["$.author.*", "$..id", "$[?@ == true]"] {
      let path = try JSONPath(parsing: text)
      try each(of: root, text, report) { element in
        var found = 0
        path.evaluate(element) { _ in found &+= 1 }
        return found
      }
    }
    try expressions(&report)
  }

  private func each(of root: JSONView, _ name: String, _ report: Report, _ body: (JSONView) -> Int) throws {
    let rounds = max(1, count / Self.distinct)
    let sample = Sample.measure(runs: report.runs) {
      var sum = 0
      for _ in 0..<rounds {
        for element in root.elements { sum &+= body(element) }
      }
      Sink.take(sum)
    }
    try report.add(name, sample, count: rounds * Self.distinct)
  }

  private func expressions(_ report: inout Report) throws {
    let length = max(16, min(count, 1_000_000))
    try report.title("regular expressions, a text of \(counted(length, "byte"))")
    let text = [UInt8](repeating: UInt8(ascii: "a"), count: length - 1) + [UInt8(ascii: "!")]
    for pattern in ["(a+)+$", "a*b", "[a-z]+!"] {
      let expression = try IRegexp(parsing: pattern)
      let sample = Sample.measure(runs: report.runs) {
        text.withUnsafeBytes { Sink.take(expression.searches(in: $0) ? 1 : 0) }
      }
      try report.add("search \(pattern), each byte", sample, count: length, bytes: 1)
    }
  }
}
