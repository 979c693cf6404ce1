import FeedJSON
import FeedModel
import FeedSystem

/// One operation that changes most of a collection: `set` of a tenth as many other elements, `delete` of every other one, another
/// definition.
struct BulkMeasures {
  let sizes: [Int]

  func run(_ report: inout Report) throws {
    try report.title("a whole collection at once, for each element that was there")
    for size in sizes {
      try measure("set of a tenth as many new ones, \(size)", size, report) { collection in
        try collection.set(size..<(size + size / 10))
      }
      try measure("delete of every other one, \(size)", size, report) { collection in
        try collection.delete(stride(from: 0, to: size, by: 2))
      }
      try measure("other bins, \(size)", size, report) { collection in
        try collection.redefine(
          bins: #"[{"name":"high","filter":"@.priority >= 5"},{"name":"all","sort":[{"by":"$.at"}]}]"#)
      }
    }
  }

  /// Times an operation on a collection that is made anew for each run.
  private func measure(
    _ name: String, _ size: Int, _ report: Report, _ body: (CollectionUnderTest) throws -> UInt64
  ) throws {
    var times: [Double] = []
    for _ in 0..<report.runs {
      let collection = try CollectionUnderTest(bins: #"[{"name":"all"}]"#, size: size)
      times.append(Double(try body(collection)))
    }
    try report.add(name, Sample(times), count: size)
  }
}
