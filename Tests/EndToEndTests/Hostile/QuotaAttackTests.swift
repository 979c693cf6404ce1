import FeedSystem
import Glibc
import TestSupport
import Testing

/// Many connections of one user that hold memory together: the daemon closes some, and what the others hold stays within the
/// quota of the user. Another user is answered meanwhile.
@Suite("Attacks on memory")
struct QuotaAttackTests {
  private static let quota = 32 << 20
  /// What the daemon may take besides the quota: what one turn and one request take.
  private static let margin = 96 << 20

  private static func list(_ count: Int, _ element: String) -> String {
    "[" + Array(repeating: element, count: count).joined(separator: ",") + "]"
  }

  /// Connections that ask for 4 MB each and do not read; 8 of them fill the quota.
  @Test func answersThatNobodyReads() throws {
    try attack(remaining: 0...8) { attacker in
      _ = try HostileTests.ask(attacker, "define", #"{"feed":"a","kind":"array"}"#)
      let row = "\"" + String(repeating: "x", count: 1 << 20) + "\""
      for _ in 0..<4 { _ = try HostileTests.ask(attacker, "insert", #"{"feed":"a","element":\#(row)}"#) }
    } each: { attacker in
      try attacker.send(#"{"jsonrpc":"2.0","id":1,"method":"snapshot","params":{"feed":"a"}}"#)
    }
  }

  /// Connections with 1,024 watches each, which take 256 KiB and more.
  @Test func watches() throws {
    try attack(quota: 4 << 20, remaining: 0...16) { attacker in
      for number in 0..<1024 {
        _ = try HostileTests.ask(attacker, "define", #"{"feed":"a\#(number)","kind":"single"}"#)
      }
    } each: { attacker in
      for number in 0..<1024 {
        // Without an id there is no answer that fills the socket.
        try attacker.send(#"{"jsonrpc":"2.0","method":"watch","params":{"feed":"a\#(number)","initial":false}}"#)
      }
    }
  }

  /// Updates of 4 MB, whose tokens take several times as much.
  @Test func longUpdates() throws {
    let elements = Self.list(200_000, #"{"id":1,"v":123456}"#)
    try attack(remaining: 0...8) { attacker in
      _ = try HostileTests.ask(attacker, "define", #"{"feed":"c","kind":"collection"}"#)
    } each: { attacker in
      try attacker.send(#"{"jsonrpc":"2.0","method":"update","params":{"feed":"c","elements":\#(elements)}}"#)
      // The beginning of another one, which stays.
      try attacker.sendBytes([0, 0x40, 0, 0] + Array(repeating: 0x20, count: 4 << 20 - 1))
    }
  }

  /// - Parameters:
  ///   - remaining: how many of 24 connections may remain when all have done their part.
  ///   - prepare: what one connection of the attacker does before.
  ///   - each: what each connection does.
  private func attack(
    quota: Int = quota, remaining: ClosedRange<Int>, prepare: (RawClient) throws -> Void,
    each: (RawClient) throws -> Void
  ) throws {
    let directory = try TemporaryDirectory()
    expectEqual(chmod(directory.path, 0o755), 0)
    let daemon = try DaemonProcess(["--max-queue-per-user", "\(quota)"], directory: directory)
    expectEqual(chmod(daemon.socketPath, 0o666), 0)
    let other = try daemon.connect()
    do { try prepare(daemon.connect()) }
    try expect(HostileTests.waitForConnections(1, other))
    let before = try Footprint(of: daemon.process.pid)
    var attackers = try (0..<24).map { _ in try OtherUser.connect(daemon.socketPath) }
    let attacked = try PingMeter.measure(daemon) {
      for attacker in attackers {
        // The daemon closes connections while they send.
        try? each(attacker)
      }
      // The other user and the meter are connected too.
      let isReached = try HostileTests.waitUntil {
        try remaining.contains(HostileTests.ask(other, "clients")["result"]["clients"].elements.count - 2)
      }
      expect(isReached)
    }
    try expect(HostileTests.waitUntil { try held(other).allSatisfy { $0 <= quota } })
    expect(Footprint.isBelow(attacked.memory, before.memory + quota + Self.margin))
    expect(attacked.longestPing < 10_000_000_000)
    attackers.removeAll()
    try expect(HostileTests.waitForConnections(1, other))
    try expectEqual(Footprint(of: daemon.process.pid).descriptors, before.descriptors)
    // Requests that the daemon has taken count until they are executed.
    try expect(HostileTests.waitUntil { try held(other).allSatisfy { $0 == 0 } })
  }

  /// What each user holds.
  private func held(_ other: RawClient) throws -> [Int] {
    try HostileTests.ask(other, "quotas")["result"]["users"].elements.map { try require($0["held"].int) }
  }
}
