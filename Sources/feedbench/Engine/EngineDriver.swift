import FeedEngine
import FeedJSON
import FeedModel
import FeedSystem

/// A turn with a pusher and watchers, with memory in place of sockets.
final class EngineDriver {
  private var turn: Turn
  private var link = PushLink()
  private let frames: Texts
  /// What the watchers ask.
  private let watches = Texts()
  private let window: Int
  private let hasWatchers: Bool
  /// The frame to push next.
  private var next = 0

  /// - Parameters:
  ///   - preparation: the frames that make the feeds.
  ///   - watched: the feeds that are watched then, each by a connection of its own; one may stand there several times.
  ///   - frames: what is pushed, again and again.
  ///   - window: frames in a turn.
  init(
    preparation: Texts, watched: [String], frames: Texts, window: Int, limits: Limits = Limits()
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
      watches.append(frame: Texts.request("watch", #"{"feed":"\#(feed)","initial":false}"#))
      deliver(connect(), watches[index])
    }
  }

  convenience init(_ job: PushJob) throws {
    try self.init(
      preparation: .preparation(of: job), watched: Array(repeating: PushJob.feed, count: job.watchers),
      frames: .pushes(job), window: job.window)
  }

  /// An engine that also has watchers of another feed, which read nothing and have fallen behind.
  convenience init(_ job: PushJob, stalled: Int) throws {
    var limits = Limits()
    (limits.maxConnections, limits.maxConnectionsPerUser, limits.maxQueue) = (stalled + 100, stalled + 100, 4096)
    try self.init(
      preparation: .preparation(of: job), watched: [], frames: .pushes(job), window: job.window, limits: limits)
    let texts = Texts()
    texts.append(frame: Texts.request("define", #"{"feed":"stalled","kind":"single"}"#))
    texts.append(frame: Texts.request("watch", #"{"feed":"stalled","initial":false}"#))
    // The first fills the connections' queues, so the second is missed.
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

  /// Pushes so many frames, from where the last run ended: the same ones again might change nothing.
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

  /// Turns until the bytes are read and all that was made of them is written. Returns whether they were consumed.
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

/// Hands in bytes where they lie, and counts what is written.
private struct PushLink: Link, ~Copyable {
  private(set) var connections = 0
  /// Bytes written to others than the first connection.
  var delivered = 0
  /// Connections from this number on read nothing.
  var firstStalled = Int.max
  /// Whether a further connection waits.
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
