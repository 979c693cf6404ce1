import FeedJSON

/// Measures servers beside each other.
enum Comparison {
  /// Runs the job on the servers in turn, so that other load on the machine affects all. The first one is feedd.
  ///
  /// - Parameter goals: what the ratio to another server should be.
  static func run(_ job: PushJob, _ servers: [any Server], goals: [String: Double], _ report: Report) throws {
    var measures = try servers.map { try FanOut($0, job) }
    for run in 0...report.runs {
      for place in measures.indices { try measures[place].run(counts: run > 0) }
    }
    let to = "to \(counted(job.watchers, "watcher"))"
    for (server, measure) in zip(servers, measures) {
      try report.add("\(server.name), \(to)", measure.medians, noise: measure.sample.noise)
    }
    for (server, measure) in zip(servers, measures).dropFirst() {
      let ratio = measure.sample.median / measures[0].sample.median
      var metrics = [Metric.ratio(server is CopyServer ? 1 / ratio : ratio, to: server is CopyServer ? "feedd" : "it")]
      if let goal = goals[server.name] { metrics.append(Metric(name: "goal", value: goal, unit: "goal")) }
      try report.add(server is CopyServer ? "  \(server.name) ÷ feedd" : "  feedd ÷ \(server.name)", metrics)
    }
  }
}
