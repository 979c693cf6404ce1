import FeedSystem
import Synchronization

/// Measures pings of one connection while another one receives a large snapshot.
struct SnapshotMeasure {
  let server: FeeddServer
  /// The content of the feed.
  let job: PushJob

  func run(_ report: Report) throws {
    try fill()
    let watcher = try server.connect()
    let reader = SnapshotReader(watcher)
    var ping = try Ping(server)
    var latencies = Latencies()
    let start = MonotonicClock.now
    try reader.start()
    while !reader.isDone { latencies.add(try ping.once()) }
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

  private func fill() throws {
    var dialogue = Dialogue(try server.connect())
    try dialogue.ask("define", PushJob.definition)
    let frames = Texts.filling(job)
    for index in 0..<frames.count { try dialogue.ask(frames[index], "update") }
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

  /// Sends `watch` and starts to read.
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
      var frames = FrameCounter(shortLength: Self.shortLength)
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
