import FeedSystem

/// The cases of `feedbench socket`.
struct SocketMeasures {
  let job: PushJob
  /// Numbers of watchers to measure with.
  let watchers: [Int]
  /// Elements of the large snapshot; 0 for none.
  let snapshot: Int
  let feedd: FeeddServer
  let redis: RedisServer?

  init(job: PushJob, watchers: [Int], snapshot: Int, feedd: String, redis: String?) {
    self.job = job
    self.watchers = watchers
    self.snapshot = snapshot
    self.feedd = FeeddServer(path: feedd)
    self.redis = redis.map { RedisServer(path: $0) }
  }

  func run(_ report: inout Report) throws {
    try report.title("fan-out: elements of \(job.payload) bytes, \(job.window) pushes unanswered")
    for number in watchers {
      var job = job
      job.watchers = number
      try fanOut(job, report)
    }
    try report.title("one at a time")
    try roundTrips(report)
    if snapshot > 0 {
      try report.title("pings of one connection while another is sent \(snapshot) elements")
      var job = job
      job.elements = snapshot
      try SnapshotMeasure(server: feedd, job: job).run(report)
    }
  }

  /// Runs the job on every server, in turn, so that what the machine does meanwhile meets them alike.
  private func fanOut(_ job: PushJob, _ report: Report) throws {
    var ours = try FanOut(feedd, job)
    var others = try redis.map { try FanOut($0, job) }
    for run in 0...report.runs {
      try ours.run(counts: run > 0)
      try others?.run(counts: run > 0)
    }
    let what = "to \(job.watchers) watchers"
    try report.add("\(feedd.name), \(what)", ours.metrics, noise: ours.sample.noise)
    guard let others else { return }
    try report.add("Redis, \(what)", others.metrics, noise: others.sample.noise)
    var ratios = [
      Metric(name: "ratio", value: others.sample.best / ours.sample.best, unit: "× Redis (best)"),
      Metric(name: "ratioOfMedians", value: others.sample.median / ours.sample.median, unit: "(median)"),
    ]
    if let our = ours.serverTime, let other = others.serverTime {
      ratios.append(Metric(name: "ratioOfServerTime", value: other / our, unit: "(server's time)"))
    }
    try report.add("feedd ÷ Redis, \(what)", ratios)
  }

  private func roundTrips(_ report: Report) throws {
    let count = max(1, min(job.count, 20_000))
    for server in [feedd] + (redis.map { [$0] } ?? []) as [any Server] {
      let ping = try RoundTrips.pings(server, count: count)
      try report.add("\(server.name), a ping and its answer", ping.metrics)
      var job = job
      job.watchers = 1
      job.count = count
      let update = try RoundTrips.updates(server, job)
      try report.add("\(server.name), an update, its answer and delta", update.metrics)
    }
  }
}
