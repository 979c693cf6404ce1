import FeedJSON
import TestSupport
import Testing

@testable import FeedWire

/// Frames with lengths around the limits, and streams that arrive in pieces.
struct FrameTests {
  private func first(_ bytes: [UInt8], maxFrame: Int = 100) -> String {
    bytes.withUnsafeBytes { bytes in
      switch Frame.first(in: bytes, maxFrame: maxFrame) {
      case .incomplete(let total): "incomplete \(total.map(String.init) ?? "unknown")"
      case .complete(let payload): "complete \(payload.count)"
      case .badLength(let length): "bad \(length)"
      }
    }
  }

  private func header(_ length: UInt32) -> [UInt8] { withUnsafeBytes(of: length.bigEndian) { Array($0) } }

  @Test func lengthIsCheckedAgainstTheLimit() {
    for count in 0..<4 { expectEqual(first(Array(header(5)[..<count])), "incomplete unknown") }
    expectEqual(first(header(0)), "bad 0")
    expectEqual(first(header(101)), "bad 101")
    expectEqual(first(header(.max)), "bad 4294967295")
    expectEqual(first(header(.max), maxFrame: .max), "incomplete 4294967299")
    expectEqual(first(header(100)), "incomplete 104")
    expectEqual(first(header(1) + [0x31]), "complete 1")
    expectEqual(first(header(100) + [UInt8](repeating: 0, count: 99)), "incomplete 104")
    expectEqual(first(header(100) + [UInt8](repeating: 0, count: 100)), "complete 100")
    expectEqual(first(header(100) + [UInt8](repeating: 0, count: 300)), "complete 100")
  }

  @Test(arguments: 1...5) func streamInPiecesHasTheSameFrames(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var buffer = ByteBuffer()
    var payloads: [[UInt8]] = []
    for _ in 0..<20 {
      let payload = (0..<Int.random(in: 1...90, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
      payloads.append(payload)
      let start = buffer.beginFrame()
      payload.withUnsafeBytes { buffer.append($0) }
      expectEqual(buffer.endFrame(at: start), payload.count)
    }
    let stream = Array(buffer.bytes)
    var read: [[UInt8]] = []
    var held: [UInt8] = []
    var next = 0
    while next < stream.count {
      let end = min(stream.count, next + Int.random(in: 1...40, using: &random))
      held += stream[next..<end]
      next = end
      while true {
        let taken = held.withUnsafeBytes { bytes -> [UInt8]? in
          if case .complete(let payload) = Frame.first(in: bytes, maxFrame: 100) { Array(payload) } else { nil }
        }
        guard let taken else { break }
        read.append(taken)
        held.removeFirst(Frame.headerLength + taken.count)
      }
    }
    expectEqual(read, payloads, "seed \(seed)")
    expect(held.isEmpty)
  }

  @Test func byeIsAFrame() throws {
    var buffer = ByteBuffer()
    buffer.appendByeFrame(reason: "shutdown", message: "say \"when\"")
    let bytes = Array(buffer.bytes)
    expectEqual(bytes[..<4].reduce(0) { $0 << 8 | Int($1) }, bytes.count - 4)
    expect(
      try isSameJSON(
        String(decoding: bytes[4...], as: UTF8.self),
        #"{"jsonrpc":"2.0","method":"bye","params":{"reason":"shutdown","message":"say \"when\""}}"#))
  }
}
