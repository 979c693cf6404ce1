import FeedSystem
import Glibc
import TestSupport
import Testing

@Suite("Stopping feedd")
struct EndingTests {
  @Test(arguments: [SIGTERM, SIGINT]) func everyClientReceivesBye(signal: Int32) throws {
    let daemon = try DaemonProcess()
    let clients = try (0..<20).map { _ in try daemon.connect() }
    for client in clients { try client.ping(1) }
    daemon.process.signal(signal)
    try daemon.notify.wait(for: "STOPPING=1", orEndOf: daemon.process)
    for client in clients {
      let frames = try client.receiveToEnd()
      expectEqual(frames.count, 1)
      let bye = try JSONValue(frames.first)
      expect(bye["method"].string == "bye" && bye["params"]["reason"].string == "shutdown")
    }
    try expectEqual(daemon.process.waitForExit(), 0)
    expect(access(daemon.socketPath, F_OK) != 0)
    expect(access("\(daemon.socketPath).lock", F_OK) != 0)
    expect(daemon.log.contains("\(SignalQueue.name(signal)) from pid \(getpid())"))
    expect(daemon.log.contains("notice: ended\n"))
  }

  /// A client in the backlog of the socket when the signal arrives receives `bye` too.
  @Test func clientThatJustConnectedReceivesBye() throws {
    for _ in 0..<20 {
      let daemon = try DaemonProcess()
      let client = try daemon.connect()
      daemon.process.signal(SIGTERM)
      try expectEqual(JSONValue(client.receiveToEnd().last)["method"].string, "bye")
      try expectEqual(daemon.process.waitForExit(), 0)
    }
  }

  /// Answers that exceed the socket's buffer and are read only after the signal all arrive; `bye` is the last frame.
  @Test func queuedAnswersAreWrittenBeforeBye() throws {
    let daemon = try DaemonProcess(["--max-queue", "64M"])
    let client = try daemon.connect()
    let count = 20_000
    let request = RawClient.frame(Array("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}".utf8))
    let other = try daemon.connect()
    for _ in 0..<20 { try client.sendBytes(request.repeated(count / 20)) }
    func requests() throws -> [Int] {
      try other.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"clients\"}")
      return try other.receiveJSON()["result"]["clients"].elements.compactMap { $0["requests"].int }
    }
    while try !requests().contains(count) {}
    daemon.process.signal(SIGTERM)
    try daemon.notify.wait(for: "STOPPING=1", orEndOf: daemon.process)
    let frames = try client.receiveToEnd()
    expectEqual(frames.count, count + 1)
    try expectEqual(JSONValue(frames.last)["method"].string, "bye")
    try expectEqual(daemon.process.waitForExit(), 0)
  }

  @Test func clientThatNeverReadsIsClosedAfterTheTimeout() throws {
    let daemon = try DaemonProcess(["--drain-timeout", "50ms", "--max-queue", "64M"])
    let client = try connectWithoutReading(daemon)
    try expectEqual(daemon.stop(), 0)
    expect(daemon.log.contains("ended; 1 connection did not read the last frame in time"))
    withExtendedLifetime(client) {}
  }

  /// A client that does not read 20,000 answers.
  private func connectWithoutReading(_ daemon: DaemonProcess) throws -> RawClient {
    let client = try daemon.connect()
    let request = RawClient.frame(Array("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}".utf8))
    for _ in 0..<20 { try client.sendBytes(request.repeated(1000)) }
    return client
  }

  /// Of a reload, the service manager would be told that the daemon is ready.
  @Test("a second signal stops at once, and a hang-up during the end reads nothing", arguments: [false, true])
  func secondSignal(hangsUp: Bool) throws {
    let daemon = try DaemonProcess(["--drain-timeout", "1h", "--max-queue", "64M"])
    let client = try connectWithoutReading(daemon)
    daemon.process.signal(SIGTERM)
    try daemon.notify.wait(for: "STOPPING=1", orEndOf: daemon.process)
    if hangsUp {
      daemon.process.signal(SIGHUP)
      try daemon.process.errors.wait(for: "nothing is read again, because the daemon ends")
    }
    daemon.process.signal(SIGINT)
    try expectEqual(daemon.process.waitForExit(), 0)
    expect(daemon.log.contains("again: ending at once"))
    expect(!daemon.log.contains("there is no configuration file to read again"))
    withExtendedLifetime(client) {}
  }

  @Test func hangUpWithoutConfigurationKeepsServing() throws {
    let daemon = try DaemonProcess()
    let client = try daemon.connect()
    daemon.process.signal(SIGHUP)
    try daemon.notify.wait(for: "RELOADING=1", orEndOf: daemon.process)
    try daemon.notify.wait(for: "READY=1", orEndOf: daemon.process)
    try daemon.process.errors.wait(for: "there is no configuration file to read again")
    try client.ping(1)
  }
}
