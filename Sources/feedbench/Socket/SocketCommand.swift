import FeedJSON
import FeedSystem

extension BenchmarkCommand {
  static let socket = BenchmarkCommand(
    name: "socket", summary: "measure pushes and watchers over a socket, also of Redis",
    about: """
      Measures the whole daemon over its socket: one connection pushes elements while others watch the feed; then one request \
      and one delta at a time; then pings of one connection while another one receives a large snapshot. Starts a feedd unless \
      --socket names one. With --redis, runs the same job (HSET and PUBLISH of the same bytes) on a Redis in alternation and \
      prints ratios.
      """,
    options: [
      count("number of updates per run", default: defaultSocketCount),
      OptionDescription(
        "watchers", value: .integer(0...1000), help: "number of watching connections",
        defaultText: watchers.map { "\($0)" }.joined(separator: ", "), repeats: true),
      window("maximum number of unanswered pushes"), payload,
      OptionDescription(
        "snapshot", value: .integer(0...100_000_000), help: "number of elements of the large snapshot; 0 to skip it",
        defaultText: "\(snapshot)"),
      OptionDescription(
        "durability", value: .choice(["memory", "process", "disk"]),
        help: "durability of the started feedd", defaultText: "memory"),
      OptionDescription("socket", value: .text("PATH"), help: "socket of a running feedd"),
      OptionDescription("redis", value: .text("PATH"), help: "socket of a Redis to compare with"),
    ],
    notes: """
      A delivery is one update received by one watcher. "server" is the processor time of the daemon for one update.
      To start a Redis for comparison: redis-server --port 0 --unixsocket /tmp/redis.sock --save '' --appendonly no
      To compare with --durability process, add --appendonly yes --appendfsync everysec; with disk, always.
      """
  ) { options, report in
    var job = PushJob(count: options.integer("count") ?? defaultSocketCount)
    job.window = options.integer("window") ?? job.window
    job.payload = options.integer("payload") ?? job.payload
    let given = options.texts("watchers").compactMap(Count.parse)
    let durability = options.text("durability") ?? "memory"
    let daemon = try options.text("socket") == nil ? DaemonUnderTest(durability: durability) : nil
    let measures = SocketMeasures(
      job: job, watchers: given.isEmpty ? watchers : given, snapshot: options.integer("snapshot") ?? snapshot,
      feedd: options.text("socket") ?? daemon?.socketPath ?? "",
      redis: options.text("redis"))
    try withExtendedLifetime(daemon) { try measures.run(&report) }
  }

  private static let defaultSocketCount = 400_000
  private static let watchers = [1, 8, 32]
  private static let snapshot = 1_000_000
}

/// The cases of `feedbench socket`.
struct SocketMeasures {
  let job: PushJob
  /// The numbers of watchers to measure with.
  let watchers: [Int]
  /// The number of elements of the large snapshot; 0 for none.
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
    try report.title("fan-out: elements of \(counted(job.payload, "byte")), \(grouped(job.window)) pushes unanswered")
    for number in watchers {
      var job = job
      job.watchers = number
      try fanOut(job, report)
    }
    try report.title("one at a time")
    try roundTrips(report)
    if snapshot > 0 {
      try report.title("pings of one connection while another is sent \(counted(snapshot, "element"))")
      var job = job
      job.elements = snapshot
      try SnapshotMeasure(server: feedd, job: job).run(report)
    }
  }

  /// Runs the job on the servers in turn, so that other load on the machine affects both.
  private func fanOut(_ job: PushJob, _ report: Report) throws {
    var ours = try FanOut(feedd, job)
    var others = try redis.map { try FanOut($0, job) }
    for run in 0...report.runs {
      try ours.run(counts: run > 0)
      try others?.run(counts: run > 0)
    }
    let what = "to \(counted(job.watchers, "watcher"))"
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
