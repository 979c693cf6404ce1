import FeedSystem

/// The job on one server, run several times.
struct FanOut {
  private let server: any Server
  private let job: PushJob
  private var times: [Double] = []
  private var serverTimes: [Double] = []
  /// Deltas that stood for more than one update, in the worst run.
  private var missing = 0

  init(_ server: any Server, _ job: PushJob) throws {
    self.server = server
    self.job = job
    try server.prepare()
  }

  /// Runs the job once.
  /// - Parameter counts: whether the run is one of those that are told; the first only warms up.
  mutating func run(counts: Bool) throws {
    let pusher = try server.connect()
    let watchers = try (0..<job.watchers).map { _ in try server.subscribe() }
    let clock = try ServerClock(pusher)
    let loop = try LoadLoop(server, job, pusher: pusher, watchers: watchers)
    let before = clock.now
    let start = MonotonicClock.now
    let deliveries = try loop.run()
    let end = MonotonicClock.now
    guard counts else { return }
    times.append(Double(end - start))
    if let before, let after = clock.now { serverTimes.append(after - before) }
    missing = max(missing, job.count * job.watchers - deliveries)
  }

  var sample: Sample { Sample(times) }

  /// Nanoseconds of the server's processor for an update, in its best run; nil when the kernel does not tell.
  var serverTime: Double? { serverTimes.min().map { $0 / Double(job.count) } }

  var metrics: [Metric] {
    let updates = Double(job.count) / sample.best * 1e3
    var metrics = [
      Metric.millionsPerSecond("updates", updates),
      .millionsPerSecond("deliveries", updates * Double(job.watchers)),
    ]
    if let serverTime { metrics.append(Metric(name: "serverNanoseconds", value: serverTime, unit: "ns server")) }
    if missing > 0 { metrics.append(Metric(name: "composed", value: Double(missing), unit: "updates composed")) }
    return metrics
  }
}
