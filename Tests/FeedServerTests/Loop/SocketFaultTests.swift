import FaultySockets
import FeedEngine
import FeedModel
import FeedSystem
import Glibc
import TestSupport
import Testing

@testable import FeedServer
@testable import ReferenceModel

extension faulty_sockets {
  /// Short transfers, delays and interruptions, and `resets` in a hundred transfers.
  fileprivate init(seed: UInt64, resets: Int32 = 0) {
    self.init(seed: seed, short_transfers: 40, delays: 20, interruptions: 10, resets: resets)
  }

  /// Runs `body` with these faults. It must not switch threads.
  func during(_ body: () throws -> Void) rethrows {
    var faults = self
    faulty_sockets_use(&faults)
    defer { faulty_sockets_use(nil) }
    try body()
  }
}

/// The far end of a connection, which meets no faults.
private struct FarEnd {
  let stream: UnixStream
  /// The bytes that the socket has not taken.
  private var waiting: ArraySlice<UInt8> = []

  init(_ path: String) throws {
    stream = try UnixStream.connect(path: path)
    try stream.setNonblocking(true)
  }

  mutating func send(_ bytes: some Sequence<UInt8>) {
    waiting += bytes
    flush()
  }

  /// Sends what waits, at most `count` bytes.
  mutating func flush(_ count: Int = .max) {
    let sent = waiting.prefix(count).withUnsafeBytes {
      sendto(stream.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL), nil, 0)
    }
    waiting.removeFirst(max(0, sent))
  }

  /// Reads what has arrived, at most `count` bytes.
  func read(_ count: Int = 1 << 16) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { space, used in
      used = max(0, Glibc.read(stream.descriptor, space.baseAddress, count))
    }
  }
}

@Suite("Sockets with faults")
struct SocketFaultTests {
  private static let first = ConnectionID(rawValue: 0)

  @Test("an end that is closed is noticed although a child process still has a copy of it")
  func copiedEnd() throws {
    var ends: [Int32] = [0, 0]
    try require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
    let copy = dup(ends[0])
    defer {
      close(copy)
      close(ends[1])
    }
    faulty_sockets().during { SocketIO.close(ends[0]) }
    var byte: UInt8 = 0
    expectEqual(recvfrom(ends[1], &byte, 1, Int32(MSG_DONTWAIT), nil, nil), 0)
  }

  @Test("every byte passes in order while calls are short, delayed and interrupted", arguments: UInt64(1)...20)
  func echo(_ seed: UInt64) throws {
    let place = try SocketLinkTests.Place()
    var link = try place.makeLink()
    var client = try FarEnd(place.path)
    try expectEqual(place.events(&link).count, 1)
    var random = SeededRandom(seed: seed)
    let sent = (0..<30_000).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    client.send(sent)
    var (held, received): ([UInt8], [UInt8]) = ([], [])
    try faulty_sockets(seed: seed).during {
      for _ in 0..<100_000 where received.count < sent.count {
        link.watch(Self.first, reading: held.count < 4096, writing: !held.isEmpty)
        for event in try place.events(&link, milliseconds: 0) {
          switch event {
          case .readable(let id, let hungUp):
            expect(!hungUp)
            held += try Self.read(&link, id, Int.random(in: 1...5000, using: &random))
          case .writable(let id): held.removeFirst(try Self.write(&link, id, held, &random))
          default: Issue.record("\(event)")
          }
        }
        client.flush()
        received += client.read()
      }
      expect(faulty_sockets_count() > 0)
    }
    expectEqual(received, sent)
  }

  private static func read(_ link: inout SocketLink, _ id: ConnectionID, _ count: Int) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    switch bytes.withUnsafeMutableBytes({ link.read(id, into: $0) }) {
    case .bytes(let count): return Array(bytes[..<count])
    case .wouldBlock: return []
    case let outcome: throw TestFailure("reading gave \(outcome)")
    }
  }

  /// Writes bytes in several slices. Returns how many were accepted.
  private static func write(
    _ link: inout SocketLink, _ id: ConnectionID, _ bytes: [UInt8], _ random: inout SeededRandom
  ) throws -> Int {
    let length = Int.random(in: 1...3000, using: &random)
    let outcome = bytes.withUnsafeBytes { bytes in
      let starts = stride(from: 0, to: bytes.count, by: length)
      let slices = starts.map { UnsafeRawBufferPointer(rebasing: bytes[$0..<min($0 + length, bytes.count)]) }
      return slices.withUnsafeBufferPointer { link.write(id, $0) }
    }
    switch outcome {
    case .bytes(let count): return count
    case .wouldBlock: return 0
    case .failed: throw TestFailure("writing failed")
    }
  }

  @Test("a reset ends its connection only")
  func resets() throws {
    let place = try SocketLinkTests.Place()
    var link = try place.makeLink()
    var clients = [try FarEnd(place.path), try FarEnd(place.path)]
    try expectEqual(place.events(&link).count, 2)
    for index in clients.indices { clients[index].send([1, 2, 3]) }
    var bytes = [UInt8](repeating: 0, count: 10)
    faulty_sockets(seed: 1, short_transfers: 0, delays: 0, interruptions: 0, resets: 100).during {
      expectEqual(bytes.withUnsafeMutableBytes { link.read(Self.first, into: $0) }, .failed)
    }
    link.close(Self.first)
    link.checkInvariants()
    expect(clients[0].read().isEmpty)
    let other = ConnectionID(rawValue: 1)
    try expectEqual(Self.read(&link, other, 10), [1, 2, 3])
    expectEqual(link.connections, [other])
  }
}

/// The whole event loop over sockets with faults: clients push and watch, lose their connections and resume.
@Suite("Event loop with faults")
struct EventLoopFaultTests {
  /// A client whose copy of the feed follows the rules of the protocol.
  fileprivate struct Watcher {
    var end: FarEnd
    var inbox: [UInt8] = []
    var mirror: Mirror?

    init(_ path: String) throws { end = try FarEnd(path) }

    mutating func ask(_ method: String, _ params: String) {
      let text = Array(#"{"jsonrpc":"2.0","id":"\#(method)","method":"\#(method)","params":\#(params)}"#.utf8)
      end.send(withUnsafeBytes(of: UInt32(text.count).bigEndian, Array.init) + text)
    }

    /// Defines the feed if it is missing, and watches it, from the revision of the copy if there is one.
    mutating func watch() {
      let since = mirror.map { #","since":{"epoch":"e","revision":\#($0.revision)}"# } ?? ""
      ask("define", #"{"feed":"list","kind":"array"}"#)
      ask("watch", #"{"feed":"list"\#(since)}"#)
    }

    /// Reads at most `count` bytes, and takes the frames that are whole. Returns whether there was anything to read.
    @discardableResult
    mutating func receive(_ count: Int) throws -> Bool {
      let bytes = end.read(count)
      inbox += bytes
      while inbox.count >= 4 {
        let length = inbox[..<4].reduce(0) { $0 << 8 | Int($1) }
        guard inbox.count >= 4 + length else { break }
        let text = String(decoding: inbox[4..<4 + length], as: UTF8.self)
        inbox.removeFirst(4 + length)
        try take(require(Value(text)))
      }
      return !bytes.isEmpty
    }

    private mutating func take(_ frame: Value) throws {
      if let method = frame["method"]?.string {
        let params = try require(frame["params"])
        switch method {
        case "delta": try mirror?.take(delta: params)
        case "snapshot": try mirror?.take(snapshot: params)
        case "bookmark": try mirror?.take(bookmark: params, epoch: "e")
        default: throw TestFailure(frame.text)
        }
      } else {
        let result = try require(frame["result"], "\(frame)")
        guard frame["id"]?.string == "watch" else { return }
        mirror = try Mirror(result, since: mirror, initial: true)
      }
    }
  }

  @Test("every copy is right at the end, whatever the system calls do", arguments: UInt64(1)...8)
  func copies(_ seed: UInt64) throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("s")
    var mask = sigset_t()
    pthread_sigmask(SIG_BLOCK, nil, &mask)
    defer { pthread_sigmask(SIG_SETMASK, &mask, nil) }
    var limits = Limits()
    limits.maxQueue = 4096
    let engine = Engine(
      limits: limits,
      identity: ServerIdentity(version: "0", epoch: "e", pid: 1, uid: getuid(), durability: "memory"), seed: seed,
      now: ServerClock(after: 0).now)
    var random = SeededRandom(seed: seed)
    // Resets cost a connection, so they are rare.
    try faulty_sockets(seed: seed, resets: seed % 2 == 0 ? 1 : 0).during {
      var loop = try EventLoop(
        engine, commitLog: NoLog(), listener: UnixListener.bind(path: path),
        log: Log(threshold: .error, style: .timestamps), makeRunner: { SlicedWork($0) })
      var clients = try (0..<3).map { _ in try Watcher(path) }
      for index in clients.indices { clients[index].watch() }
      for step in 0..<150 {
        let index = Int.random(in: 0..<3, using: &random)
        switch Int.random(in: 0..<20, using: &random) {
        case 0: try clients[index].reconnect(path)
        case 1...8:
          let filler = String(repeating: "x", count: Int.random(in: 0..<3000, using: &random))
          clients[index].ask("insert", #"{"feed":"list","elements":[{"n":\#(step),"f":"\#(filler)"}],"at":[0]}"#)
        case 9: clients[index].ask("set", #"{"feed":"list","elements":[{"n":\#(step)},{"n":0}]}"#)
        case 10: faulty_sockets_advance(UInt64.random(in: 0..<2_000_000_000, using: &random))
        default: try clients[index].receive(Int.random(in: 1..<9000, using: &random))
        }
        clients[index].end.flush(Int.random(in: 1..<5000, using: &random))
        for _ in 0..<Int.random(in: 0..<4, using: &random) { try loop.cycle() }
      }
      try settle(&clients, &loop, path)
      loop.checkInvariants()
    }
  }

  /// Lets all clients catch up without faults, and compares their copies with the feed.
  private func settle(_ clients: inout [Watcher], _ loop: inout EventLoop, _ path: String) throws {
    var none = faulty_sockets()
    faulty_sockets_use(&none)
    for index in clients.indices { try clients[index].reconnect(path) }
    // How finely requests and answers are sliced depends on the machine, so the number of cycles does too.
    var isAtRest = false
    for _ in 0..<100_000 where !isAtRest {
      for index in clients.indices { clients[index].end.flush() }
      try loop.cycle()
      isAtRest = faulty_sockets_would_block() != 0
      for index in clients.indices where try clients[index].receive(1 << 16) { isAtRest = false }
    }
    expect(isAtRest)
    let feed = try loop.engine.catalog.feed(named: "list")
    let rows = (0..<feed.count).map { feed.section(at: 0).row(at: $0) }
    let texts = rows.map { String(decoding: $0.text, as: UTF8.self) }
    for client in clients {
      expect(client.mirror?.isLive == true && client.mirror?.revision == Int(feed.revision))
      expectEqual(client.mirror?.sections.first?.rows.map(\.element), texts)
    }
  }
}

extension EventLoopFaultTests.Watcher {
  /// Connects again, and resumes from the copy unless it is incomplete.
  fileprivate mutating func reconnect(_ path: String) throws {
    let former = mirror
    self = try Self(path)
    if former?.isLive == true { mirror = former }
    watch()
  }
}
