import FeedJSON
import FeedSystem

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
    let servers = try StoringServers(durability, beside: sync)
    for watchers in [1, 8] {
      var job = PushJob(count: scaled(count))
      job.watchers = watchers
      try Comparison.run(job, servers.all, goals: watchers == 1 ? [servers.otherName: goal] : [:], report)
    }
  }

  /// Programs that wait for each answer, or for the answer before some others.
  private func waiting(_ report: inout Report) throws {
    let servers = try StoringServers("process", beside: "everysec")
    for (window, goal) in [(1, 1.1), (8, 1.3)] {
      try report.title("durability process: \(counted(window, "push", plural: "pushes")) unanswered")
      for watchers in [0, 1, 8] {
        var job = PushJob(count: scaled(window == 1 ? 20_000 : 80_000))
        (job.watchers, job.window) = (watchers, window)
        try Comparison.run(job, servers.all, goals: [servers.otherName: goal], report)
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
    let frames = Texts.filling(job)
    var dialogue = Dialogue(try FeeddServer(path: daemon.socketPath).connect())
    try dialogue.ask("define", PushJob.definition)
    for index in 0..<frames.count { try dialogue.ask(frames[index], "update") }
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

/// A feedd that stores what it answers, and a Redis with an append-only file if it is installed.
private final class StoringServers {
  private let daemon: DaemonUnderTest
  private let redis: ServerProcess?
  private let sync: String

  init(_ durability: String, beside sync: String) throws {
    self.sync = sync
    daemon = try DaemonUnderTest(durability: durability)
    redis = try ServersUnderTest.startRedis(["--appendonly", "yes", "--appendfsync", sync])
  }

  private var other: RedisServer? {
    redis.map { RedisServer(path: ServersUnderTest.redisSocket($0.folder), appendsEach: sync) }
  }

  var otherName: String { other?.name ?? "" }

  var all: [any Server] { [FeeddServer(path: daemon.socketPath)] + (other.map { [$0] } ?? []) }
}
