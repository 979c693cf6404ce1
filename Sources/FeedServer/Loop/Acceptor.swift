import FeedEngine
import FeedJSON
import FeedModel
import FeedSystem
import FeedWire

/// The listening socket: accepts connections, and handles running out of descriptors.
///
/// If the process has no descriptor left, the acceptor closes a descriptor held in reserve, accepts one connection with
/// it, sends the reason for the refusal, and closes the connection. If the connection stayed in the queue, it would
/// wake the loop repeatedly. If even this fails, accepting pauses for a moment.
///
/// Invariant: ``isPaused`` exactly if there is a time to resume, and only while listening.
struct Acceptor: ~Copyable {
  /// An accepted connection. The descriptor is nonblocking, close-on-exec, and owned by the caller.
  struct Connection {
    let descriptor: Int32
    let peer: Peer
  }

  static let perTurn = 64
  /// The maximum length of the socket's queue.
  static let longestQueue = 4096
  /// Nanoseconds without accepting after a failure.
  private static let pause: UInt64 = 200_000_000

  private let log: Log
  private let accept: (UnixListener) -> UnixListener.Accepted
  private var listener: UnixListener?
  /// Closed when no other descriptor is available.
  private var reserve: Descriptor?
  /// The time to call ``resume()`` if no connection is closed before; nil while accepting.
  private(set) var deadline: Instant?
  /// The number of connections that may still be accepted in this turn.
  private var budget = 0
  /// Whether listening ends when the queue is empty or the budget is used up.
  private var isEnding = false
  /// The number of clients refused since the last log line, and the earliest time of the next line.
  private var turnedAway = 0
  private var nextLine = Instant(nanoseconds: 0)
  /// The number of connections accepted so far.
  private(set) var accepted = 0

  /// - Parameter accept: the system call; tests pass one that fails.
  init(
    _ listener: UnixListener, _ log: Log,
    accept: @escaping (UnixListener) -> UnixListener.Accepted = { $0.accept() }
  ) {
    (self.listener, self.log, self.accept) = (listener, log, accept)
    reserve = Self.makeReserve()
  }

  /// The descriptor to poll for reading; nil after listening has ended.
  var descriptor: Int32? { listener?.descriptor }

  /// Whether the descriptor must not be polled now.
  var isPaused: Bool { deadline != nil }

  /// Resets the number of connections that may be accepted in this turn.
  mutating func beginTurn() { budget = Self.perTurn }

  /// Accepts the connections that already wait, then stops listening.
  mutating func endListening() {
    guard listener != nil else { return }
    budget = Self.longestQueue
    isEnding = true
    deadline = nil
    checkInvariants()
  }

  /// Ends a pause, because a descriptor may be available again.
  mutating func resume() { deadline = nil }

  /// Accepts the next waiting connection. Does not block.
  /// - Parameter openConnections: the number of open connections, for the log.
  /// - Returns: nil if none waits, if the budget of this turn is used up, or while paused.
  mutating func next(now: Instant, openConnections: Int) -> Connection? {
    defer { checkInvariants() }
    while let listener, deadline == nil, budget > 0 {
      budget -= 1
      switch accept(listener) {
      case .connection(let descriptor):
        accepted += 1
        return Connection(descriptor: descriptor, peer: Self.peer(of: descriptor))
      case .retry: continue
      case .none: budget = 0
      case .exhausted(let error): refuseOne(error, now, openConnections)
      case .failed(let error):
        log.write(.error, "\(error)")
        pause(now)
      }
    }
    if isEnding { stop() }
    return nil
  }

  private mutating func stop() {
    listener = nil
    deadline = nil
    isEnding = false
  }

  /// The kernel keeps the credentials of a peer that has already closed. A peer without credentials has no rights.
  private static func peer(of descriptor: Int32) -> Peer {
    let peer = (try? PeerCredentials(of: descriptor)) ?? PeerCredentials(pid: 0, uid: .max, gid: .max, groups: [])
    return Peer(uid: peer.uid, gid: peer.gid, pid: peer.pid, groups: peer.groups)
  }

  /// Accepts the first waiting connection, sends the error to its client, and closes it.
  private mutating func refuseOne(_ error: SystemError, _ now: Instant, _ openConnections: Int) {
    reserve = nil
    defer { reserve = Self.makeReserve() }
    guard let listener, case .connection(let descriptor) = accept(listener) else {
      log.write(.error, "\(error); accepting pauses for \(Self.pause / 1_000_000) ms")
      return pause(now)
    }
    var frame = ByteBuffer()
    frame.appendByeFrame(
      reason: "descriptors",
      message: "feedd has no file descriptors left; try again later, or raise its limit of open files (LimitNOFILE).")
    // A new socket has room for this frame. If not, the client sees only the close.
    _ = SocketIO.write(descriptor, frame.bytes)
    SocketIO.close(descriptor)
    turnedAway += 1
    guard now >= nextLine else { return }
    log.write(
      .error,
      "\(error); turned away \(counted(turnedAway, "client")) with \(counted(openConnections, "connection")) open")
    turnedAway = 0
    nextLine = now.adding(seconds: 1)
  }

  private mutating func pause(_ now: Instant) {
    if !isEnding { deadline = now.adding(nanoseconds: Self.pause) }
    budget = 0
  }

  private static func makeReserve() -> Descriptor? { try? Descriptor(duplicating: StandardStreams.error) }

  private func checkInvariants() {
    assert(deadline == nil || (listener != nil && !isEnding), "only a listener that goes on can be paused")
    assert(budget >= 0 && turnedAway >= 0)
  }
}
