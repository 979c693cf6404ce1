import FeedJSON
import FeedSystem
import Synchronization

extension BenchmarkCommand {
  static let socket = BenchmarkCommand(
    name: "socket", summary: "measure pushes and watchers over a socket",
    about: """
      Measures the whole daemon over its socket: one connection pushes elements while others watch the feed; then one request \
      and one delta at a time; then pings of one connection while another one receives a large snapshot. Starts a feedd unless \
      --socket names one.
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
    ],
    notes: """
      A delivery is one update received by one watcher. "server" is the processor time of the daemon for one update.
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
      feedd: FeeddServer(path: options.text("socket") ?? daemon?.socketPath ?? ""))
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

  private func fanOut(_ job: PushJob, _ report: Report) throws {
    var measure = try FanOut(feedd, job)
    for run in 0...report.runs { try measure.run(counts: run > 0) }
    try report.add(
      "\(feedd.name), to \(counted(job.watchers, "watcher"))", measure.metrics, noise: measure.sample.noise)
  }

  private func roundTrips(_ report: Report) throws {
    let count = max(1, min(job.count, 20_000))
    let ping = try RoundTrips.pings(feedd, count: count)
    try report.add("\(feedd.name), a ping and its answer", ping.metrics)
    var job = job
    (job.watchers, job.count) = (1, count)
    let update = try RoundTrips.updates(feedd, job)
    try report.add("\(feedd.name), an update, its answer and delta", update.metrics)
  }
}

/// Runs the job on one server several times.
struct FanOut {
  private let server: any Server
  private let job: PushJob
  private var times: [Double] = []
  private var serverTimes: [Double] = []
  /// The part of its time for which the load was busy, in each run.
  private var loads: [Double] = []
  /// The number of updates that were composed with others, in the worst run.
  private var missing = 0

  init(_ server: any Server, _ job: PushJob) throws {
    (self.server, self.job) = (server, job)
    try server.prepare()
  }

  /// Runs the job once.
  /// - Parameter counts: whether the run is measured; the first one only warms up.
  mutating func run(counts: Bool) throws {
    let pusher = try server.connect()
    let watchers = try (0..<job.watchers).map { _ in try server.subscribe() }
    let clock = try ServerProcessClock(pusher)
    let loop = try LoadLoop(server, job, pusher: pusher, watchers: watchers)
    let before = clock?.now
    let (start, loadStart) = (MonotonicClock.now, ProcessorClock.now)
    let deliveries = try loop.run()
    let (end, loadEnd) = (MonotonicClock.now, ProcessorClock.now)
    guard counts else { return }
    times.append(Double(end - start))
    loads.append(Double(loadEnd - loadStart) / Double(end - start))
    if let before, let after = clock?.now { serverTimes.append(after - before) }
    missing = max(missing, job.count * job.watchers - deliveries)
  }

  var sample: Sample { Sample(times) }

  /// The processor time of the server for one update in its best run, in nanoseconds; nil if the kernel does not report it.
  var serverTime: Double? { serverTimes.min().map { $0 / Double(job.count) } }

  /// The figures of the best run.
  var metrics: [Metric] { metrics(of: sample.best) }

  /// The figures of the median run.
  var medians: [Metric] { metrics(of: sample.median) }

  private func metrics(of time: Double) -> [Metric] {
    let updates = Double(job.count) / time * 1e3
    var metrics = [
      Metric.millionsPerSecond("updates", updates),
      .millionsPerSecond("deliveries", updates * Double(job.watchers)),
    ]
    if serverTime != nil {
      metrics.append(Metric(name: "load", value: loads.min().map { $0 * 100 } ?? 0, unit: "% load"))
    }
    if let serverTime { metrics.append(Metric(name: "serverNanoseconds", value: serverTime, unit: "ns server")) }
    if missing > 0 { metrics.append(Metric(name: "composed", value: Double(missing), unit: "updates composed")) }
    return metrics
  }
}

/// Measures round trips, one message at a time.
enum RoundTrips {
  /// Sends pings, each after the answer to the previous one.
  static func pings(_ server: FeeddServer, count: Int) throws -> Latencies {
    var ping = try Ping(server)
    var latencies = Latencies()
    for _ in 0..<count { latencies.add(try ping.once()) }
    return latencies
  }

  /// Pushes updates, each after the previous one was answered and received by a watcher.
  static func updates(_ server: FeeddServer, _ job: PushJob) throws -> Latencies {
    try server.prepare()
    let pusher = try server.connect()
    let watcher = try server.subscribe()
    let pushes = server.pushes(job)
    var answers = server.answerCounter(job)
    var deliveries = server.deliveryCounter(job)
    var latencies = Latencies()
    for index in 0..<job.count {
      let start = MonotonicClock.now
      try pusher.writeAll(pushes[index % pushes.count])
      try receive(&deliveries, index + 1, watcher)
      try receive(&answers, index + 1, pusher)
      latencies.add(MonotonicClock.now - start)
    }
    return latencies
  }

  /// Reads until that many messages arrived in total.
  static func receive(_ counter: inout MessageCounter, _ count: Int, _ stream: UnixStream) throws {
    try withUnsafeTemporaryAllocation(byteCount: 16 << 10, alignment: 16) { space in
      while counter.count < count {
        let read = try stream.read(into: space) ?? 0
        guard read > 0 else { throw BenchmarkError("the server closed a connection") }
        counter.count(UnsafeRawBufferPointer(rebasing: space[..<read]))
      }
    }
  }
}

/// A connection that sends pings, or another request with a single answer.
struct Ping: ~Copyable {
  private let stream: UnixStream
  private let request: Texts
  private var counter = MessageCounter()
  private var sent = 0

  init(_ server: FeeddServer, _ request: String = Texts.request("ping")) throws {
    stream = try server.connect()
    self.request = Texts.frame(request)
  }

  /// Sends one ping and returns the time of the round trip in nanoseconds.
  mutating func once() throws -> UInt64 {
    let start = MonotonicClock.now
    try stream.writeAll(request[0])
    sent += 1
    try RoundTrips.receive(&counter, sent, stream)
    return MonotonicClock.now - start
  }
}

/// Collects latencies and computes percentiles.
struct Latencies {
  private var times: [UInt64] = []

  mutating func add(_ nanoseconds: UInt64) { times.append(nanoseconds) }

  /// The median, the 99th and 99.9th percentile, and the maximum, in microseconds.
  var metrics: [Metric] {
    let sorted = times.sorted()
    func percentile(_ part: Double) -> Double {
      guard let last = sorted.last else { return 0 }
      let index = Int(Double(sorted.count) * part)
      return Double(index < sorted.count ? sorted[index] : last) / 1000
    }
    return [
      .microseconds("p50", percentile(0.5)), .microseconds("p99", percentile(0.99)),
      .microseconds("p99.9", percentile(0.999)), .microseconds("max", percentile(1)),
    ]
  }
}

/// Measures pings of one connection while another one receives a large snapshot.
struct SnapshotMeasure {
  let server: FeeddServer
  /// The content of the feed.
  let job: PushJob

  func run(_ report: Report) throws {
    try server.fill(job)
    let watcher = try server.connect()
    let reader = SnapshotReader(watcher)
    var ping = try Ping(server)
    var latencies = Latencies()
    let start = MonotonicClock.now
    try reader.start()
    repeat { latencies.add(try ping.once()) } while !reader.isDone
    let time = Double(MonotonicClock.now - start)
    try report.add("a ping and its answer", latencies.metrics)
    try reader.join()
    try report.add(
      "the snapshot",
      [
        Metric(name: "seconds", value: time / 1e9, unit: "s"),
        .gigabytesPerSecond(Double(job.elements * job.payload) / time),
      ])
    var dialogue = Dialogue(try server.connect())
    try dialogue.ask("set", #"{"feed":"\#(PushJob.feed)","elements":[]}"#)
  }
}

/// Watches a feed on its own thread and reads until the snapshot is complete.
final class SnapshotReader: Sendable {
  private let stream: UnixStream
  private let done = Atomic<Bool>(false)
  private let failed = Atomic<Bool>(false)
  private let thread = Mutex<Thread?>(nil)

  /// The maximum size of the answers to `watch` and `sync`; parts of the snapshot are longer.
  private static let shortLength = 250

  init(_ stream: UnixStream) { self.stream = stream }

  var isDone: Bool { done.load(ordering: .acquiring) }

  func start() throws {
    let started = try Thread("snapshot") { self.read() }
    thread.withLock { $0 = started }
  }

  /// Waits for the end of the thread.
  func join() throws {
    thread.withLock { $0.take() }?.join()
    if failed.load(ordering: .relaxed) { throw BenchmarkError("cannot read the snapshot: the connection failed") }
  }

  private func read() {
    do {
      let requests = Texts()
      requests.append(frame: Texts.request("watch", #"{"feed":"\#(PushJob.feed)"}"#, id: 1))
      requests.append(frame: Texts.request("sync", id: 2))
      try stream.writeAll(requests.joined)
      var frames = MessageCounter(shortLength: Self.shortLength)
      let space = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)
      defer { space.deallocate() }
      while frames.shortCount < 2 {
        let count = try stream.read(into: space) ?? 0
        guard count > 0 else { throw BenchmarkError("the server closed the connection") }
        frames.count(UnsafeRawBufferPointer(rebasing: space[..<count]))
      }
    } catch {
      failed.store(true, ordering: .relaxed)
    }
    done.store(true, ordering: .releasing)
  }
}
