import FeedSQLite
import FeedSystem
import Foundation
import Glibc
import TestSupport
import Testing

@testable import FeedServer

/// Signals that arrive before feedd serves clients.
@Suite("Stopping feedd while it starts")
struct StopDuringStartTests {
  private let directory: TemporaryDirectory
  private var state: String { directory.file("state") }
  private var socket: String { directory.file("feedd.sock") }

  init() throws { directory = try TemporaryDirectory() }

  /// Creates a state with a log to execute, and returns its epoch and digest.
  private func fill(endingWith signal: Int32) throws -> [JSONValue] {
    let daemon = try DaemonProcess(["--state", state], directory: directory)
    let client = try daemon.connect()
    _ = try ask(client, "define", #"{"feed":"f","kind":"collection"}"#)
    for number in 0..<100 { _ = try ask(client, "update", #"{"feed":"f","element":{"id":\#(number)}}"#) }
    let content = try content(of: daemon)
    try daemon.stop(signal: signal)
    return content
  }

  private func ask(_ client: RawClient, _ method: String, _ params: String) throws -> JSONValue {
    try client.send(#"{"jsonrpc":"2.0","id":1,"method":"\#(method)","params":\#(params)}"#)
    return try client.receiveJSON()
  }

  /// The epoch and the digest of the feed.
  private func content(of daemon: DaemonProcess) throws -> [JSONValue] {
    let client = try daemon.connect()
    let hello = try ask(client, "hello", #"{"protocol":1}"#)
    return [try hello["result"].member("epoch"), try ask(client, "verify", #"{"feed":"f"}"#)]
  }

  /// Starts feedd, and returns when its socket exists: signals are handled from then on.
  private func startUntilSocketExists() throws -> ChildProcess {
    let events = try FileEvents()
    try expect(events.watch(directory: directory.path, for: .names) != nil)
    let process = try ChildProcess(BuildProducts.program("feedd"), ["--socket", socket, "--state", state])
    var exists = false
    while !exists {
      _ = try Readiness.readable.wait(on: events.descriptor, timeout: testTimeout)
      events.forEach { if $0.name == "feedd.sock" { exists = true } }
    }
    return process
  }

  @Test("a signal ends a start that waits, and its files are removed", arguments: [SIGTERM, SIGINT])
  func blockedStart(signal: Int32) throws {
    // The conversion of an older schema waits while another program reads the database.
    let corpus =
      FilePath.directory(of: FilePath.directory(of: FilePath.directory(of: #filePath)))
      + "/FeedStorageTests/Corpus/schema2-both"
    try PrivateDirectory.make(state)
    for end in ["", "-wal", "-mark"] {
      try SmallFile.replace("\(state)/feedd.sqlite\(end)", with: try SmallFile.read("\(corpus)/feedd.sqlite\(end)"))
    }
    let database = try Database(path: "\(state)/feedd.sqlite", access: .readWrite)
    try database.execute("BEGIN")
    try expect(database.integer("SELECT count(*) FROM journal") ?? 0 > 0)
    let events = try FileEvents()
    try expect(events.watch(directory: state, for: .names) != nil)
    let process = try startUntilSocketExists()
    // From then on the start creates no file until it waits.
    while FileLock.holder("\(state)/feedd.lock") != process.pid {
      _ = try Readiness.readable.wait(on: events.descriptor, timeout: testTimeout)
      events.forEach { _ in }
    }
    process.signal(signal)
    try expectEqual(process.waitForExit(), 0, "\(process.errors.text)")
    expect(process.errors.text.contains("\(SignalQueue.name(signal)) from pid \(getpid())"))
    expect(process.errors.text.contains("ended during the start"))
    for path in [socket, "\(socket).lock", "\(state)/feedd.lock"] { expect(access(path, F_OK) != 0, "\(path)") }
    database.rollBack()
    let daemon = try DaemonProcess(["--state", state], directory: directory)
    let client = try daemon.connect()
    try expect(ask(client, "verify", #"{"feed":"list"}"#).has("result"))
  }

  @Test("a signal during recovery loses nothing and keeps the epoch")
  func recovery() throws {
    let before = try fill(endingWith: SIGKILL)
    for _ in 0..<3 {
      let process = try startUntilSocketExists()
      process.signal(SIGTERM)
      try expectEqual(process.waitForExit(), 0, "\(process.errors.text)")
    }
    let daemon = try DaemonProcess(["--state", state], directory: directory)
    try expectEqual(content(of: daemon), before)
  }

  @Test("signals that the guard did not take stay for the event loop")
  func stoppedGuard() throws {
    let arrival = try WakeUp()
    let guardian = try StartGuard(arrival.descriptor, next: { "SIGTERM" }, end: { _ in Issue.record("ended") })
    guardian.stop()
    arrival.signal()
    guardian.stop()
  }
}
