import FeedJSON
import FeedSystem

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
      try NestingMeasures(
        job: PushJob(count: scaled(100_000)), levels: 10, rows: 100_000, towers: [.composed, .segmented, .slots]
      ).run(&report)
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

/// A feedd, and the other servers that are installed.
final class ServersUnderTest {
  private let daemon: DaemonUnderTest
  private let redis: ServerProcess?
  private let nats: ServerProcess?
  private var port: UInt16 = 0

  init() throws {
    daemon = try DaemonUnderTest(durability: "memory")
    redis = try Self.startRedis()
    let port = try LocalPort.free()
    self.port = port
    nats = try ServerProcess.path(of: "nats-server").map { path in
      try ServerProcess(path) { _ in
        ["-a", "127.0.0.1", "-p", "\(port)", "-l", "/dev/null"]
      } answers: { _ in
        (try? LocalPort.connect(port)) != nil
      }
    }
  }

  /// Starts a Redis that stores nothing on disk; nil if it is not installed.
  static func startRedis() throws -> ServerProcess? { try startRedis(["--appendonly", "no"]) }

  /// Starts a Redis with options; nil if it is not installed.
  static func startRedis(_ options: [String]) throws -> ServerProcess? {
    try ServerProcess.path(of: "redis-server").map { path in
      try ServerProcess(path) { folder in
        ["--port", "0", "--unixsocket", redisSocket(folder), "--dir", folder, "--save", "", "--maxclients", "4000"]
          + options
      } answers: {
        (try? UnixStream.connect(path: redisSocket($0))) != nil
      }
    }
  }

  static func redisSocket(_ folder: String) -> String { "\(folder)/redis.sock" }

  /// feedd, and Redis that stores each element.
  var storing: [any Server] {
    [FeeddServer(path: daemon.socketPath)] + (redis.map { [RedisServer(path: Self.redisSocket($0.folder))] } ?? [])
  }

  /// All servers. Those that store nothing come last.
  func all(_ job: PushJob) -> [any Server] {
    var servers = storing
    if let redis { servers.append(RedisServer(path: Self.redisSocket(redis.folder), stores: false)) }
    if nats != nil { servers.append(NATSServer(port: port)) }
    return servers + [CopyServer(job)]
  }
}
