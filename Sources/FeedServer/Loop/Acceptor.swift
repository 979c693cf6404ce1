import FeedEngine
import FeedJSON
import FeedModel
import FeedSystem
import FeedWire

/// The listening socket: takes waiting connections, and copes when descriptors run out.
///
/// When the process has no descriptor left, the acceptor gives up one that it keeps in reserve, takes a connection with it,
/// says why it cannot serve it, and closes it. Left in the queue, that connection would wake the loop again and again. When
/// even this fails, accepting pauses for a moment.
///
/// Invariant: ``isPaused`` exactly while there is a moment to resume at, and only while listening.
struct Acceptor: ~Copyable {
  /// A connection that was taken. The descriptor is nonblocking, closed on exec, and belongs to the caller.
  struct Connection {
    let descriptor: Int32
    let peer: Peer
  }

  /// Connections taken in one turn.
  static let perTurn = 64
  /// Connections that the queue of the socket can hold.
  static let longestQueue = 4096
  /// Nanoseconds without accepting after a failure.
  private static let pause: UInt64 = 200_000_000

  private let log: Log
  private let accept: (UnixListener) -> UnixListener.Accepted
  private var listener: UnixListener?
  /// Held only to be given up when there is no other descriptor left.
  private var reserve: Descriptor?
  private var resumesAt: Instant?
  /// Connections that may still be taken in this turn.
  private var budget = 0
  /// Whether listening ends when the queue is empty or the budget is used up.
  private var isEnding = false
  /// Clients turned away since the last log line, and the earliest time of the next one.
  private var turnedAway = 0
  private var nextLine = Instant(nanoseconds: 0)
  /// Connections taken so far.
  private(set) var accepted = 0

  /// - Parameter accept: the system call; tests pass one that fails.
  init(
    _ listener: UnixListener, _ log: Log,
    accept: @escaping (UnixListener) -> UnixListener.Accepted = { $0.accept() }
  ) {
    self.listener = listener
    self.log = log
    self.accept = accept
    reserve = Self.makeReserve()
  }

  /// The descriptor to poll for reading; nil when listening has ended.
  var descriptor: Int32? { listener?.descriptor }

  /// Whether the descriptor must not be polled for now.
  var isPaused: Bool { resumesAt != nil }

  /// When to call ``resume()`` although no connection was closed; nil while accepting.
  var deadline: Instant? { resumesAt }

  /// Allows connections to be taken in this turn.
  mutating func beginTurn() { budget = Self.perTurn }

  /// Takes the connections that wait already, then stops listening.
  mutating func endListening() {
    guard listener != nil else { return }
    budget = Self.longestQueue
    isEnding = true
    resumesAt = nil
    checkInvariants()
  }

  /// Accepts again after a pause: a descriptor may have become free.
  mutating func resume() { resumesAt = nil }

  /// Takes the next waiting connection. Never blocks.
  /// - Parameter openConnections: for the log.
  /// - Returns: nil when none waits, when this turn's budget is used up, and while paused.
  mutating func next(now: Instant, openConnections: Int) -> Connection? {
    defer { checkInvariants() }
    while let listener, resumesAt == nil, budget > 0 {
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
    resumesAt = nil
    isEnding = false
  }

  /// The kernel keeps the credentials of a peer that is gone already. Without credentials the peer has no rights.
  private static func peer(of descriptor: Int32) -> Peer {
    let peer = (try? PeerCredentials(of: descriptor)) ?? PeerCredentials(pid: 0, uid: .max, gid: .max, groups: [])
    return Peer(uid: peer.uid, gid: peer.gid, pid: peer.pid, groups: peer.groups)
  }

  /// Tells the first waiting client that there are no descriptors, and closes it.
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
    // A new socket has room for so little; if it has not, closing the connection says enough.
    _ = SocketIO.write(descriptor, frame.bytes)
    SocketIO.close(descriptor)
    turnedAway += 1
    guard now >= nextLine else { return }
    let clients = turnedAway == 1 ? "1 client" : "\(turnedAway) clients"
    log.write(.error, "\(error); \(clients) turned away with \(openConnections) connections open")
    turnedAway = 0
    nextLine = now.adding(seconds: 1)
  }

  private mutating func pause(_ now: Instant) {
    if !isEnding { resumesAt = now.adding(nanoseconds: Self.pause) }
    budget = 0
  }

  private static func makeReserve() -> Descriptor? { try? Descriptor(duplicating: StandardStreams.error) }

  private func checkInvariants() {
    assert(resumesAt == nil || (listener != nil && !isEnding), "only a listener that goes on can be paused")
    assert(budget >= 0 && turnedAway >= 0)
  }
}
