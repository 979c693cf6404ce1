import FeedJSON
import FeedSystem
import Glibc

extension BenchmarkCommand {
  static let core = parts(
    of: CoreMeasures.self, name: "core", summary: "measure what the core is judged by, beside Redis and NATS",
    about: """
      Measures the figures by which the core of feedd is judged, each with its goal: fan-out to several watchers, large elements, \
      watchers that do not read, the engine alone, memory, and nested feeds. Starts a feedd, and a redis-server and a nats-server \
      if they are installed. Servers are measured in alternation; each figure is the median of the runs.
      """)
}

/// The cases of `feedbench core`.
struct CoreMeasures: PartedMeasures {
  enum Part: String, CaseIterable {
    case fanout, large, slow, engine, memory, nesting
  }

  let scale: Int

  func run(_ part: Part, _ report: inout Report) throws {
    switch part {
    case .fanout: try fanOut(&report)
    case .large: try large(&report)
    case .slow: try SlowMeasures().run(&report)
    case .engine:
      var job = PushJob(count: scaled(400_000))
      job.watchers = 0
      try EngineMeasures(job: job, watchers: [0], sizes: [1000, 1_000_000]).run(&report)
    case .memory: try MemoryMeasures(count: scaled(1_000_000)).run(&report)
    case .nesting:
      try NestingMeasures(job: PushJob(count: scaled(100_000))).run(&report)
    }
  }

  private func fanOut(_ report: inout Report) throws {
    try report.title("fan-out: elements of 200 bytes, 256 pushes unanswered")
    let servers = try ServersUnderTest()
    for (watchers, stored, published, copied) in [(1, 1.6, 0.9, 4.0), (8, 2.2, 1.5, 1.7), (32, 2, 1.6, 1.4)] {
      var job = PushJob(count: scaled(watchers > 8 ? 100_000 : 200_000))
      job.watchers = watchers
      try Comparison.run(
        job, servers.all(job),
        goals: ["Redis HSET+PUBLISH": stored, "Redis PUBLISH": published, "a loop that copies": copied],
        report)
    }
  }

  private func large(_ report: inout Report) throws {
    for payload in [5000, 20_000, 60_000] {
      try report.title("elements of \(grouped(payload)) bytes, 16 pushes unanswered")
      let servers = try ServersUnderTest()
      for watchers in [1, 8] {
        var job = PushJob(count: scaled(200_000_000 / payload / watchers))
        (job.watchers, job.window, job.payload, job.elements) = (watchers, 16, payload, 100)
        try Comparison.run(job, servers.storing, goals: ["Redis HSET+PUBLISH": 1.5], report)
      }
    }
  }
}

/// Measures servers beside each other.
enum Comparison {
  /// Runs the job on the servers in turn, so that other load on the machine affects all. The first one is feedd.
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

/// The memory of many elements above their text.
struct MemoryMeasures {
  let count: Int

  private static let payload = 218
  private static let definition =
    ##"{"feed":"bench","kind":"collection","bins":[{"name":"a","filter":"@.id < 1000500000"},{"name":"b","filter":"@.id >= 1000500000"}],"replace":true}"##

  func run(_ report: inout Report) throws {
    try report.title("memory above the text of \(grouped(count)) elements of \(Self.payload) bytes")
    var job = PushJob(count: count)
    (job.elements, job.payload) = (count, Self.payload)
    let bytes = Double(count * Self.payload)
    let frames = Texts.filling(job)
    let daemon = try DaemonUnderTest(durability: "process")
    var dialogue = Dialogue(try FeeddServer(path: daemon.socketPath).connect())
    try dialogue.ask("define", Self.definition)
    let before = daemon.process.residentBytes
    for index in 0..<frames.count { try dialogue.ask(frames[index], "update") }
    let more = Double(daemon.process.residentBytes - before)
    try report.add(
      "feedd, two bins, integer ids, durability process",
      [.bytes((more - bytes) / Double(count), each: "element"), Metric(name: "goal", value: 80, unit: "goal")])
    if let redis = try RedisUnderTest.start() {
      let before = redis.process.residentBytes
      try redis.server().fill(job)
      let more = Double(redis.process.residentBytes - before)
      try report.add("a hash of Redis", [.bytes((more - bytes) / Double(count), each: "element")])
    }
  }
}

/// Watchers that do not read while elements are pushed: what they cost in memory, and how many of them are closed.
struct SlowMeasures {
  private static let watchers = 1000
  private static let feeds = 10_000
  private static let pushes = 300
  private static let payload = 5000

  func run(_ report: inout Report) throws {
    _ = OpenFileLimit.raise(to: 4096)
    try report.title("watchers that do not read")
    let options = [
      "--max-connections", "4096", "--max-connections-per-user", "4096", "--max-watches", "\(Self.feeds)",
      "--max-feeds-per-user", "\(Self.feeds)",
    ]
    var job = PushJob(count: Self.pushes)
    (job.payload, job.elements, job.watchers) = (Self.payload, 100, Self.watchers)
    let what = "\(grouped(Self.watchers)) watchers, \(Self.pushes) pushes of \(grouped(Self.payload)) bytes"
    let daemon = try DaemonUnderTest(durability: "memory", options: options)
    try measure(FeeddServer(path: daemon.socketPath), daemon.process, job, "feedd, \(what)", goal: 20, report)
    if let redis = try RedisUnderTest.start() {
      try measure(redis.server(), redis.process, job, "Redis, \(what)", goal: nil, report)
    }
    try measureOneConnection(try DaemonUnderTest(durability: "memory", options: options), report)
  }

  private func measure(
    _ server: some Server, _ process: ServerProcess, _ job: PushJob, _ name: String, goal: Double?, _ report: Report
  ) throws {
    try server.prepare()
    let pusher = try server.connect()
    let watchers = try (0..<job.watchers).map { _ in try server.subscribe() }
    let pushes = server.pushes(job)
    var answers = server.answerCounter(job)
    // What the first pushes allocate once is not due to the watchers.
    let before = process.residentBytes
    for index in 0..<job.count {
      try pusher.writeAll(pushes[index % pushes.count])
      try RoundTrips.receive(&answers, index + 1, pusher)
    }
    let more = process.residentBytes - before
    try report.add(name, Self.metrics(more, closed: watchers.count { Self.isClosed($0) }, goal: goal))
  }

  /// One connection that watches many feeds, each of which is updated three times.
  private func measureOneConnection(_ daemon: DaemonUnderTest, _ report: Report) throws {
    let server = FeeddServer(path: daemon.socketPath)
    var dialogue = Dialogue(try server.connect())
    var watcher = Dialogue(try server.connect())
    for feed in 0..<Self.feeds {
      try dialogue.ask("define", #"{"feed":"f\#(feed)","kind":"collection"}"#)
      try watcher.ask("watch", #"{"feed":"f\#(feed)","initial":false}"#)
    }
    let before = daemon.process.residentBytes
    let text = String(repeating: "x", count: 200)
    for round in 0..<3 {
      for feed in 0..<Self.feeds {
        try dialogue.ask("update", #"{"feed":"f\#(feed)","element":{"id":\#(round),"text":"\#(text)"}}"#)
      }
    }
    let more = daemon.process.residentBytes - before
    let name = "feedd, 1 connection with \(grouped(Self.feeds)) watches"
    try report.add(name, Self.metrics(more, closed: Self.isClosed(watcher.stream) ? 1 : 0, goal: nil))
  }

  private static func metrics(_ more: Int, closed: Int, goal: Double?) -> [Metric] {
    var metrics = [
      Metric(name: "mebibytes", value: Double(more) / Double(1 << 20), unit: "MiB"),
      Metric(name: "closed", value: Double(closed), unit: "closed"),
    ]
    if let goal { metrics.append(Metric(name: "goal", value: goal, unit: "MiB goal")) }
    return metrics
  }

  /// Whether the server closed a connection, whose output may be unread.
  private static func isClosed(_ stream: UnixStream) -> Bool {
    // Only a hang-up counts as ready: nothing is waited for otherwise.
    var request = pollfd(fd: stream.descriptor, events: 0, revents: 0)
    return poll(&request, 1, 0) > 0
  }
}

extension BenchmarkCommand {
  static let log = parts(
    of: LogMeasures.self, name: "log",
    summary: "measure what the log is judged by, beside Redis with an append-only file",
    about: """
      Measures the figures by which the log of feedd is judged, each with its goal: fan-out with each durability, programs that wait \
      for each answer, and a start after a kill. Starts a feedd, and a redis-server if it is installed. Servers are measured in \
      alternation; each figure is the median of the runs.
      """)
}

/// The cases of `feedbench log`.
struct LogMeasures: PartedMeasures {
  enum Part: String, CaseIterable {
    case process, disk, waiting, start
  }

  let scale: Int

  func run(_ part: Part, _ report: inout Report) throws {
    switch part {
    case .process: try fanOut("process", beside: "everysec", count: 200_000, goal: 2, &report)
    case .disk: try fanOut("disk", beside: "always", count: 50_000, goal: 2.5, &report)
    case .waiting: try waiting(&report)
    case .start: try start(&report)
    }
  }

  private func fanOut(
    _ durability: String, beside sync: String, count: Int, goal: Double, _ report: inout Report
  ) throws {
    try report.title("durability \(durability): elements of 200 bytes, 256 pushes unanswered")
    let servers = try ServersUnderTest(durability, beside: sync)
    for watchers in [1, 8] {
      var job = PushJob(count: scaled(count))
      job.watchers = watchers
      try Comparison.run(job, servers.storing, goals: watchers == 1 ? [servers.otherName: goal] : [:], report)
    }
  }

  /// Programs that wait for each answer, or for the answer before some others.
  private func waiting(_ report: inout Report) throws {
    let servers = try ServersUnderTest("process", beside: "everysec")
    for (window, goal) in [(1, 1.1), (8, 1.3)] {
      try report.title("durability process: \(counted(window, "push", plural: "pushes")) unanswered")
      for watchers in [0, 1, 8] {
        var job = PushJob(count: scaled(window == 1 ? 20_000 : 80_000))
        (job.watchers, job.window) = (watchers, window)
        try Comparison.run(job, servers.storing, goals: [servers.otherName: goal], report)
      }
    }
  }

  private static let payload = 218

  /// The time from the start of a process to its first answer, after it was killed.
  private func start(_ report: inout Report) throws {
    var job = PushJob(count: scaled(1_000_000))
    (job.elements, job.payload) = (job.count, Self.payload)
    try report.title("start after a kill with \(grouped(job.count)) elements of \(Self.payload) bytes")
    let daemon = try DaemonUnderTest(durability: "process")
    try FeeddServer(path: daemon.socketPath).fill(job)
    var times: [Double] = []
    for _ in 0..<report.runs {
      let start = MonotonicClock.now
      try daemon.process.killAndRestart { _ in Self.answers(daemon.socketPath) }
      times.append(Double(MonotonicClock.now - start))
    }
    try report.add(
      "feedd",
      [
        Metric(name: "seconds", value: Sample(times).median / 1e9, unit: "s"),
        Metric(name: "goal", value: 0.7, unit: "goal"),
      ])
  }

  private static func answers(_ path: String) -> Bool {
    guard let stream = try? UnixStream.connect(path: path, timeout: .seconds(10)) else { return false }
    var dialogue = Dialogue(stream)
    return (try? dialogue.ask("ping")) != nil
  }
}
