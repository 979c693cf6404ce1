import EngineSupport
import FeedEngine
import FeedJSON
import FeedModel
import Testing

@testable import FeedEngine

/// Drives a turn without sockets: tests send and receive JSON texts, and set the clock.
///
/// The log of a durable harness is an array that stores batches at once or when the test asks for it.
final class EngineHarness {
  let engine: Engine
  /// The log of a durable harness.
  let log: ArrayLog?
  private(set) var now = Instant(nanoseconds: 1_000_000_000)
  private var loop: Turn
  private var link = MemoryLink()
  private(set) var events: [EngineEvent] = []

  init(
    limits: Limits = Limits(), epoch: String = "test", seed: UInt64 = 7, isDurable: Bool = false, window: Int = 1,
    slices: (any SliceRunner)? = nil, queries: (any SliceRunner)? = nil, deltas: (any SliceRunner)? = nil
  ) {
    let identity = ServerIdentity(
      version: "0", epoch: epoch, pid: 1, uid: 0, durability: isDurable ? "process" : "memory")
    let log = isDurable ? ArrayLog(window: window) : nil
    self.log = log
    engine = Engine(limits: limits, identity: identity, seed: seed, isDurable: isDurable, now: now)
    loop = Turn(engine, log: log ?? NoLog(), slices: slices, queries: queries, deltas: deltas, now: now)
    engine.status.log = { [unowned self] in events.append($0) }
  }

  /// Creates a harness with the default limits, apart from those that `change` sets.
  convenience init(isDurable: Bool = false, changing change: (inout Limits) -> Void) {
    var limits = Limits()
    change(&limits)
    self.init(limits: limits, isDurable: isDurable)
  }

  /// The batches that the log has stored.
  var stored: [LogBatch] { log?.stored ?? [] }

  // MARK: Connections

  func connect(uid: UInt32 = 1000, groups: [UInt32] = []) -> ConnectionID {
    connect([Peer(uid: uid, gid: uid, pid: 42, groups: groups)])[0]
  }

  /// Connects several peers in one turn.
  func connect(_ peers: [Peer]) -> [ConnectionID] {
    let before = link.accepted.count
    for peer in peers { link.connect(peer) }
    turnOnce()
    return Array(link.accepted[before...])
  }

  /// The connections whose client does not read.
  var stopped: Set<ConnectionID> {
    get { Set(link.open.filter { link.room($0) == 0 }) }
    set { for id in link.open { link.setRoom(id, newValue.contains(id) ? 0 : nil) } }
  }

  /// Whether the connection is open.
  func isOpen(_ id: ConnectionID) -> Bool { link.isOpen(id) }

  /// Whether the engine accepts requests of a connection now.
  func wantsInput(_ id: ConnectionID) -> Bool {
    engine.sessions[id].map { engine.wantsInput($0) } ?? false
  }

  /// The number of bytes that were sent and are not decoded.
  func waitingInput(of id: ConnectionID) -> Int {
    link.unreadCount(id) + (engine.sessions[id]?.input.held.count ?? 0)
  }

  /// Whether the turn has work to do without another event.
  var hasWork: Bool { loop.next(after: now) == .now }
  /// Whether feeds are half changed, so that nothing reads them.
  var isExclusive: Bool { loop.isExclusive }
  /// Whether a batch is executed in part.
  var isWithinBatch: Bool { loop.isWithinBatch }
  /// The number of tokens that the tape has room for.
  var tapeCapacity: Int { loop.tapeCapacity }

  // MARK: Input

  static func frame(_ text: String) -> [UInt8] {
    let bytes = Array(text.utf8)
    return withUnsafeBytes(of: UInt32(bytes.count).bigEndian, Array.init) + bytes
  }

  /// Returns the frame of a request.
  static func request(_ method: String, _ params: String = "{}", id: Int = 1) -> [UInt8] {
    frame(#"{"jsonrpc":"2.0","id":\#(id),"method":"\#(method)","params":\#(params)}"#)
  }

  /// Sends raw bytes without running a turn.
  func supply(_ id: ConnectionID, _ bytes: [UInt8]) {
    link.send(id, bytes)
  }

  /// Sends raw bytes and runs the turn.
  func deliver(_ id: ConnectionID, _ bytes: [UInt8]) {
    supply(id, bytes)
    turn()
  }

  /// Sends a request without running a turn.
  func supply(_ client: ConnectionID, _ method: String, _ params: String = "{}", id: Int = 1) {
    supply(client, Self.request(method, params, id: id))
  }

  /// Sends a request and runs the turn.
  func deliver(_ client: ConnectionID, _ method: String, _ params: String = "{}", id: Int = 1) {
    supply(client, method, params, id: id)
    turn()
  }

  func send(_ id: ConnectionID, _ text: String) {
    deliver(id, Self.frame(text))
  }

  /// Sends a request and returns the frames that the same connection received.
  func ask(_ id: ConnectionID, _ method: String, _ params: String = "{}") -> [String] {
    send(id, #"{"jsonrpc":"2.0","id":1,"method":"\#(method)","params":\#(params)}"#)
    return take(id)
  }

  func advance(seconds: Double) {
    now = now.adding(seconds: seconds)
    turn()
  }

  /// Ends the input of the peer.
  func endInput(_ id: ConnectionID) {
    leave(id)
    turn()
  }

  /// Ends the input of the peer without running a turn.
  func leave(_ id: ConnectionID) { link.endInput(id) }

  /// Disconnects the peer.
  func disconnect(_ id: ConnectionID) {
    drop(id)
    turn()
  }

  /// Disconnects the peer without running a turn.
  func drop(_ id: ConnectionID) { link.disconnect(id) }

  /// The peer stops reading; no turn runs.
  func hangUp(_ id: ConnectionID) { link.hangUp(id) }

  /// Stops the daemon.
  func drain(reason: String = "shutdown", message: String = "over") {
    loop.drain(reason: reason, message: message)
    turn()
  }

  /// Ends the daemon at once if the log is lost. Returns the reason.
  func abandonIfLost() -> String? {
    if let reason = loop.lossReason { loop.abandon(&link, reason: "shutdown", message: reason) }
    return loop.lossReason
  }

  /// Whether all connections are closed after `drain`.
  var isDrained: Bool { loop.isDrained }

  // MARK: Output

  /// Lets a stopped connection read `bytes` bytes, or everything from now on.
  func resume(_ id: ConnectionID, bytes: Int? = nil) {
    let room = link.room(id) ?? 0
    link.setRoom(id, bytes.map { room + $0 })
    turn()
  }

  /// Takes the complete frames that a connection received, as texts. An incomplete frame stays for the next call.
  func take(_ id: ConnectionID) -> [String] {
    var frames: [String] = []
    var start = 0
    let bytes = link.take(id)
    while bytes.count - start >= 4 {
      let length = bytes[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
      guard bytes.count >= start + 4 + length else { break }
      frames.append(String(decoding: bytes[start + 4..<start + 4 + length], as: UTF8.self))
      start += 4 + length
    }
    link.putBack(id, bytes[start...])
    return frames
  }

  /// The number of received bytes of an incomplete frame.
  func halfFrame(of id: ConnectionID) -> Int { link.receivedCount(id) }

  // MARK: Turns

  /// Runs turns until there is nothing more to do.
  func turn() {
    for _ in 0..<20_000 {
      turnOnce()
      if !hasWork && !link.hasEvents { return }
    }
    Issue.record("the engine still has work after 20,000 turns")
  }

  /// Runs one turn, some time after the last one.
  func turnOnce(after seconds: Double = 0) {
    now = now.adding(seconds: seconds)
    loop.run(&link, now: now)
    engine.checkInvariants()
  }
}
