import FeedEngine
import FeedJSON
import FeedModel
import FeedSystem

extension BenchmarkCommand {
  static let engine = BenchmarkCommand(
    name: "engine", summary: "drive the engine without sockets: requests in, frames out",
    about: """
      Measures the engine without sockets. One connection pushes elements, a window of requests per turn, and the output for \
      it and for the watchers is discarded. The time that the daemon takes in addition is spent in the kernel.
      """,
    options: [
      count("number of updates per run", default: defaultEngineCount),
      OptionDescription(
        "watchers", value: .integer(0...10_000), help: "number of watching connections",
        defaultText: defaultWatchers.map { "\($0)" }.joined(separator: ", "), repeats: true),
      OptionDescription(
        "elements", value: .integer(1...100_000_000),
        help: "number of elements of the feed, updated in random order",
        defaultText: defaultSizes.map { grouped($0) }.joined(separator: ", "), repeats: true),
      window(), payload,
    ]
  ) { options, report in
    var job = PushJob(count: options.integer("count") ?? defaultEngineCount)
    job.window = options.integer("window") ?? job.window
    job.payload = options.integer("payload") ?? job.payload
    let watchers = options.texts("watchers").compactMap(Count.parse)
    let sizes = options.texts("elements").compactMap(Count.parse)
    try EngineMeasures(
      job: job, watchers: watchers.isEmpty ? defaultWatchers : watchers, sizes: sizes.isEmpty ? defaultSizes : sizes
    ).run(&report)
  }

  private static let defaultEngineCount = 400_000
  private static let defaultWatchers = [0, 1, 8, 32]
  private static let defaultSizes = [1000, 1_000_000]
}

/// The cases of `feedbench engine`.
struct EngineMeasures {
  let job: PushJob
  /// The numbers of watchers to measure with.
  let watchers: [Int]
  /// The numbers of elements to measure with. Only the first one is measured with all numbers of watchers.
  let sizes: [Int]

  func run(_ report: inout Report) throws {
    try report.title("pushes of \(counted(job.payload, "byte")), \(grouped(job.window)) in a turn")
    var first: Double?
    for size in sizes {
      for number in size == sizes.first ? watchers : Array(watchers.prefix(1)) {
        var job = job
        (job.elements, job.watchers) = (size, number)
        let driver = try EngineDriver(job)
        let sample = try Sample.measure(runs: report.runs) { try driver.run(job.count) }
        let each = sample.best / Double(job.count)
        var metrics = [Metric.nanoseconds(each), .millionsPerSecond("updates", 1e3 / each)]
        if let first, size != sizes.first { metrics.append(.ratio(each / first, to: grouped(sizes[0]))) }
        first = first ?? each
        try report.add("an update of \(grouped(size)), \(counted(number, "watcher"))", metrics, noise: sample.noise)
      }
    }
    try measureCounts(&report)
    try measureStalled(&report)
  }

  /// Watchers of counts beside as many watchers of rows: what an update costs, and what each of them receives.
  private func measureCounts(_ report: inout Report) throws {
    guard let number = watchers.max(), number > 0 else { return }
    var job = job
    (job.elements, job.watchers, job.watchesCounts) = (sizes[0], number, true)
    let driver = try EngineDriver(job)
    let sample = try Sample.measure(runs: report.runs) { try driver.run(job.count) }
    let bytes = Double(driver.delivered) / Double(job.count * number)
    try report.add(
      "an update of \(grouped(sizes[0])), \(counted(number, "watcher")) of counts",
      [.nanoseconds(sample.best / Double(job.count)), .bytes(bytes, each: "change")], noise: sample.noise)
  }

  /// Pushes one element at a time while watchers of another feed read nothing. They should not slow down the pushes.
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
      try report.add(
        "stalled watchers, \(grouped(number)), and an update of another feed", metrics, noise: sample.noise)
    }
  }
}

/// Drives a turn with one pushing connection and watchers, in memory instead of over sockets.
final class EngineDriver {
  private var turn: Turn
  private var link = PushLink()
  private let frames: Texts
  private let window: Int
  private let hasWatchers: Bool
  /// The frame to push next.
  private var next = 0

  /// Creates the feeds and the watchers.
  /// - Parameters:
  ///   - preparation: the frames that define and fill the feeds.
  ///   - watched: the watched feeds, each by its own connection. A feed can occur several times.
  ///   - frames: the frames to push repeatedly.
  ///   - window: the number of frames per turn.
  init(
    preparation: Texts, watched: [String], frames: Texts, window: Int, limits: Limits = Limits(),
    watchesCounts: Bool = false
  ) throws {
    (self.frames, self.window) = (frames, window)
    hasWatchers = !watched.isEmpty
    let now = Instant(nanoseconds: MonotonicClock.now)
    let engine = Engine(
      limits: limits,
      identity: ServerIdentity(version: "0", epoch: "bench", pid: 1, uid: 0, durability: "memory"), seed: 1, now: now)
    turn = Turn(engine, log: NoLog(), now: now)
    let pusher = connect()
    for index in 0..<preparation.count { deliver(pusher, preparation[index]) }
    let what = watchesCounts ? "elements" : "initial"
    for feed in watched {
      let request = Texts.frame(Texts.request("watch", #"{"feed":"\#(feed)","\#(what)":false}"#))
      withExtendedLifetime(request) { _ = deliver(connect(), request[0]) }
    }
  }

  convenience init(_ job: PushJob) throws {
    try self.init(
      preparation: .preparation(of: job), watched: Array(repeating: PushJob.feed, count: job.watchers),
      frames: .pushes(job), window: job.window, watchesCounts: job.watchesCounts)
  }

  /// Bytes that the last run wrote to watchers.
  var delivered: Int { link.delivered }

  /// Creates an engine that also has watchers of another feed, which read nothing and have fallen behind.
  convenience init(_ job: PushJob, stalled: Int) throws {
    var limits = Limits()
    (limits.maxConnections, limits.maxConnectionsPerUser, limits.maxQueue) = (stalled + 100, stalled + 100, 4096)
    try self.init(
      preparation: .preparation(of: job), watched: [], frames: .pushes(job), window: job.window, limits: limits)
    let texts = Texts()
    texts.append(frame: Texts.request("define", #"{"feed":"stalled","kind":"single"}"#))
    texts.append(frame: Texts.request("watch", #"{"feed":"stalled","initial":false}"#))
    // The first change fills the queues of the connections, so that the second one cannot be sent.
    for letter in ["a", "b"] {
      let text = String(repeating: letter, count: 5000)
      texts.append(frame: Texts.request("put", #"{"feed":"stalled","element":"\#(text)"}"#))
    }
    deliver(ConnectionID(rawValue: 0), texts[0])
    for _ in 0..<stalled {
      let id = connect()
      link.firstStalled = min(link.firstStalled, id.rawValue)
      deliver(id, texts[1])
    }
    deliver(ConnectionID(rawValue: 0), texts[2])
    deliver(ConnectionID(rawValue: 0), texts[3])
  }

  /// Pushes `count` frames, beginning after those of the last run: pushing the same frames again could change nothing.
  func run(_ count: Int) throws {
    link.delivered = 0
    var pushed = 0
    while pushed < count {
      let window = min(window, count - pushed, frames.count - next)
      guard deliver(ConnectionID(rawValue: 0), frames[next..<(next + window)]) else {
        throw BenchmarkError("the engine left a frame unread")
      }
      pushed += window
      next = (next + window) % frames.count
    }
    if hasWatchers && link.delivered == 0 { throw BenchmarkError("nothing reached a watcher") }
  }

  private func connect() -> ConnectionID {
    link.accepts = true
    turn.run(&link, now: Instant(nanoseconds: MonotonicClock.now))
    return ConnectionID(rawValue: link.connections - 1)
  }

  /// Runs turns until the bytes are consumed and the output is written. Returns whether all bytes were consumed.
  @discardableResult
  private func deliver(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer) -> Bool {
    link.send(bytes, from: id)
    var turns = 0
    repeat {
      turn.run(&link, now: Instant(nanoseconds: MonotonicClock.now))
      turns += 1
    } while link.hasInput && turns < bytes.count
    return !link.hasInput
  }
}

/// A link that reads from memory and counts the written bytes.
private struct PushLink: Link, ~Copyable {
  private(set) var connections = 0
  /// The number of bytes written to all connections but the first one.
  var delivered = 0
  /// The first connection that reads nothing, as do all later ones.
  var firstStalled = Int.max
  /// Whether a connection waits to be accepted.
  var accepts = false
  private var sender = ConnectionID(rawValue: 0)
  private var input = UnsafeRawBufferPointer(start: nil, count: 0)
  private var isReported = false

  var hasInput: Bool { input.count > 0 }

  mutating func send(_ bytes: UnsafeRawBufferPointer, from id: ConnectionID) { (input, sender) = (bytes, id) }

  mutating func nextEvent() -> LinkEvent? {
    if accepts { return .accepted(Peer(uid: 0, gid: 0, pid: 1)) }
    isReported = hasInput && !isReported
    return isReported ? .readable(sender, hungUp: false) : nil
  }

  mutating func assign(_ id: ConnectionID) {
    connections += 1
    accepts = false
  }

  mutating func read(_ id: ConnectionID, into space: UnsafeMutableRawBufferPointer) -> ReadOutcome {
    let count = min(space.count, input.count)
    if count == 0 { return .wouldBlock }
    space.copyMemory(from: UnsafeRawBufferPointer(rebasing: input[..<count]))
    input = UnsafeRawBufferPointer(rebasing: input[count...])
    return .bytes(count)
  }

  mutating func write(_ id: ConnectionID, _ slices: UnsafeBufferPointer<UnsafeRawBufferPointer>) -> WriteOutcome {
    if id.rawValue >= firstStalled { return .wouldBlock }
    var count = 0
    for slice in slices { count &+= slice.count }
    if id.rawValue > 0 { delivered &+= count }
    return .bytes(count)
  }

  mutating func watch(_ id: ConnectionID, reading: Bool, writing: Bool) {}
  mutating func close(_ id: ConnectionID) {}
}
