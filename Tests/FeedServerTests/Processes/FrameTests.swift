import FeedSystem
import TestSupport
import Testing

@Suite("Frames on the socket")
struct FrameTests {
  static let ping = Array("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}".utf8)

  @Test func frameArrivesByteByByte() throws {
    let daemon = try DaemonProcess()
    let client = try daemon.connect()
    for byte in RawClient.frame(Self.ping) { try client.sendBytes([byte]) }
    try expectEqual(client.receiveJSON()["id"].int, 7)
  }

  /// Frames of sizes around those of the buffers, split at random positions.
  @Test(arguments: [1, 2, 3] as [UInt64]) func framesAreSplitAnywhere(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let daemon = try DaemonProcess()
    let client = try daemon.connect()
    let sizes = [0, 10, 4000, 4096, 5000, 65_536, 262_000, 262_144, 300_000, 1 << 20, 50]
    var bytes: [UInt8] = []
    for (id, size) in sizes.enumerated() {
      bytes += RawClient.frame(Array(RawClient.longPing(id, size: size).utf8))
    }
    var answered = 0
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = min(rest.count, Int.random(in: 1...(Bool.random(using: &random) ? 100 : 200_000), using: &random))
      try client.sendBytes(Array(rest.prefix(count)))
      rest = rest.dropFirst(count)
    }
    while answered < sizes.count {
      try expectEqual(client.receiveJSON()["id"].int, answered, "seed \(seed)")
      answered += 1
    }
  }

  @Test(arguments: [[0, 0, 0, 0], [255, 255, 255, 255], [1, 0, 0, 1], [0x47, 0x45, 0x54, 0x20]] as [[UInt8]])
  func invalidLengthIsAnsweredWithAnErrorAndBye(header: [UInt8]) throws {
    let daemon = try DaemonProcess()
    let other = try daemon.connect()
    try other.ping(1)
    let client = try daemon.connect()
    try client.sendBytes(header + Array(repeating: 65, count: 100_000))
    let frames = try client.receiveToEnd()
    expectEqual(frames.count, 2)
    let answer = try JSONValue(frames.first)
    expectEqual(answer["error"]["code"].int, -32600)
    expect(answer.has("id") && answer["id"] == "null")
    try expectEqual(JSONValue(frames.last)["method"].string, "bye")
    try other.ping(2)
  }

  /// A frame of exactly the limit is accepted; one byte more is refused.
  @Test func frameLimitIsExact() throws {
    let daemon = try DaemonProcess(["--max-frame", "4K"])
    let fits = RawClient.longPing(1, size: 4096 - RawClient.longPing(1, size: 0).utf8.count)
    let client = try daemon.connect()
    try client.send(fits)
    try expectEqual(client.receiveJSON()["id"].int, 1)
    try client.send(RawClient.longPing(1, size: 4097 - RawClient.longPing(1, size: 0).utf8.count))
    try expectEqual(JSONValue(client.receiveToEnd().last)["method"].string, "bye")
  }

  @Test func incompleteFrameTimesOut() throws {
    let daemon = try DaemonProcess(["--frame-timeout", "1s"])
    let client = try daemon.connect()
    try client.sendBytes([0, 0, 1, 0, 65, 66])
    let frames = try client.receiveToEnd()
    expectEqual(frames.count, 1)
    let bye = try JSONValue(frames.first)
    expect(bye["method"].string == "bye" && bye["params"]["reason"].string == "frameTimeout")
  }

  @Test func endWithinAFrameDoesNotAffectOthers() throws {
    let daemon = try DaemonProcess()
    let other = try daemon.connect()
    for length in 1..<8 {
      let client = try daemon.connect()
      try client.sendBytes(Array(RawClient.frame(Self.ping).prefix(length)))
      client.stream.shutDown(.writing)
      try expectEqual(client.receiveToEnd(), [])
    }
    try other.ping(1)
  }

  /// Incomplete frames are held in memory, so those of one user count against the quota.
  @Test func incompleteFramesCountAgainstTheQuota() throws {
    let daemon = try DaemonProcess(["--max-queue-per-user", "256K"])
    let observer = try daemon.connect()
    let half = Array(RawClient.frame(Array(RawClient.longPing(1, size: 1 << 20).utf8)).prefix(100_000))
    let clients = try (0..<3).map { _ in try daemon.connect() }
    for (index, client) in clients.enumerated() { try client.sendBytes(Array(half.dropLast(10_000 * index))) }
    let frames = try clients[0].receiveToEnd()
    expectEqual(frames.count, 1)
    try expectEqual(JSONValue(frames.last)["params"]["reason"].string, "quota")
    try observer.send("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"stats\"}")
    try expectEqual(observer.receiveJSON()["result"]["heldBytes"].int, 170_000)
    // The other connections can continue their frames.
    for client in clients[1...] {
      try client.sendBytes([0x79])
      try observer.ping(8)
    }
  }
}
