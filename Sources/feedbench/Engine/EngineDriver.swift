import FeedEngine
import FeedJSON
import FeedModel
import FeedSystem

/// An engine with a pusher and watchers, driven as the daemon's loop does, with memory in place of sockets.
final class EngineDriver {
  private let engine: Engine
  private let job: PushJob
  private let frames: Texts
  private let pusher: ConnectionID
  private let slices = UnsafeMutableBufferPointer<UnsafeRawBufferPointer>.allocate(capacity: 1024)

  init(_ job: PushJob) throws {
    self.job = job
    frames = .pushes(job)
    let now = Instant(nanoseconds: MonotonicClock.now)
    engine = Engine(
      limits: Limits(),
      identity: ServerIdentity(version: "0", epoch: "bench", pid: 1, uid: 0, durability: "memory"), seed: 1, now: now)
    let peer = Peer(uid: 0, gid: 0, pid: 1)
    pusher = engine.connect(peer, now: now)
    ask(pusher, Texts.request("define", PushJob.definition))
    let filling = Texts.filling(job)
    for index in 0..<filling.count { deliver(pusher, filling[index]) }
    for _ in 0..<job.watchers {
      let watcher = engine.connect(peer, now: now)
      ask(watcher, Texts.request("watch", #"{"feed":"bench","initial":false}"#))
    }
  }

  deinit { slices.deallocate() }

  /// Pushes the whole job once.
  func run() throws {
    var pushed = 0
    while pushed < job.count {
      let first = pushed % frames.count
      let window = min(job.window, job.count - pushed, frames.count - first)
      guard deliver(pusher, frames[first..<(first + window)]) else {
        throw BenchError("the engine left a frame unread")
      }
      pushed += window
    }
  }

  private func ask(_ id: ConnectionID, _ request: String) {
    let frame = Texts.frame(request)
    deliver(id, frame[0])
  }

  /// One turn: hands the bytes in and takes out all that is queued. Returns whether all bytes were consumed.
  @discardableResult
  private func deliver(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer) -> Bool {
    let now = Instant(nanoseconds: MonotonicClock.now)
    let consumed = engine.receive(id, bytes, now: now)
    engine.endTurn(now: now)
    engine.takePendingOutput { id in
      while case let count = engine.output(of: id, into: slices), count > 0 {
        var bytes = 0
        for index in 0..<count { bytes &+= slices[index].count }
        engine.didWrite(id, bytes)
      }
    }
    engine.finishWrites()
    return consumed == bytes.count
  }
}
