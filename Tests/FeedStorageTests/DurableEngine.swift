import EngineSupport
import FaultyFiles
import FeedEngine
import FeedModel
import FeedSystem

@testable import FeedStorage

/// A daemon without sockets: an engine, its log and a client. Releasing the object has the effect of a kill.
final class DurableEngine {
  let engine: Engine
  let log: FileLog
  let found: RecoveryProgress
  private var loop: Turn
  private var link = MemoryLink()
  private let client: ConnectionID
  private(set) var now: Instant

  /// - Parameters:
  ///   - path: the state directory, which is made if it is missing.
  ///   - isFaulty: whether the files are on the faulty disk.
  ///   - files: the files of the log in place of those in the directory.
  ///   - boot: the identity of the boot of the machine.
  ///   - now: the time of the first turn; later if a newer batch was stored.
  init(
    _ path: String, policy: ImagePolicy = ImagePolicy(), durability: Durability = .process,
    isFaulty: Bool = false, limits: Limits = Limits(), epoch: String? = nil, skipping: Int64? = nil,
    skipsDamaged: Bool = false, now: Instant = Instant(nanoseconds: 1_000_000_000),
    files: (any LogDirectory)? = nil, boot: String = BootIdentity.current
  ) throws {
    try PrivateDirectory.make(path)
    log = try FileLog.open(
      path, durability: durability, freshEpoch: epoch ?? "epoch \(path)", policy: policy, software: "0",
      skipping: skipping, skipsDamaged: skipsDamaged, boot: boot,
      files: files ?? (isFaulty ? FaultyDirectory(path) : nil),
      vfs: isFaulty ? "faulty" : nil)
    let identity = ServerIdentity(version: "0", epoch: log.epoch, pid: 1, uid: 0, durability: "process")
    engine = Engine(limits: limits, identity: identity, seed: 3, isDurable: true, now: now)
    let filler = Filler(engine)
    found = try log.recover(into: filler)
    engine.endReplay(limits)
    try log.start(limits)
    if engine.catalog.hasReplacedRows { log.requestImage() }
    self.now = max(now, Instant(nanoseconds: found.newestMoment + 1))
    loop = Turn(engine, log: log, now: self.now)
    link.connect(Peer(uid: 1, gid: 1, pid: 1))
    loop.run(&link, now: self.now)
    client = link.accepted[0]
  }

  /// Connects another client.
  func connect() -> ConnectionID {
    link.connect(Peer(uid: 1, gid: 1, pid: 1))
    run()
    return link.accepted[link.accepted.count - 1]
  }

  /// Sends requests and returns all frames that the client receives.
  func turn(_ requests: [String], later seconds: Double = 0.001) -> [String] {
    now = now.adding(seconds: seconds)
    send(client, requests)
    settle()
    return take(client)
  }

  func send(_ client: ConnectionID, _ requests: [String]) {
    link.send(client, requests.flatMap { Self.frame($0) })
  }

  /// Runs turns until there is nothing to do without an event of the log.
  func run() {
    repeat {
      loop.run(&link, now: now)
      if log.isAwaitingRoom { workOnImage() }
    } while loop.next(after: now) == .now || link.hasEvents
  }

  /// Runs turns until all sent requests are stored and answered.
  func settle() {
    run()
    while loop.awaitsLog {
      waitForLog()
      run()
    }
  }

  /// Takes the frames that a client received since the last call.
  func take(_ client: ConnectionID) -> [String] { Self.texts(link.take(client)) }

  /// Waits until the log has an event.
  private func waitForLog() {
    if let descriptor = log.descriptor { _ = try? Readiness.readable.wait(on: descriptor) }
  }

  /// Does one turn's work on an image.
  func workOnImage(isBusy: Bool = false) {
    log.workOnImage(
      executed: loop.executed, steps: engine.catalog.stepsTaken, stateBytes: engine.catalog.accounts.total.bytes,
      isBusy: isBusy
    ) {
      engine.catalog.makeImage()
    }
  }

  /// Writes a whole image. Returns false if it failed.
  @discardableResult
  func writeImage() -> Bool {
    guard let executed = loop.executed else { return false }
    return log.writeImage(executed: executed, { engine.catalog.makeImage() })
  }

  /// Stops like a daemon that receives SIGTERM.
  func stop() {
    writeImage()
    log.close(within: .max)
  }

  /// Sends a request and returns the first frame.
  @discardableResult
  func ask(_ method: String, _ params: String = "{}", later seconds: Double = 0.001) -> String {
    turn([Self.request(method, params)], later: seconds).first ?? ""
  }

  static func request(_ method: String, _ params: String, id: Int = 1) -> String {
    #"{"jsonrpc":"2.0","id":\#(id),"method":"\#(method)","params":\#(params)}"#
  }

  static func frame(_ text: String) -> [UInt8] {
    withUnsafeBytes(of: UInt32(text.utf8.count).bigEndian) { Array($0) } + Array(text.utf8)
  }

  private static func texts(_ bytes: [UInt8]) -> [String] {
    var rest = bytes[...]
    var texts: [String] = []
    while rest.count >= 4 {
      let length = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
      texts.append(String(decoding: rest.dropFirst(4).prefix(length), as: UTF8.self))
      rest = rest.dropFirst(4 + length)
    }
    return texts
  }
}
