import FaultySockets
import FeedEngine
import FeedModel
import FeedSystem
import Glibc
import TestSupport
import Testing

@testable import FeedServer

@Suite("Sockets as a link")
struct SocketLinkTests {
  /// A listener, its path and the clock of its link.
  struct Place {
    let directory: TemporaryDirectory
    let path: String
    let clock = ServerClock(after: 0)

    init() throws {
      directory = try TemporaryDirectory()
      path = directory.file("s")
    }

    func makeLink() throws -> SocketLink {
      try SocketLink(UnixListener.bind(path: path), Log(threshold: .error, style: .timestamps))
    }

    /// Waits for events and returns them. Accepted connections are numbered from `number`.
    func events(_ link: inout SocketLink, number: Int = 0, milliseconds: Int32 = 10_000) throws -> [LinkEvent] {
      var (number, events) = (number, [LinkEvent]())
      _ = try link.wait(milliseconds: milliseconds, clock)
      while let event = link.nextEvent() {
        if case .accepted = event {
          link.assign(ConnectionID(rawValue: number))
          number += 1
        }
        events.append(event)
      }
      link.checkInvariants()
      return events
    }

    /// Connects a client; its connection gets this number.
    func connect(_ link: inout SocketLink, _ number: Int) throws -> UnixStream {
      let client = try UnixStream.connect(path: path)
      let events = try events(&link, number: number)
      guard events.count == 1, case .accepted(let peer) = events[0] else { throw TestFailure("\(events)") }
      expectEqual(peer.pid, getpid())
      return client
    }
  }

  private static let first = ConnectionID(rawValue: 0)
  private let place: Place

  init() throws { place = try Place() }

  private func read(_ link: inout SocketLink, _ id: ConnectionID, _ count: Int = 100) -> (ReadOutcome, [UInt8]) {
    var bytes = [UInt8](repeating: 0, count: count)
    let outcome = bytes.withUnsafeMutableBytes { link.read(id, into: $0) }
    if case .bytes(let count) = outcome { return (outcome, Array(bytes[..<count])) }
    return (outcome, [])
  }

  private func write(_ link: inout SocketLink, _ id: ConnectionID, _ parts: [[UInt8]]) -> WriteOutcome {
    let joined = parts.flatMap { $0 }
    return joined.withUnsafeBytes { bytes in
      var start = 0
      let slices = parts.map { part in
        defer { start += part.count }
        return UnsafeRawBufferPointer(rebasing: bytes[start..<(start + part.count)])
      }
      return slices.withUnsafeBufferPointer { link.write(id, $0) }
    }
  }

  private func send(_ client: UnixStream, _ bytes: [UInt8]) throws {
    try bytes.withUnsafeBytes { try client.writeAll($0) }
  }

  @Test("a connection is accepted, read, written and closed")
  func life() throws {
    var link = try place.makeLink()
    let client = try place.connect(&link, 0)
    expectEqual(link.count, 1)
    expectEqual(link.connections, [Self.first])
    try send(client, [1, 2, 3])
    try expectEqual(place.events(&link), [.readable(Self.first, hungUp: false)])
    expectEqual(read(&link, Self.first).1, [1, 2, 3])
    expectEqual(read(&link, Self.first).0, .wouldBlock)
    expectEqual(write(&link, Self.first, [[4], [5, 6]]), .bytes(3))
    var space = [UInt8](repeating: 0, count: 10)
    try expectEqual(space.withUnsafeMutableBytes { try client.read(into: $0) }, 3)
    expectEqual(space[..<3], [4, 5, 6])
    link.close(Self.first)
    expectEqual(link.count, 0)
    try expectEqual(space.withUnsafeMutableBytes { try client.read(into: $0) }, 0)
    expectEqual(read(&link, Self.first).0, .failed)
    expectEqual(write(&link, Self.first, [[1]]), .failed)
    link.close(Self.first)
    link.checkInvariants()
  }

  @Test("the end of the input is read after the bytes before it, even if the peer hung up")
  func end() throws {
    var link = try place.makeLink()
    let half = try place.connect(&link, 0)
    try send(half, [7])
    half.shutDown(.writing)
    try expectEqual(place.events(&link), [.readable(Self.first, hungUp: false)])
    expectEqual(read(&link, Self.first).1, [7])
    expectEqual(read(&link, Self.first).0, .end)
    half.shutDown(.reading)
    try expectEqual(place.events(&link), [.readable(Self.first, hungUp: true)])
    expectEqual(write(&link, Self.first, [[1]]), .failed)
  }

  @Test("of a connection that is not watched only the hang-up is reported, once")
  func unwatched() throws {
    var link = try place.makeLink()
    var client: UnixStream? = try place.connect(&link, 0)
    link.watch(Self.first, reading: false, writing: false)
    try send(try require(client), [7])
    try expectEqual(place.events(&link, milliseconds: 0), [])
    client = nil
    // Child processes of other tests may have copies of the descriptor for a moment.
    try expectEqual(place.events(&link), [.hungUp(Self.first)])
    try expectEqual(place.events(&link, milliseconds: 0), [])
    link.watch(Self.first, reading: true, writing: false)
    try expectEqual(place.events(&link), [.readable(Self.first, hungUp: true)])
    expectEqual(read(&link, Self.first).1, [7])
  }

  @Test("a connection that is closed has no more events, although a child process has a copy of its descriptor")
  func copiedDescriptor() throws {
    var link = try place.makeLink()
    let client = try place.connect(&link, 0)
    let accepted = Self.acceptedDescriptors(at: place.path)
    try require(accepted.count == 1)
    let copy = dup(accepted[0])
    defer { Glibc.close(copy) }
    link.close(Self.first)
    client.shutDown(.both)
    // The next connection may get the memory of the closed one.
    let others = try (1...3).map { try place.connect(&link, $0) }
    try expectEqual(place.events(&link, milliseconds: 0), [])
    withExtendedLifetime(others) {}
  }

  /// The descriptors of this process for the daemon's ends of connections.
  private static func acceptedDescriptors(at path: String) -> [Int32] {
    (0..<4096).filter { number in
      var address = sockaddr_un()
      var length = socklen_t(MemoryLayout<sockaddr_un>.size)
      let isSocket = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(number, $0, &length) == 0 }
      }
      guard isSocket, address.sun_family == AF_UNIX else { return false }
      let name = withUnsafeBytes(of: &address.sun_path) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      var (isListening, size): (Int32, socklen_t) = (1, 4)
      getsockopt(number, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &size)
      return name == path && isListening == 0
    }
  }

  @Test("a full socket accepts some of the bytes and is reported when it accepts more")
  func backpressure() throws {
    var link = try place.makeLink()
    let client = try place.connect(&link, 0)
    let large = [UInt8](repeating: 9, count: 4 << 20)
    guard case .bytes(let count) = write(&link, Self.first, [large]) else { throw TestFailure("nothing was written") }
    expect(count < large.count)
    expectEqual(write(&link, Self.first, [large]), .wouldBlock)
    link.watch(Self.first, reading: true, writing: true)
    try expectEqual(place.events(&link, milliseconds: 0), [])
    var left = count
    var space = [UInt8](repeating: 0, count: 64 << 10)
    while left > 0 { left -= try space.withUnsafeMutableBytes { try client.read(into: $0) } ?? 0 }
    try expectEqual(place.events(&link), [.writable(Self.first)])
    try send(client, [1])
    try expectEqual(place.events(&link), [.writable(Self.first), .readable(Self.first, hungUp: false)])
    link.watch(Self.first, reading: true, writing: false)
    try expectEqual(place.events(&link), [.readable(Self.first, hungUp: false)])
  }

  @Test("a socket for long frames holds more of them")
  func roomForLongFrames() throws {
    var link = try place.makeLink()
    let clients = [try place.connect(&link, 0), try place.connect(&link, 1)]
    link.makeRoom(Self.first)
    let frame = [UInt8](repeating: 9, count: 60_000)
    let held = clients.indices.map { client in
      var count = 0
      while case .bytes(frame.count) = write(&link, ConnectionID(rawValue: client), [frame]) { count += 1 }
      return count
    }
    expect(held[0] > held[1])
  }

  @Test("an event of a connection that was closed in the same turn is dropped, even if its number is reused")
  func staleEvents() throws {
    var link = try place.makeLink()
    let clients = [try place.connect(&link, 0), try place.connect(&link, 1)]
    for client in clients { try send(client, [1]) }
    _ = try link.wait(milliseconds: 10_000, place.clock)
    guard case .readable(let id, _)? = link.nextEvent() else { throw TestFailure("no event") }
    link.close(ConnectionID(rawValue: 1 - id.rawValue))
    expectEqual(link.nextEvent(), nil)
    link.checkInvariants()
    link.close(id)
    let again = try UnixStream.connect(path: place.path)
    try expectEqual(place.events(&link, number: 1).count, 1)
    try send(again, [2])
    try expectEqual(place.events(&link), [.readable(ConnectionID(rawValue: 1), hungUp: false)])
    withExtendedLifetime(clients) {}
  }

  @Test("many connections open and close in random order, and each reads its own bytes")
  func many() throws {
    var link = try place.makeLink()
    var random = SeededRandom(seed: 7)
    var clients: [Int: UnixStream] = [:]
    for step in 0..<600 {
      let number = Int.random(in: 0..<200, using: &random)
      if clients[number] != nil {
        link.close(ConnectionID(rawValue: number))
        clients[number] = nil
      } else {
        let client = try place.connect(&link, number)
        clients[number] = client
        try send(client, [UInt8(step & 255)])
        let id = ConnectionID(rawValue: number)
        try expectEqual(place.events(&link), [.readable(id, hungUp: false)])
        expectEqual(read(&link, id).1, [UInt8(step & 255)])
      }
      expectEqual(link.count, clients.count)
    }
    link.checkInvariants()
  }

  @Test("other descriptors wake the loop by name")
  func wakes() throws {
    var link = try place.makeLink()
    let wakeUp = try WakeUp()
    try link.add(wakeUp.descriptor, as: .sourceReports)
    try expectEqual(link.wait(milliseconds: 0, place.clock), [])
    wakeUp.signal()
    try expectEqual(link.wait(milliseconds: 10_000, place.clock), .sourceReports)
    expectEqual(link.nextEvent(), nil)
  }

  @Test("a connection that cannot be registered is gone", arguments: [false, true])
  func refusedRegistration(isNew: Bool) throws {
    var link = try place.makeLink()
    defer { faulty_sockets_refuse(0) }
    let client: UnixStream
    if isNew {
      faulty_sockets_refuse(1)
      client = try UnixStream.connect(path: place.path)
      try expectEqual(place.events(&link).dropFirst(), [.gone(Self.first)])
    } else {
      client = try place.connect(&link, 0)
      faulty_sockets_refuse(1)
      link.watch(Self.first, reading: true, writing: true)
      // The loop does not sleep before it knows.
      try expectEqual(place.events(&link, milliseconds: -1), [.gone(Self.first)])
    }
    link.close(Self.first)
    var byte: [UInt8] = [0]
    try expectEqual(byte.withUnsafeMutableBytes { try client.read(into: $0) }, 0)
    expectEqual(link.count, 0)
  }

  @Test("after the end of listening, waiting connections are accepted and later ones refused")
  func endListening() throws {
    var link = try place.makeLink()
    let client = try UnixStream.connect(path: place.path)
    // The listener ends although child processes of other tests may have copies of it for a moment.
    var events: [LinkEvent] = []
    try faulty_sockets().during {
      link.endListening()
      events = try place.events(&link, milliseconds: 0)
    }
    expectEqual(events.count, 1)
    #expect(throws: SystemError.self) { try UnixStream.connect(path: place.path) }
    withExtendedLifetime(client) {}
  }
}
