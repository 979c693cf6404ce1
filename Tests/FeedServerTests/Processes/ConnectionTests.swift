import FeedSystem
import Glibc
import TestSupport
import Testing

@Suite("Connections")
struct ConnectionTests {
  @Test func manyConnectionsAreServed() throws {
    let daemon = try DaemonProcess()
    let clients = try (0..<300).map { _ in try daemon.connect() }
    for round in 0..<3 {
      for (index, client) in clients.enumerated() {
        try client.send("{\"jsonrpc\":\"2.0\",\"id\":\(round * 1000 + index),\"method\":\"ping\"}")
      }
      for (index, client) in clients.enumerated() {
        try expectEqual(client.receiveJSON()["id"].int, round * 1000 + index)
      }
    }
  }

  /// Numbers of connections are reused while another connection stays open.
  @Test func connectionNumbersAreReused() throws {
    let daemon = try DaemonProcess(["--max-connections", "20"])
    let constant = try daemon.connect()
    for round in 0..<200 {
      let clients = try (0..<3).map { _ in try daemon.connect() }
      for client in clients { try client.ping(round) }
      try constant.ping(round)
    }
  }

  /// A client that ended its input receives all its answers, then the end of the stream.
  @Test func halfClosedConnectionReceivesItsAnswers() throws {
    let daemon = try DaemonProcess()
    let client = try daemon.connect()
    for id in 0..<100 { try client.send("{\"jsonrpc\":\"2.0\",\"id\":\(id),\"method\":\"ping\"}") }
    client.stream.shutDown(.writing)
    let answers = try client.receiveToEnd()
    expectEqual(answers.count, 100)
    try expectEqual(JSONValue(answers.last)["id"].int, 99)
  }

  /// Requests after a long answer wait in the daemon and are executed without new input.
  @Test func requestsAfterALongAnswerAreExecuted() throws {
    let daemon = try DaemonProcess()
    let client = try daemon.connect()
    try client.send(WatcherTests.define)
    let elements = (0..<20_000).map { "{\"id\":\($0)}" }.joined(separator: ",")
    try client.send(
      "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"set\",\"params\":{\"feed\":\"f\",\"elements\":[\(elements)]}}")
    _ = try client.receive(having: "\"id\":2")
    var bytes: [UInt8] = []
    for id in 3..<23 {
      let method = id % 2 == 0 ? "ping" : "verify"
      let request = "{\"jsonrpc\":\"2.0\",\"id\":\(id),\"method\":\"\(method)\",\"params\":{\"feed\":\"f\"}}"
      bytes += RawClient.frame(Array(request.utf8))
    }
    try client.sendBytes(bytes)
    for id in 3..<23 { try expectEqual(client.receiveJSON()["id"].int, id) }
  }

  @Test func stoppedReaderDoesNotDelayOthers() throws {
    let daemon = try DaemonProcess(["--max-queue", "4K", "--log-level", "debug"])
    let stopped = try daemon.connect()
    try stopped.stream.setNonblocking(true)
    // Requests are sent until the daemon stops reading them, because its answers are not read.
    let request = RawClient.frame(Array("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}".utf8))
    let many = request.repeated(1000)
    var unsent = many[...]
    while try stopped.stream.wait(for: .writable, timeout: .milliseconds(100)) == .writable {
      let count = try Array(unsent).withUnsafeBytes { try stopped.stream.write($0) } ?? 0
      unsent = unsent.dropFirst(count)
      if unsent.isEmpty { unsent = many[...] }
    }
    let other = try daemon.connect()
    for id in 0..<100 { try other.ping(id) }
    // Once the client reads again, all requests are answered.
    try stopped.stream.setNonblocking(false)
    stopped.stream.shutDown(.writing)
    for frame in try stopped.receiveToEnd() { try expectEqual(JSONValue(frame)["id"].int, 1) }
    try daemon.stop()
    try expectFewTurns(daemon, 2000)
  }

  /// The event loop sleeps with incomplete frames, ended inputs and hung-up connections.
  @Test func idleLoopDoesNotSpin() throws {
    let daemon = try DaemonProcess(["--log-level", "debug"])
    let half = try daemon.connect()
    try half.sendBytes([0, 0, 1, 0, 65])
    let halfClosed = try daemon.connect()
    halfClosed.stream.shutDown(.reading)
    let deaf = try daemon.connect()
    try deaf.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}")
    deaf.stream.shutDown(.reading)
    do {
      // Disconnected with unread answers.
      _ = try daemon.connect()
      try daemon.connect().sendBytes(RawClient.frame(FrameTests.ping) + [0, 0])
    }
    let other = try daemon.connect()
    for id in 0..<50 { try other.ping(id) }
    // No event follows: a spinning loop would make thousands of turns in this time.
    try expect(other.stream.wait(for: .readable, timeout: .milliseconds(100)).isEmpty)
    try daemon.stop()
    try expectFewTurns(daemon, 200)
    withExtendedLifetime((half, halfClosed, deaf)) {}
  }

  @Test func connectionsAreServedWithoutFreeDescriptors() throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("s")
    let notify = try NotifyReceiver(directory.file("notify"))
    let process = try ChildProcess(
      "sh",
      [
        "-c", "ulimit -n 24; exec \"$@\"", "sh", try BuildProducts.program("feedd"), "--socket", path, "--durability",
        "memory", "--reserved-connections", "100",
      ], environment: ["NOTIFY_SOCKET": notify.socketName])
    try process.errors.wait(for: "listens at")
    try notify.wait(for: "READY=1", orEndOf: process)
    expect(
      process.errors.text.contains("only 24 files may be open and 1,024 connections want 1,156: maxConnections is 1;"))
    var served: [RawClient] = []
    var refused = 0
    for id in 0..<40 {
      let client = try RawClient(path: path)
      do {
        try client.ping(id)
        served.append(client)
      } catch {
        refused += 1
      }
    }
    expect(served.count >= 10 && served.count < 24)
    expectEqual(refused, 40 - served.count)
    let turnedAway = try RawClient(path: path).receiveToEnd()
    expectEqual(turnedAway.count, 1)
    try expectEqual(JSONValue(turnedAway.first)["params"]["reason"].string, "descriptors")
    for client in served { try client.ping(99) }
    // The service manager would end a service that it does not hear from.
    process.signal(SIGHUP)
    try notify.wait(for: "READY=1", orEndOf: process)
    // One descriptor is free again.
    served.removeLast()
    try served[0].ping(100)
    try RawClient(path: path).ping(1)
    process.signal(SIGTERM)
    try expectEqual(process.waitForExit(), 0)
    expect(process.errors.text.contains("too many open files; turned away 1 client"))
  }

  func expectFewTurns(_ daemon: DaemonProcess, _ bound: Int) throws {
    let found = try require(daemon.log.firstMatch(of: /(\d+) turns of the loop/))
    let turns = try require(Int(found.1))
    expect(turns < bound)
  }
}
