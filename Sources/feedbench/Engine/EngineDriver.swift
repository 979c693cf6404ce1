import FeedEngine
import FeedJSON
import FeedModel
import FeedSystem

/// An engine with a pusher and watchers, driven as the daemon's loop does, with memory in place of sockets.
final class EngineDriver {
  private let engine: Engine
  private let frames: Texts
  /// What the watchers ask.
  private let watches = Texts()
  private let window: Int
  private let pusher: ConnectionID
  private let hasWatchers: Bool
  /// The frame to push next.
  private var next = 0
  /// Bytes that watchers were sent.
  private var delivered = 0
  /// Connections that read nothing.
  private var stalled: Set<ConnectionID> = []
  private let slices = UnsafeMutableBufferPointer<UnsafeRawBufferPointer>.allocate(capacity: 1024)

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
    engine = Engine(
      limits: limits,
      identity: ServerIdentity(version: "0", epoch: "bench", pid: 1, uid: 0, durability: "memory"), seed: 1, now: now)
    let peer = Peer(uid: 0, gid: 0, pid: 1)
    pusher = engine.connect(peer, now: now)
    for index in 0..<preparation.count { deliver(pusher, preparation[index]) }
    for (index, feed) in watched.enumerated() {
      watches.append(frame: Texts.request("watch", #"{"feed":"\#(feed)","initial":false}"#))
      deliver(engine.connect(peer, now: now), watches[index])
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
    deliver(pusher, texts[0])
    for _ in 0..<stalled {
      let id = engine.connect(Peer(uid: 0, gid: 0, pid: 1), now: Instant(nanoseconds: MonotonicClock.now))
      deliver(id, texts[1])
      self.stalled.insert(id)
    }
    deliver(pusher, texts[2])
    deliver(pusher, texts[3])
  }

  deinit { slices.deallocate() }

  /// Pushes so many frames, from where the last run ended: the same ones again might change nothing.
  func run(_ count: Int) throws {
    delivered = 0
    var pushed = 0
    while pushed < count {
      let window = min(window, count - pushed, frames.count - next)
      guard deliver(pusher, frames[next..<(next + window)]) else {
        throw BenchError("the engine left a frame unread")
      }
      pushed += window
      next = (next + window) % frames.count
    }
    if hasWatchers && delivered == 0 { throw BenchError("nothing reached a watcher") }
  }

  /// One turn: hands the bytes in and takes out all that is queued. Returns whether all bytes were consumed.
  @discardableResult
  private func deliver(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer) -> Bool {
    let now = Instant(nanoseconds: MonotonicClock.now)
    let consumed = engine.receive(id, bytes, now: now)
    engine.endTurn(now: now)
    engine.takePendingOutput { id in
      if stalled.contains(id) { return }
      while case let count = engine.output(of: id, into: slices), count > 0 {
        var bytes = 0
        for index in 0..<count { bytes &+= slices[index].count }
        engine.didWrite(id, bytes)
        if id != pusher { delivered &+= bytes }
      }
    }
    engine.finishWrites()
    return consumed == bytes.count
  }
}
