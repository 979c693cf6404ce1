/// The cases of `feedbench engine`.
struct EngineMeasures {
  let job: PushJob
  /// The numbers of watchers to measure with.
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
    try measureStalled(&report)
  }

  /// Pushes one at a time beside watchers of another feed that read nothing: they must not cost anything.
  private func measureStalled(_ report: inout Report) throws {
    var alone: Double?
    for number in [0, 4000] {
      var job = job
      (job.count, job.window, job.elements, job.watchers) = (max(1, job.count / 8), 1, sizes[0], 0)
      let driver = try EngineDriver(job, stalled: number)
      let sample = try Sample.measure(runs: report.runs) { try driver.run(job.count) }
      let each = sample.best / Double(job.count)
      var metrics = [Metric.nanoseconds(each)]
      if let alone { metrics.append(.ratio(each / alone, to: "0")) }
      alone = alone ?? each
      try report.add("stalled watchers, \(number), and an update of another feed", metrics, noise: sample.noise)
    }
  }
}
