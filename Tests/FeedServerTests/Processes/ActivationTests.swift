import FeedSystem
import Glibc
import TestSupport
import Testing

/// Acts as the service manager: listens, starts the daemon with the socket as descriptor 3, and keeps the socket.
@Suite("Socket activation")
struct ActivationTests {
  /// `LISTEN_PID` must be the pid of the daemon: the shell sets it and then executes the daemon.
  static let script = "export LISTEN_PID=$$; exec \"$@\""

  func start(_ arguments: [String], passing: [Int32], _ variables: [String: String]) throws -> ChildProcess {
    try ChildProcess(
      "sh", ["-c", Self.script, "sh", try BuildProducts.program("feedd")] + arguments + ["--durability", "memory"],
      environment: variables,
      passing: passing)
  }

  @Test func clientThatConnectedBeforeTheStartIsServed() throws {
    let directory = try TemporaryDirectory()
    let listener = try UnixListener.bind(path: directory.file("s"))
    let notify = try NotifyReceiver("@\(directory.path)")
    let early = try RawClient(path: listener.path)
    try early.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}")

    let process = try start(
      ["--socket", "/elsewhere"], passing: [listener.descriptor],
      ["LISTEN_FDS": "1", "LISTEN_FDNAMES": "feedd.socket", "NOTIFY_SOCKET": notify.socketName])
    try notify.wait(for: "READY=1", orEndOf: process)
    try expectEqual(early.receiveJSON()["id"].int, 1)
    try RawClient(path: listener.path).ping(2)

    process.signal(SIGTERM)
    try notify.wait(for: "STOPPING=1", orEndOf: process)
    try expectEqual(early.receiveJSON()["method"].string, "bye")
    try expectEqual(process.waitForExit(), 0)
    expect(process.errors.text.contains("listens at \(listener.path) (handed over)"))
    expect(process.errors.text.contains("--socket /elsewhere is not used"))

    // The service manager keeps the socket, so the next daemon serves the waiting client.
    let next = try RawClient(path: listener.path)
    try next.send("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}")
    let second = try start([], passing: [listener.descriptor], ["LISTEN_FDS": "1"])
    try expectEqual(next.receiveJSON()["id"].int, 3)
    withExtendedLifetime(second) {}
  }

  @Test func descriptorThatIsNotAListeningStreamSocketIsRefused() throws {
    let directory = try TemporaryDirectory()
    let receiver = try NotifyReceiver(directory.file("datagrams"))
    let wrong = try start([], passing: [receiver.descriptor], ["LISTEN_FDS": "1"])
    try expectEqual(wrong.waitForExit(), 1)
    expect(wrong.errors.text.contains("it is not a stream socket; use ListenStream="))

    let nothing = try start([], passing: [], ["LISTEN_FDS": "1"])
    try expectEqual(nothing.waitForExit(), 1)
    expect(nothing.errors.text.contains("descriptor 3 is not an open socket"))

    let listener = try UnixListener.bind(path: directory.file("s"))
    let two = try start([], passing: [listener.descriptor, listener.descriptor], ["LISTEN_FDS": "2"])
    try expectEqual(two.waitForExit(), 1)
    expect(two.errors.text.contains("2 were handed over and one is wanted"))
  }

  @Test func variablesForAnotherProcessAreIgnored() throws {
    let daemon = try DaemonProcess(environment: ["LISTEN_FDS": "1", "LISTEN_PID": "1"])
    try daemon.connect().ping(1)
  }

  @Test func watchdogIsNotifiedWhileIdle() throws {
    let directory = try TemporaryDirectory()
    let notify = try NotifyReceiver(directory.file("n"))
    let process = try ChildProcess(
      BuildProducts.program("feedd"), ["--socket", directory.file("s"), "--durability", "memory"],
      environment: ["NOTIFY_SOCKET": notify.socketName, "WATCHDOG_USEC": "20000"])
    for _ in 0..<5 { try notify.wait(for: "WATCHDOG=1", orEndOf: process) }
  }
}
