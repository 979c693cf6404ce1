import FeedEngine
import FeedJSON
import FeedModel
import Testing

/// Drives an engine without sockets, turn by turn as the daemon's loop does: texts in, texts out, the clock by hand.
///
/// The engine of a durable harness is given its input as a daemon with a store does it; the store is an array.
final class EngineHarness {
  /// What a durable engine had stored in one turn.
  struct Stored {
    let revision: UInt64
    let at: Instant
    let requests: [UInt8]
  }

  let engine: Engine
  private(set) var now = Instant(nanoseconds: 1_000_000_000)
  private var ports: [ConnectionID: Port] = [:]
  /// Connections that the engine was done with and that were closed for it, in order.
  private(set) var closed: [ConnectionID] = []
  private(set) var events: [EngineEvent] = []
  private(set) var stored: [Stored] = []

  /// The far end of one connection.
  private struct Port {
    /// Sent by the client and not yet taken by the engine.
    var input: [UInt8] = []
    /// Written by the engine and not yet looked at by the test.
    var received: [UInt8] = []
    /// How many bytes the client's socket still takes; nil for any number.
    var room: Int?
    /// Whether the last write found the socket full.
    var isBlocked = false
    /// Whether the engine did not want what was sent.
    var isParked = false
    var isOpen = true
  }

  init(limits: Limits = Limits(), epoch: String = "test", seed: UInt64 = 7, isDurable: Bool = false) {
    let identity = ServerIdentity(
      version: "0", epoch: epoch, pid: 1, uid: 0, durability: isDurable ? "process" : "memory")
    engine = Engine(limits: limits, identity: identity, seed: seed, isDurable: isDurable, now: now)
    engine.log = { [unowned self] in events.append($0) }
  }

  func connect(uid: UInt32 = 1000, groups: [UInt32] = []) -> ConnectionID {
    let id = engine.connect(Peer(uid: uid, gid: uid, pid: 42, groups: groups), now: now)
    ports[id] = Port()
    return id
  }

  /// Connections whose client reads nothing.
  var stopped: Set<ConnectionID> {
    get { Set(ports.filter { $0.value.room == 0 }.keys) }
    set { for id in ports.keys { ports[id]?.room = newValue.contains(id) ? 0 : nil } }
  }

  /// Whether the engine has not closed the connection.
  func isOpen(_ id: ConnectionID) -> Bool { ports[id]?.isOpen ?? false }

  /// Bytes that were handed in and not taken by the engine.
  func waitingInput(of id: ConnectionID) -> Int { ports[id]?.input.count ?? 0 }

  static func frame(_ text: String) -> [UInt8] {
    let bytes = Array(text.utf8)
    return withUnsafeBytes(of: UInt32(bytes.count).bigEndian, Array.init) + bytes
  }

  /// Puts raw bytes behind those that the engine has yet to take, without a turn.
  func supply(_ id: ConnectionID, _ bytes: [UInt8]) {
    ports[id]?.input += bytes
    if engine.isDurable { ports[id]?.isParked = true } else { offer(id) }
  }

  /// Hands raw bytes to the engine and ends the turn.
  func deliver(_ id: ConnectionID, _ bytes: [UInt8]) {
    supply(id, bytes)
    turn()
  }

  func send(_ id: ConnectionID, _ text: String) {
    deliver(id, Self.frame(text))
  }

  /// Sends a request and returns the frames that came back to the same connection.
  func ask(_ id: ConnectionID, _ method: String, _ params: String = "{}") -> [String] {
    send(id, #"{"jsonrpc":"2.0","id":1,"method":"\#(method)","params":\#(params)}"#)
    return take(id)
  }

  func advance(seconds: Double) {
    now = now.adding(seconds: seconds)
    turn()
  }

  /// The peer sends nothing more.
  func endInput(_ id: ConnectionID) {
    engine.endOfInput(id, now: now)
    turn()
  }

  /// The peer is gone.
  func disconnect(_ id: ConnectionID) {
    engine.disconnect(id)
    ports[id] = nil
    turn()
  }

  /// Lets a stopped connection take what waits for it: so many bytes, or everything from now on.
  func resume(_ id: ConnectionID, bytes: Int? = nil) {
    let room = ports[id]?.room ?? 0
    ports[id]?.room = bytes.map { room + $0 }
    turn()
  }

  /// The whole frames that a connection was sent, as texts; half a frame stays for the next time.
  func take(_ id: ConnectionID) -> [String] {
    var frames: [String] = []
    var start = 0
    let bytes = ports[id]?.received ?? []
    while bytes.count - start >= 4 {
      let length = bytes[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
      guard bytes.count >= start + 4 + length else { break }
      frames.append(String(decoding: bytes[start + 4..<start + 4 + length], as: UTF8.self))
      start += 4 + length
    }
    ports[id]?.received.removeFirst(start)
    return frames
  }

  /// Bytes of half a frame that wait for their rest.
  func halfFrame(of id: ConnectionID) -> Int { ports[id]?.received.count ?? 0 }
}

/// The loop.
extension EngineHarness {
  /// Turns until the engine has nothing more to do by itself.
  func turn() {
    for _ in 0..<20_000 {
      turnOnce()
      if !engine.hasWork && !engine.isDue(now) && !mayResume { return }
    }
    Issue.record("the engine always says that it has work and gets nowhere")
  }

  /// One turn, whatever is left to do.
  func turnOnce() {
    engine.takeResumedInput { ports[$0]?.isParked = true }
    let waiting = ports.keys.filter { ports[$0]?.isParked == true && engine.wantsInput($0) }.sorted {
      $0.rawValue < $1.rawValue
    }
    if engine.isDurable { store(waiting) }
    for id in waiting { offer(id) }
    engine.endTurn(now: now)
    write()
    engine.finishWrites()
    for (id, port) in ports where port.isOpen && engine.shouldClose(id) { close(id) }
  }

  /// Stores what may change something of what these connections sent.
  private func store(_ waiting: [ConnectionID]) {
    engine.beginTurn(now: now)
    for id in waiting { (ports[id]?.input ?? []).withUnsafeBytes { engine.prepare(id, $0) } }
    guard let batch = engine.journalBatch else { return }
    stored.append(Stored(revision: batch.revision, at: batch.at, requests: Array(batch.requests)))
    engine.didStore()
  }

  /// Hands over what was sent; what is not wanted now is parked and offered again.
  private func offer(_ id: ConnectionID) {
    guard let input = ports[id]?.input, ports[id]?.isOpen == true else { return }
    if !input.isEmpty && engine.wantsInput(id) {
      let taken = input.withUnsafeBytes { engine.receive(id, $0, now: now) }
      ports[id]?.input.removeFirst(taken)
    }
    let isEmpty = ports[id]?.input.isEmpty ?? true
    ports[id]?.isParked = !isEmpty && !engine.wantsInput(id)
  }

  private var mayResume: Bool {
    ports.contains { $0.value.isOpen && $0.value.isParked && engine.wantsInput($0.key) }
  }

  private func write() {
    var pending: Set<ConnectionID> = []
    engine.takePendingOutput { pending.insert($0) }
    for (id, port) in ports where port.isBlocked && port.room != 0 {
      write(to: id)
      if !engine.hasOutput(id) { engine.didDrain(id) }
    }
    for id in pending where ports[id]?.isBlocked == false { write(to: id) }
  }

  /// Writes as the loop does, a few slices at a time, until everything is written or the socket is full.
  private func write(to id: ConnectionID) {
    withUnsafeTemporaryAllocation(of: UnsafeRawBufferPointer.self, capacity: 4) { slices in
      while case let count = engine.output(of: id, into: slices), count > 0 {
        var written = 0
        var offered = 0
        for slice in slices[..<count] {
          offered += slice.count
          let fits = min(slice.count, ports[id]?.room ?? slice.count)
          ports[id]?.received.append(contentsOf: slice[..<fits])
          ports[id]?.room? -= fits
          written += fits
        }
        engine.didWrite(id, written)
        ports[id]?.isBlocked = written < offered
        if written < offered { return }
      }
      ports[id]?.isBlocked = false
    }
  }

  /// What is still unread stays for the test; the id may come back for another connection.
  private func close(_ id: ConnectionID) {
    engine.disconnect(id)
    closed.append(id)
    ports[id]?.isOpen = false
  }
}

extension Engine {
  /// Whether something is due that is not a mere look at the clock.
  fileprivate func isDue(_ now: Instant) -> Bool {
    nextDeadline.map { $0 <= now } ?? false
  }
}
