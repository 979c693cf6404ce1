/// The cases of `feedbench engine`.
struct EngineMeasures {
  let job: PushJob
  /// Numbers of watchers to measure with.
  let watchers: [Int]
  /// Numbers of elements to measure with; all but the first with the first number of watchers only.
  let sizes: [Int]

  func run(_ report: inout Report) throws {
    try report.title("pushes of \(job.payload) bytes, \(job.window) in a turn")
    var first: Double?
    for size in sizes {
      for number in size == sizes.first ? watchers : Array(watchers.prefix(1)) {
        var job = job
        (job.elements, job.watchers) = (size, number)
        let driver = try EngineDriver(job)
        let sample = try Sample.measure(runs: report.runs) { try driver.run(job.count) }
        let each = sample.best / Double(job.count)
        var metrics = [Metric.nanoseconds(each), .millionsPerSecond("updates", 1e3 / each)]
        if let first, size != sizes.first { metrics.append(.ratio(each / first, to: "\(sizes[0])")) }
        first = first ?? each
        try report.add("an update of \(size), \(number) watchers", metrics, noise: sample.noise)
      }
    }
  }
}
