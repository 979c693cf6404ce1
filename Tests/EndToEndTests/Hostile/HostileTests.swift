import FeedSystem
import TestSupport
import Testing

/// A hostile client harms at most itself. Each test attacks a real daemon and checks the answers to another client.
@Suite("Hostile clients")
struct HostileTests {
  private static let bins = (0..<200).map { #"{"name":"b\#($0)"}"# }.joined(separator: ",")

  static func ask(_ client: RawClient, _ method: String, _ params: String = "{}") throws -> JSONValue {
    try client.send(#"{"jsonrpc":"2.0","id":1,"method":"\#(method)","params":\#(params)}"#)
    return try JSONValue(client.receive())
  }

  /// Asks, and skips the notifications that arrive before the answer.
  static func answer(_ client: RawClient, _ method: String, _ params: String = "{}") throws -> JSONValue {
    try client.send(#"{"jsonrpc":"2.0","id":1,"method":"\#(method)","params":\#(params)}"#)
    while true {
      let value = try JSONValue(client.receive())
      if !value.has("method") { return value }
    }
  }

  private func ask(_ client: RawClient, _ method: String, _ params: String = "{}") throws -> JSONValue {
    try Self.ask(client, method, params)
  }

  private func waitForConnections(_ count: Int, _ client: RawClient) throws -> Bool {
    try Self.waitForConnections(count, client)
  }

  private func batch(_ count: Int) -> String {
    let request = #"{"jsonrpc":"2.0","id":1,"method":"describe","params":{"feed":"c"}}"#
    return "[" + Array(repeating: request, count: count).joined(separator: ",") + "]"
  }

  /// Asks until the daemon lists `count` connections. Each request is answered during the attack.
  static func waitForConnections(_ count: Int, _ client: RawClient) throws -> Bool {
    try waitUntil { try ask(client, "clients")["result"]["clients"].elements.count == count }
  }

  /// Asks again and again until a condition holds. Returns whether it does in time.
  static func waitUntil(_ condition: () throws -> Bool) throws -> Bool {
    let end = ContinuousClock.now + testTimeout
    while ContinuousClock.now < end {
      if try condition() { return true }
    }
    return false
  }

  @Test("a batch is cancelled when its peer disconnects")
  func batchOfADisconnectedPeer() throws {
    let daemon = try DaemonProcess()
    let other = try daemon.connect()
    _ = try ask(other, "define", #"{"feed":"c","kind":"collection","bins":[\#(Self.bins)]}"#)
    // All answers together would take about 20 GB.
    var attacker: RawClient? = try daemon.connect()
    try attacker?.send(batch(200_000))
    try expect(ask(other, "ping").has("result"))
    attacker = nil
    try expect(waitForConnections(1, other))
  }

  @Test("unfinished batches count towards the quota of their user")
  func batchesCount() throws {
    let daemon = try DaemonProcess(["--max-queue-per-user", "8M"])
    let other = try daemon.connect()
    _ = try ask(other, "define", #"{"feed":"c","kind":"collection","bins":[\#(Self.bins)]}"#)
    let before = try Footprint(of: daemon.process.pid)
    let attackers = try (0..<3).map { _ in try daemon.connect() }
    let attacked = try PingMeter.measure(daemon) {
      for attacker in attackers { try attacker.send(batch(40_000)) }
      try expect(waitForConnections(2, other))
    }
    try expect(waitForConnections(1, other))
    expect(Footprint.isBelow(attacked.memory, before.memory + (64 << 20)))
    try expectEqual(Footprint(of: daemon.process.pid).descriptors, before.descriptors)
    for attacker in attackers {
      try expectEqual(JSONValue(attacker.receiveToEnd().last)["params"]["reason"].string, "quota")
    }
  }

  @Test("memory of long requests is returned to the system when they are discarded")
  func memoryIsReturned() throws {
    let daemon = try DaemonProcess(["--max-queue-per-user", "128M"])
    let other = try daemon.connect()
    let before = try Footprint(of: daemon.process.pid)
    // Frames that end grow the heap, and small allocations in between would keep it.
    for _ in 0..<4 {
      var attackers = try (0..<6).map { _ in try daemon.connect() }
      for attacker in attackers { try attacker.send(batch(60_000)) }
      try expect(ask(other, "ping").has("result"))
      attackers.removeAll()
      try expect(waitForConnections(1, other))
    }
    expect(Footprint.isBelow(try Footprint(of: daemon.process.pid).memory, before.memory + (32 << 20)))
  }

  @Test("the answer to hello fits the smallest maxFrame")
  func smallestFrame() throws {
    let daemon = try DaemonProcess(["--max-frame", "4096"])
    try expectEqual(ask(daemon.connect(), "hello")["result"]["protocol"].int, 1)
    let refused = try ChildProcess(
      BuildProducts.program("feedd"), ["--socket", daemon.directory.file("other.sock"), "--max-frame", "1024"])
    try expectEqual(refused.waitForExit(), 2)
  }

  @Test("a definition that exceeds a limit is refused before it is decoded")
  func largeDefinition() throws {
    let daemon = try DaemonProcess()
    let client = try daemon.connect()
    _ = try ask(client, "define", #"{"feed":"a","kind":"array"}"#)
    let fixed = (0..<20_000).map { "\"\($0)\":\"x\"" }.joined(separator: ",")
    let refused = try ask(
      client, "define",
      #"{"feed":"s","kind":"slots","contents":{"x":"a"},"pattern":["x"],"fixed":{\#(fixed)}}"#)
    expectEqual(refused["error"]["code"].int, -32007)
    expectEqual(refused["error"]["data"]["limit"].string, "maxDefinitionEntries")
    let long = String(repeating: "x", count: 2 << 20)
    let longer = try ask(client, "define", #"{"feed":"s","kind":"array","type":"\#(long)"}"#)
    expectEqual(longer["error"]["code"].int, -32007)
    expectEqual(longer["error"]["data"]["limit"].string, "maxDefinitionBytes")
    try expectEqual(ask(client, "describe", #"{"feed":"s"}"#)["error"]["code"].int, -32000)
  }
}
