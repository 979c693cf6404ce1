/// The same cases at several sizes: prints each with its ratio to the first size.
struct SizeTable {
  private var first: [String: Double] = [:]
  private var firstSize = 0

  /// Prints what `count` operations at a size took.
  mutating func add(_ name: String, size: Int, _ sample: Sample, count: Int, _ report: Report) throws {
    let each = sample.best / Double(count)
    var metrics = [Metric.nanoseconds(each)]
    if let base = first[name] {
      metrics.append(.ratio(each / base, to: "\(firstSize)"))
    } else {
      first[name] = each
      firstSize = size
    }
    try report.add("\(name), \(size)", metrics, noise: sample.noise)
  }
}
