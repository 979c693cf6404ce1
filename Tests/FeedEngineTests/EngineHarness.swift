import FeedEngine
import FeedJSON
import FeedModel

/// Drives an engine without sockets: texts in, texts out, the clock by hand.
final class EngineHarness {
  let engine: Engine
  private(set) var now = Instant(nanoseconds: 1_000_000_000)
  /// What each connection was sent and has not been taken yet.
  private var received: [ConnectionID: [UInt8]] = [:]
  /// Connections whose socket is full: nothing is written to them.
  var stopped: Set<ConnectionID> = []
  private(set) var events: [EngineEvent] = []

  init(limits: Limits = Limits(), epoch: String = "test") {
    engine = Engine(
      limits: limits,
      identity: ServerIdentity(version: "0", epoch: epoch, pid: 1, uid: 0, durability: "memory"), seed: 7, now: now)
    engine.log = { [unowned self] in events.append($0) }
  }

  func connect(uid: UInt32 = 1000) -> ConnectionID {
    let id = engine.connect(Peer(uid: uid, gid: uid, pid: 42), now: now)
    received[id] = []
    return id
  }

  static func frame(_ text: String) -> [UInt8] {
    let bytes = Array(text.utf8)
    return withUnsafeBytes(of: UInt32(bytes.count).bigEndian, Array.init) + bytes
  }

  /// Hands raw bytes to the engine and ends the turn. Returns how many it consumed.
  @discardableResult
  func deliver(_ id: ConnectionID, _ bytes: [UInt8]) -> Int {
    let consumed = bytes.withUnsafeBytes { engine.receive(id, $0, now: now) }
    turn()
    return consumed
  }

  func send(_ id: ConnectionID, _ text: String) {
    deliver(id, Self.frame(text))
  }

  /// Sends a request and returns the frames that came back to the same connection.
  func ask(_ id: ConnectionID, _ method: String, _ params: String = "{}") -> [String] {
    send(id, #"{"jsonrpc":"2.0","id":1,"method":"\#(method)","params":\#(params)}"#)
    return take(id)
  }

  /// Ends turns until the engine has nothing more to do by itself.
  func turn() {
    repeat {
      engine.endTurn(now: now)
      flush()
    } while engine.hasWork && !engine.isStuck(stopped)
  }

  func advance(seconds: Double) {
    now = now.adding(seconds: seconds)
    turn()
  }

  private func flush() {
    withUnsafeTemporaryAllocation(of: UnsafeRawBufferPointer.self, capacity: 64) { slices in
      engine.takePendingOutput { id in
        while !stopped.contains(id) {
          let count = engine.output(of: id, into: slices)
          if count == 0 { break }
          for slice in slices[..<count] { received[id, default: []].append(contentsOf: slice) }
          engine.didWrite(id, slices[..<count].reduce(0) { $0 + $1.count })
        }
      }
    }
    engine.finishWrites()
  }

  /// Lets a stopped connection take what waits for it.
  func resume(_ id: ConnectionID) {
    stopped.remove(id)
    withUnsafeTemporaryAllocation(of: UnsafeRawBufferPointer.self, capacity: 64) { slices in
      while case let count = engine.output(of: id, into: slices), count > 0 {
        for slice in slices[..<count] { received[id, default: []].append(contentsOf: slice) }
        engine.didWrite(id, slices[..<count].reduce(0) { $0 + $1.count })
      }
    }
    engine.didDrain(id)
    turn()
  }

  /// The whole frames that a connection was sent, as texts.
  func take(_ id: ConnectionID) -> [String] {
    var bytes = received[id] ?? []
    var frames: [String] = []
    while bytes.count >= 4 {
      let length = bytes[..<4].reduce(0) { $0 << 8 | Int($1) }
      guard bytes.count >= 4 + length else { break }
      frames.append(String(decoding: bytes[4..<(4 + length)], as: UTF8.self))
      bytes.removeFirst(4 + length)
    }
    received[id] = bytes
    return frames
  }
}

extension Engine {
  /// Whether all that is left to do waits for connections that do not read.
  fileprivate func isStuck(_ stopped: Set<ConnectionID>) -> Bool { !stopped.isEmpty }
}
