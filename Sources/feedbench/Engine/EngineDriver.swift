import FeedEngine
import FeedJSON
import FeedModel
import FeedSystem

/// Drives a turn with one pushing connection and watchers, in memory instead of over sockets.
final class EngineDriver {
  private var turn: Turn
  private var link = PushLink()
  private let frames: Texts
  /// The requests of the watchers.
  private let watches = Texts()
  private let window: Int
  private let hasWatchers: Bool
  private var watcher = ConnectionID(rawValue: 0)
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
    self.frames = frames
    self.window = window
    hasWatchers = !watched.isEmpty
    let now = Instant(nanoseconds: MonotonicClock.now)
    let engine = Engine(
      limits: limits,
      identity: ServerIdentity(version: "0", epoch: "bench", pid: 1, uid: 0, durability: "memory"), seed: 1, now: now)
    turn = Turn(engine, log: NoLog(), now: now)
    let pusher = connect()
    for index in 0..<preparation.count { deliver(pusher, preparation[index]) }
    for (index, feed) in watched.enumerated() {
      let what = watchesCounts ? "elements" : "initial"
      watches.append(frame: Texts.request("watch", #"{"feed":"\#(feed)","\#(what)":false}"#))
      deliver(connect(), watches[index])
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
  /// - Parameter reachesWatchers: whether at least one push changes what the watchers show. Few of many rows are in a
  ///   view of the first ones.
  func run(_ count: Int, reachesWatchers: Bool = true) throws {
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
    if hasWatchers && reachesWatchers && link.delivered == 0 { throw BenchmarkError("nothing reached a watcher") }
  }

  /// Measures the snapshot of the pushed feed for a new watcher, who then unwatches it. ``delivered`` then has its bytes.
  ///
  /// - Parameter spanning: whether the parts may span sections.
  func watch(spanning: Bool) throws -> UInt64 {
    if watches.count == 0 {
      watcher = connect()
      for isSpanning in [false, true] {
        watches.append(frame: Texts.request("watch", #"{"feed":"\#(PushJob.feed)","spanning":\#(isSpanning)}"#))
      }
      watches.append(frame: Texts.request("unwatch", #"{"feed":"\#(PushJob.feed)"}"#))
    }
    link.delivered = 0
    let start = ProcessorClock.now
    deliver(watcher, watches[spanning ? 1 : 0])
    // A snapshot takes several turns.
    var bytes = -1
    while link.delivered > bytes {
      bytes = link.delivered
      turn.run(&link, now: Instant(nanoseconds: MonotonicClock.now))
    }
    let time = ProcessorClock.now - start
    deliver(watcher, watches[2])
    link.delivered = bytes
    return time
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

  mutating func send(_ bytes: UnsafeRawBufferPointer, from id: ConnectionID) {
    (input, sender) = (bytes, id)
  }

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

  mutating func write(
    _ id: ConnectionID, _ slices: UnsafeBufferPointer<UnsafeRawBufferPointer>
  ) -> WriteOutcome {
    if id.rawValue >= firstStalled { return .wouldBlock }
    var count = 0
    for slice in slices { count &+= slice.count }
    if id.rawValue > 0 { delivered &+= count }
    return .bytes(count)
  }

  mutating func watch(_ id: ConnectionID, reading: Bool, writing: Bool) {}
  mutating func close(_ id: ConnectionID) {}
}
