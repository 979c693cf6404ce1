import FeedModel
import TestSupport
import Testing

@testable import EngineTesting
@testable import FeedEngine
@testable import ReferenceModel

/// Frames as bytes: splitting them does not change the answers, and an invalid frame closes only its own connection.
struct FrameTests {
  static let requests = [
    #"{"jsonrpc":"2.0","id":1,"method":"define","params":{"feed":"c","kind":"collection"}}"#,
    #"{"jsonrpc":"2.0","id":"two","method":"watch","params":{"feed":"c"}}"#,
    #"{"jsonrpc":"2.0","method":"update","params":{"feed":"c","element":{"id":1}}}"#,
    #"{"jsonrpc":"2.0","id":3.0,"method":"verify","params":{"feed":"c"}}"#,
    #"[{"jsonrpc":"2.0","id":4,"method":"ping"},5]"#,
    #"not JSON"#,
    #"{"jsonrpc":"2.0","id":6,"method":"sync"}"#,
    #"{"jsonrpc":"2.0","id":7,"method":"update","params":{"feed":"c","elements":[{"id":2},{"id":3}]}}"#,
  ]

  /// Returns the responses. Notifications are left out: their order and number depend on the turns.
  private func answers(_ pieces: [[UInt8]]) -> [String] {
    let harness = EngineHarness()
    let id = harness.connect()
    for piece in pieces { harness.deliver(id, piece) }
    expectEqual(harness.waitingInput(of: id), 0)
    return harness.take(id).filter { $0.json?["method"] == nil }
  }

  @Test func splittingFramesDoesNotChangeAnswers() {
    let frames = Self.requests.map { EngineHarness.frame($0) }
    let all = Array(frames.joined())
    let whole = answers(frames)
    expectEqual(whole.count, 7)
    expectEqual(answers([all]), whole, "all at once")
    expectEqual(answers(all.map { [$0] }), whole, "byte by byte")
    for size in [2, 3, 5, 7, 61, 128] {
      let pieces = stride(from: 0, to: all.count, by: size).map { Array(all[$0..<min($0 + size, all.count)]) }
      expectEqual(answers(pieces), whole, "in pieces of \(size)")
    }
  }

  @Test func everyRequestIsAnsweredOnceAndInOrder() {
    let replies = answers(Self.requests.map { EngineHarness.frame($0) }).compactMap { Value($0) }
    let ids = replies.flatMap { $0.items.isEmpty ? [$0] : $0.items }.map {
      $0["id"]?.text
    }
    expectEqual(ids, ["1", "\"two\"", "3.0", "4", "null", "null", "6", "7"])
  }

  @Test(arguments: [0, 5000, 0x7FFF_FFFF, 0xFFFF_FFFF]) func invalidLengthIsAnsweredAndClosesTheConnection(
    length: UInt32
  ) {
    let harness = EngineHarness { $0.maxFrame = 4096 }
    let (bad, good) = (harness.connect(), harness.connect())
    let header = withUnsafeBytes(of: length.bigEndian) { Array($0) }
    let ping = EngineHarness.request("ping")
    harness.deliver(bad, ping + header + ping)
    let frames = harness.take(bad).compactMap { Value($0) }
    expectEqual(frames.map(\.errorCode), [nil, -32600, nil])
    expectEqual(frames.map { $0["id"]?.text }, ["1", "null", nil])
    expectEqual(frames.last?["method"]?.string, "bye")
    expectEqual(frames.last?["params"]?["reason"]?.string, "badFrame")
    expect(!harness.isOpen(bad))
    expectEqual(harness.ask(good, "ping").count, 1)
    expect(harness.events.contains { $0.level == .warning && $0.message.contains("uid 1000") })
  }

  @Test func lengthIsCheckedBeforeThePayloadArrives() {
    let harness = EngineHarness()
    let id = harness.connect()
    harness.deliver(id, [0xFF, 0xFF, 0xFF])
    expect(harness.isOpen(id))
    harness.deliver(id, [0xFF])
    expect(!harness.isOpen(id))
  }

  @Test func invalidJSONKeepsTheConnectionOpen() {
    let harness = EngineHarness()
    let id = harness.connect()
    let texts: [[UInt8]] = [
      Array("{".utf8), Array(" ".utf8), Array("{}{}".utf8), [0x22, 0xFF, 0x22], Array("\u{FEFF}{}".utf8),
      Array("[1,]".utf8),
    ]
    for text in texts {
      let length = withUnsafeBytes(of: UInt32(text.count).bigEndian) { Array($0) }
      harness.deliver(id, length + text)
      let replies = harness.take(id).compactMap { Value($0) }
      expectEqual(replies.map(\.errorCode), [-32700])
      expectEqual(replies.first?["id"]?.text, "null")
      expect(replies.first?.errorData?["offset"]?.int != nil)
    }
    expectEqual(harness.ask(id, "ping").count, 1)
  }

  /// An incomplete frame times out; any progress restarts the timeout.
  @Test func incompleteFrameTimesOut() {
    let harness = EngineHarness()
    let (half, good) = (harness.connect(), harness.connect())
    harness.deliver(half, [0, 0, 0, 50, 0x7B])
    harness.advance(seconds: 29)
    harness.deliver(half, [0x22])
    harness.advance(seconds: 29)
    expect(harness.isOpen(half))
    harness.advance(seconds: 3)
    expect(!harness.isOpen(half))
    expectEqual(harness.take(half).last?.json?["params"]?["reason"]?.string, "frameTimeout")
    expectEqual(harness.ask(good, "ping").count, 1)
  }

  /// The rest of each piece has the same length, but is the beginning of another frame.
  @Test func completeFramesAreProgress() {
    let harness = EngineHarness()
    let id = harness.connect()
    let ping = #"{"jsonrpc":"2.0","id":1,"method":"ping"}"#
    let frame = EngineHarness.frame(ping + String(repeating: " ", count: 96 - ping.utf8.count))
    expectEqual(frame.count, 100)
    harness.deliver(id, frame + Array(frame[..<50]))
    for _ in 0..<60 {
      expectEqual(harness.take(id).count, 1)
      harness.advance(seconds: 1)
      harness.deliver(id, Array(frame[50...]) + Array(frame[..<50]))
    }
    expect(harness.isOpen(id))
    harness.advance(seconds: 31)
    expect(!harness.isOpen(id))
  }

  /// A frame that is complete does not time out while requests before it wait for the log.
  @Test func completeFrameThatWaitsDoesNotTimeOut() {
    let harness = EngineHarness(isDurable: true)
    let id = harness.connect()
    _ = harness.ask(id, "define", #"{"feed":"c","kind":"collection"}"#)
    harness.log?.isHeld = true
    let filler = String(repeating: " ", count: 300 << 10)
    let array = EngineHarness.frame(#"[{"jsonrpc":"2.0","id":2,"method":"ping"}\#(filler)]"#)
    harness.deliver(id, EngineHarness.request("update", #"{"feed":"c","element":{"id":1}}"#) + array[..<1000])
    harness.deliver(id, Array(array[1000...]))
    harness.advance(seconds: 60)
    expect(harness.isOpen(id))
    harness.log?.isHeld = false
    harness.log?.store()
    harness.turn()
    expectEqual(harness.take(id).count, 2)
  }

  /// An incomplete frame does not time out while the daemon does not read the connection because its queue is full.
  @Test func incompleteFrameDoesNotTimeOutWhileTheQueueIsFull() {
    let harness = EngineHarness { $0.maxQueue = 4096 }
    let (pusher, watcher) = (harness.connect(), harness.connect())
    _ = harness.ask(pusher, "define", #"{"feed":"c","kind":"collection"}"#)
    _ = harness.ask(watcher, "watch", #"{"feed":"c"}"#)
    harness.stopped = [watcher]
    let ping = EngineHarness.request("ping")
    harness.deliver(watcher, Array(ping[..<20]))
    let filler = String(repeating: "x", count: 3000)
    for number in 0..<4 {
      _ = harness.ask(pusher, "update", #"{"feed":"c","element":{"id":\#(number),"f":"\#(filler)"}}"#)
    }
    expect(!harness.wantsInput(watcher))
    harness.deliver(watcher, Array(ping[20...]))
    harness.advance(seconds: 40)
    expect(harness.isOpen(watcher))
    harness.resume(watcher)
    expect(harness.take(watcher).contains(#"{"jsonrpc":"2.0","id":1,"result":{}}"#))
  }
}
