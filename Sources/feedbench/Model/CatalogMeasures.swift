import FeedJSON
import FeedModel
import FeedSystem

/// Commits of one element each into collections of several sizes.
struct CatalogMeasures {
  let count: Int
  let sizes: [Int]

  /// What a collection of the measurement is like.
  private struct Kind {
    let name: String
    let bins: String
  }

  private static let kinds = [
    Kind(name: "order of arrival", bins: #"[{"name":"all"}]"#),
    Kind(name: "sorted", bins: #"[{"name":"all","sort":[{"by":"$.at"}]}]"#),
    Kind(
      name: "two filtered bins",
      bins: #"[{"name":"high","filter":"@.priority >= 5"},{"name":"low","filter":"@.priority < 5"}]"#),
  ]

  func run(_ report: inout Report) throws {
    for kind in Self.kinds {
      try report.title("a collection, \(kind.name): elements of \(CollectionUnderTest.elementBytes) bytes")
      var table = SizeTable()
      for size in sizes {
        let collection = try CollectionUnderTest(bins: kind.bins, size: size)
        for operation in [CollectionOperation.update, .insert, .delete] {
          let sample = try collection.measure(operation, count: count, runs: report.runs)
          try table.add(operation.rawValue, size: size, sample.sample, count: sample.count, report)
        }
      }
    }
  }
}
