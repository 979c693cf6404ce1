import FeedSystem
import Glibc
import TestSupport
import Testing

@Suite("Connected Unix sockets")
struct UnixStreamTests {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// The two ends of one connection.
  func pair() throws -> (client: UnixStream, server: UnixStream) {
    let listener = try UnixListener.bind(path: directory.file("s"))
    let client = try UnixStream.connect(path: listener.path, timeout: testTimeout)
    guard case .connection(let number) = listener.accept() else { throw TestFailure("nothing to accept") }
    return (client, UnixStream(owning: Descriptor(owning: number)))
  }

  func write(_ bytes: [UInt8], to stream: UnixStream) throws {
    try bytes.withUnsafeBytes { try stream.writeAll($0, timeout: testTimeout) }
  }

  @Test func transfersBytesInBothDirectionsUntilTheEnd() throws {
    let (client, server) = try pair()
    try write([1, 2, 3], to: client)
    var space = [UInt8](repeating: 0, count: 8)
    try expectEqual(space.withUnsafeMutableBytes { try server.read(into: $0) }, 3)
    expectEqual(space[..<3], [1, 2, 3])
    try write([9], to: server)
    server.shutDown(.writing)
    try expectEqual(space.withUnsafeMutableBytes { try client.read(into: $0) }, 1)
    try expectEqual(space.withUnsafeMutableBytes { try client.read(into: $0) }, 0)
  }

  @Test func waitEndsWithReadinessOrTimeout() throws {
    let (client, _) = try pair()
    let before = MonotonicClock.now
    try expectEqual(client.wait(for: .writable, timeout: testTimeout), .writable)
    let (quiet, other) = try pairOfSockets()
    try expect(quiet.wait(for: .readable, timeout: .milliseconds(20)).isEmpty)
    expect(MonotonicClock.now - before >= 20_000_000)
    try write([1], to: other)
    try expectEqual(quiet.wait(for: [.readable, .writable], timeout: testTimeout), [.readable, .writable])
  }

  @Test func nonblockingCallsReturnNilInsteadOfBlocking() throws {
    let (client, server) = try pairOfSockets()
    try client.setNonblocking(true)
    var space = [UInt8](repeating: 0, count: 1 << 20)
    try expectEqual(space.withUnsafeMutableBytes { try client.read(into: $0) }, nil)
    var written = 0
    while let count = try space.withUnsafeBytes({ try client.write($0) }) { written += count }
    var received = 0
    while received < written { received += try space.withUnsafeMutableBytes { try server.read(into: $0) } ?? 0 }
    expectEqual(received, written)
  }

  @Test func writeAllTimesOutWithoutProgress() throws {
    let (client, server) = try pairOfSockets()
    try client.setNonblocking(true)
    let much = [UInt8](repeating: 7, count: 8 << 20)
    let error = #expect(throws: SystemError.self) {
      try much.withUnsafeBytes { try client.writeAll($0, timeout: .milliseconds(20)) }
    }
    expectEqual(error?.code, ETIMEDOUT)
    withExtendedLifetime(server) {}
  }

  @Test func writeToClosedPeerThrowsInsteadOfRaisingASignal() throws {
    let (client, peer) = try pairOfSockets()
    // Closing it would not end the connection as long as a child process of another test has a copy.
    peer.shutDown(.reading)
    let error = #expect(throws: SystemError.self) { try write([1], to: client) }
    expectEqual(error?.code, EPIPE)
  }

  @Test func errorOfConnectNamesThePathAndTheNextStep() throws {
    let path = directory.file("absent")
    let error = #expect(throws: SystemError.self) { try UnixStream.connect(path: path) }
    expectEqual(error?.code, ENOENT)
    expectEqual(
      error?.description,
      "cannot connect to \(path): no such file or directory; "
        + "start feedd or pass its socket with --socket")
    try SmallFile.replace(path, with: [])
    expectEqual(#expect(throws: SystemError.self) { try UnixStream.connect(path: path) }?.code, ENOTSOCK)
  }

  @Test func connectTimesOutWhileTheQueueIsFull() throws {
    let number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    let listener = Descriptor(owning: number)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let path = directory.file("full")
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let bound = withUnsafePointer(to: address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener.rawValue, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try require(bound == 0 && listen(listener.rawValue, 0) == 0)
    let first = try UnixStream.connect(path: path)
    let error = #expect(throws: SystemError.self) { try UnixStream.connect(path: path, timeout: .milliseconds(30)) }
    expectEqual(error?.code, ETIMEDOUT)
    withExtendedLifetime(first) {}
  }

  @Test("a name is that of an account as a whole, not up to a zero byte") func accounts() {
    for (name, number) in [("root", UInt32?(0)), ("root\0x", nil), ("", nil)] {
      expectEqual(SystemAccounts.user(named: name), number, "\(name)")
      expectEqual(SystemAccounts.group(named: name)?.gid, number, "\(name)")
    }
  }

  func pairOfSockets() throws -> (UnixStream, UnixStream) {
    var ends: [Int32] = [-1, -1]
    guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
      throw TestFailure("socketpair: errno \(errno)")
    }
    return (UnixStream(owning: Descriptor(owning: ends[0])), UnixStream(owning: Descriptor(owning: ends[1])))
  }
}
