import FeedSystem
import Glibc
import TestSupport
import Testing

/// Clients that misbehave at random, next to a client that behaves correctly.
@Suite("Disturbances")
struct DisturbanceTests {
  @Test(arguments: [1, 2, 3, 4] as [UInt64]) func misbehavingClientsDoNotAffectOthers(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let daemon = try DaemonProcess(["--max-queue", "4K", "--max-frame", "64K", "--log-level", "debug"])
    let good = try daemon.connect()
    var bad: [RawClient] = []
    for step in 0..<400 {
      if bad.count < 12 { bad.append(try daemon.connect()) }
      let index = Int.random(in: 0..<bad.count, using: &random)
      if !act(bad[index], &random) { bad.remove(at: index) }
      if step % 10 == 0 { try good.ping(step) }
    }
    bad = []
    try good.ping(1000)
    try expectEqual(daemon.stop(), 0, "seed \(seed)")
    let found = try require(daemon.log.firstMatch(of: /(\d+) turns of the loop/))
    let turns = try require(Int(found.1))
    expect(turns < 2000, "seed \(seed)")
  }

  /// Does something wrong; returns whether the client stays connected. The daemon may have closed the connection before.
  func act(_ client: RawClient, _ random: inout SeededRandom) -> Bool {
    switch Int.random(in: 0..<8, using: &random) {
    case 0:
      let count = Int.random(in: 1...200, using: &random)
      return send(client, (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) })
    case 1:
      let length = Int.random(in: 1...3000, using: &random)
      return send(client, RawClient.frame((0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }))
    case 2:
      return send(client, Array(RawClient.frame(FrameTests.ping).dropLast(Int.random(in: 1...40, using: &random))))
    case 3:
      client.stream.shutDown([.reading, .writing, .both].randomElement(using: &random) ?? .both)
      return true
    case 4: return send(client, RawClient.frame(FrameTests.ping).repeated(200))
    case 5:
      let open = String(repeating: "[", count: Int.random(in: 1...2000, using: &random))
      return send(client, RawClient.frame(Array(open.utf8)))
    case 6: return send(client, RawClient.frame(Array(WatcherTests.define.utf8) + [0xFF]))
    default: return false
    }
  }

  /// Sends as much as the socket accepts without waiting; returns false if the daemon has closed the connection.
  func send(_ client: RawClient, _ bytes: [UInt8]) -> Bool {
    do {
      try client.stream.setNonblocking(true)
      return try bytes.withUnsafeBytes { try client.stream.write($0) } != nil
    } catch {
      return false
    }
  }
}
