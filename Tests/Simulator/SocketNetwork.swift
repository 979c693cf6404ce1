import FaultySockets
import FeedEngine
import FeedModel
import FeedServer
import FeedSystem
import Glibc
import TestSupport

/// Unix sockets of this process, whose daemon's ends meet faults.
///
/// The faults are those of the thread that made the last network (`Tests/FaultySockets`); ``switchOff()`` ends them.
final class SocketNetwork: SimulatedNetwork {
  private struct Line {
    /// The peer's end, which meets no faults; nil when the peer is gone.
    var stream: UnixStream?
    /// Bytes that the socket has not taken.
    var waiting: ArraySlice<UInt8> = []
    var endsInput = false
    /// Bytes that the peer still reads; nil for any number.
    var room: Int?
    var isClosed = false
  }

  private let directory: TemporaryDirectory
  private var lines: [Line] = []
  private var seed: UInt64 = 0
  /// Whether a peer did something since the last turn that could wake the daemon up.
  private(set) var isDisturbed = true

  init(now: Instant) throws {
    directory = try TemporaryDirectory()
    var faults = faulty_sockets()
    faulty_sockets_use(&faults)
    faulty_sockets_set_clock(now.nanoseconds)
    apply()
  }

  static func switchOff() { faulty_sockets_use(nil) }

  /// Whether the daemon's last wait for events would have blocked.
  static var wouldBlock: Bool { faulty_sockets_would_block() != 0 }

  private var path: String { directory.file("s") }

  func makeListener() throws -> UnixListener { try UnixListener.bind(path: path) }

  /// The log of the daemon: what it says goes nowhere.
  static func makeLog() -> Log { Log(threshold: .error, style: .timestamps, descriptor: nowhere) }
  private static let nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC)

  /// Runs `body`, which blocks signals of this thread, and unblocks them again.
  func keepingSignals<Result: ~Copyable>(_ body: () throws -> Result) rethrows -> Result {
    var mask = sigset_t()
    pthread_sigmask(SIG_BLOCK, nil, &mask)
    defer { pthread_sigmask(SIG_SETMASK, &mask, nil) }
    return try body()
  }

  // MARK: Faults

  var isCalm = false { didSet { apply() } }

  func reseed(_ seed: UInt64) {
    self.seed = seed
    apply()
  }

  /// Resets would cost honest clients their connections.
  private func apply() {
    var faults = faulty_sockets(seed: seed, short_transfers: 40, delays: 20, interruptions: 10, resets: 0)
    if isCalm { faults = faulty_sockets() }
    faulty_sockets_change(&faults)
  }

  // MARK: Turns

  func beginTurn(at now: Instant) {
    faulty_sockets_set_clock(now.nanoseconds)
    isDisturbed = false
    for line in lines.indices { _ = flush(line) }
  }

  func endTurn() {
    for line in lines.indices where flush(line) { isDisturbed = true }
  }

  /// Sends what waits, as far as the socket takes it. Returns whether anything was sent.
  private func flush(_ line: Int) -> Bool {
    guard let stream = lines[line].stream else { return false }
    var hasSent = false
    if !lines[line].waiting.isEmpty {
      let count = lines[line].waiting.withUnsafeBytes {
        sendto(stream.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL), nil, 0)
      }
      hasSent = count > 0
      lines[line].waiting.removeFirst(max(0, count))
    }
    if lines[line].endsInput && lines[line].waiting.isEmpty {
      lines[line].endsInput = false
      hasSent = true
      shutdown(stream.descriptor, Int32(SHUT_WR))
    }
    return hasSent
  }

  func takeBytesRead() -> (largest: Int, total: Int) { (0, faulty_sockets_take_received()) }

  // MARK: Peers

  func connect(_ peer: Peer) -> Int {
    isDisturbed = true
    faulty_sockets_add_peer(peer.uid, peer.gid, peer.pid)
    do {
      let stream = try UnixStream.connect(path: path)
      try stream.setNonblocking(true)
      lines.append(Line(stream: stream))
    } catch {
      preconditionFailure("cannot connect: \(error)")
    }
    return lines.count - 1
  }

  func isOpen(_ line: Int) -> Bool { lines[line].stream != nil && !lines[line].isClosed }
  func isClosed(_ line: Int) -> Bool { lines[line].isClosed }
  func isBroken(_ line: Int) -> Bool { lines[line].stream == nil }

  func send(_ line: Int, _ bytes: some Collection<UInt8>) {
    isDisturbed = true
    lines[line].waiting += bytes
  }

  func endInput(_ line: Int) {
    isDisturbed = true
    lines[line].endsInput = true
  }

  /// The system reports each loss.
  func lose(_ line: Int, isNoticed: Bool) {
    isDisturbed = true
    lines[line].stream = nil
  }

  func setRoom(_ line: Int, _ room: Int?) { lines[line].room = room }

  func take(_ line: Int) -> [UInt8] {
    guard let stream = lines[line].stream else { return [] }
    var taken: [UInt8] = []
    while !lines[line].isClosed, lines[line].room != 0 {
      let space = min(lines[line].room ?? 1 << 16, 1 << 16)
      var outcome: (count: Int, code: Int32) = (0, 0)
      taken += [UInt8](unsafeUninitializedCapacity: space) { bytes, used in
        outcome = (read(stream.descriptor, bytes.baseAddress, space), errno)
        used = max(0, outcome.count)
      }
      if outcome.count < 0 && outcome.code == EAGAIN { break }
      if outcome.count <= 0 { lines[line].isClosed = true }
      lines[line].room = lines[line].room.map { $0 - max(0, outcome.count) }
      isDisturbed = true
    }
    return taken
  }
}
