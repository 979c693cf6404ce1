import FeedSystem
import TestSupport
import Testing

/// What a client does harms that client at most. Each test runs the real daemon and compares what another client sees.
@Suite("Hostile clients")
struct HostileTests {
  private static let bins = (0..<200).map { #"{"name":"b\#($0)"}"# }.joined(separator: ",")

  private func ask(_ client: RawClient, _ method: String, _ params: String = "{}") throws -> String {
    try client.send(#"{"jsonrpc":"2.0","id":1,"method":"\#(method)","params":\#(params)}"#)
    return try client.receive() ?? ""
  }

  private func batch(_ count: Int) -> String {
    let request = #"{"jsonrpc":"2.0","id":1,"method":"describe","params":{"feed":"c"}}"#
    return "[" + Array(repeating: request, count: count).joined(separator: ",") + "]"
  }

  /// Asks until the daemon lists `count` connections; each question is answered while the attack is under way.
  private func waitForConnections(_ count: Int, _ client: RawClient) throws -> Bool {
    for _ in 0..<20_000 {
      let clients = try ask(client, "clients")
      if clients.components(of: "\"uid\":") == count { return true }
    }
    return false
  }

  @Test("the work of a batch ends when its peer is gone")
  func batchOfAPeerThatIsGone() throws {
    let daemon = try DaemonProcess()
    let other = try daemon.connect()
    _ = try ask(other, "define", #"{"feed":"c","kind":"collection","bins":[\#(Self.bins)]}"#)
    // Some 20 GB of answers, if all were made.
    var attacker: RawClient? = try daemon.connect()
    try attacker?.send(batch(200_000))
    #expect(try ask(other, "ping").contains("\"result\""))
    attacker = nil
    #expect(try waitForConnections(1, other))
  }

  @Test("batches under way count towards the quota of their user")
  func batchesCount() throws {
    let daemon = try DaemonProcess(["--max-queue-per-user", "8M"])
    let other = try daemon.connect()
    _ = try ask(other, "define", #"{"feed":"c","kind":"collection","bins":[\#(Self.bins)]}"#)
    let attackers = try (0..<3).map { _ in try daemon.connect() }
    for attacker in attackers { try attacker.send(batch(40_000)) }
    #expect(try waitForConnections(1, other))
    for attacker in attackers { #expect(try attacker.receiveToEnd().last?.contains("\"reason\":\"quota\"") == true) }
  }

  @Test("the smallest maxFrame holds the answer of hello")
  func smallestFrame() throws {
    let daemon = try DaemonProcess(["--max-frame", "4096"])
    #expect(try ask(daemon.connect(), "hello").contains("\"protocol\":1"))
    let refused = try ChildProcess(
      BuildProducts.program("feedd"), ["--socket", daemon.directory.file("other.sock"), "--max-frame", "1024"])
    #expect(try refused.waitForExit() == 2)
  }

  @Test("a definition is limited before it is decoded, and nothing changes")
  func largeDefinition() throws {
    let daemon = try DaemonProcess()
    let client = try daemon.connect()
    _ = try ask(client, "define", #"{"feed":"a","kind":"array"}"#)
    let fixed = (0..<20_000).map { "\"\($0)\":\"x\"" }.joined(separator: ",")
    let refused = try ask(
      client, "define",
      #"{"feed":"s","kind":"slots","contents":{"x":"a"},"pattern":["x"],"fixed":{\#(fixed)}}"#)
    #expect(refused.contains("-32007") && refused.contains("\"limit\":\"maxDefinitionEntries\""))
    let long = String(repeating: "x", count: 2 << 20)
    let longer = try ask(client, "define", #"{"feed":"s","kind":"array","type":"\#(long)"}"#)
    #expect(longer.contains("-32007") && longer.contains("\"limit\":\"maxDefinitionBytes\""))
    #expect(try ask(client, "describe", #"{"feed":"s"}"#).contains("-32000"))
  }
}

extension String {
  /// How often a text occurs.
  fileprivate func components(of text: String) -> Int {
    var count = 0
    var rest = self[...]
    while let range = rest.firstRange(of: text) {
      count += 1
      rest = rest[range.upperBound...]
    }
    return count
  }
}
