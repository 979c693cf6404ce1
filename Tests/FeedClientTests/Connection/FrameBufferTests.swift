import TestSupport
import Testing

@testable import FeedClient

struct FrameBufferTests {
  private func feed(_ bytes: ArraySlice<UInt8>, _ buffer: inout FrameBuffer) {
    var rest = bytes
    while !rest.isEmpty {
      let room = buffer.room()
      let count = min(room.count, rest.count)
      room.copyBytes(from: rest.prefix(count))
      buffer.didFill(count)
      rest = rest.dropFirst(count)
    }
  }

  private func drain(_ buffer: inout FrameBuffer) throws -> [String] {
    var frames: [String] = []
    while let frame = try buffer.next() { frames.append(String(decoding: frame, as: UTF8.self)) }
    return frames
  }

  @Test(arguments: [1, 2, 3, 5, 64, 100_000]) func splitInputGivesTheSameFrames(size: Int) throws {
    let texts = ["1", "{}", String(repeating: "x", count: 300), "[1,2,3]", String(repeating: "y", count: 70_000)]
    let bytes = texts.flatMap { RawClient.frame(Array($0.utf8)) }
    var buffer = FrameBuffer(capacity: 16)
    var frames: [String] = []
    var place = 0
    while place < bytes.count {
      feed(bytes[place..<min(place + size, bytes.count)], &buffer)
      frames += try drain(&buffer)
      place += size
    }
    expectEqual(frames, texts)
  }

  @Test func framesAddedDirectlyAreReturned() throws {
    var buffer = FrameBuffer(capacity: 16)
    for text in ["{}", String(repeating: "z", count: 1000), "[]"] {
      Array(text.utf8).withUnsafeBytes { buffer.append($0) }
    }
    try expectEqual(drain(&buffer).map(\.count), [2, 1000, 2])
  }

  @Test("a frame above the limit is refused when its length arrives") func limit() throws {
    var buffer = FrameBuffer(capacity: 16, limit: 5)
    feed([0, 0, 0, 5, 1, 2, 3, 4, 5][...], &buffer)
    try expectEqual(drain(&buffer).count, 1)
    feed([0, 0, 0, 6][...], &buffer)
    #expect(throws: MalformedMessage("a frame of 6 bytes; the limit is 5")) { try drain(&buffer) }
  }

  @Test(arguments: [[0, 0, 0, 0], [0x40, 0, 0, 1], [255, 255, 255, 255]] as [[UInt8]])
  func invalidLengthsAreRefused(length: [UInt8]) {
    var buffer = FrameBuffer(capacity: 16)
    feed(length[...], &buffer)
    #expect(throws: MalformedMessage.self) { try drain(&buffer) }
  }

  @Test("a queue that never becomes empty keeps no room for what has left it") func refilled() {
    var queue = ByteQueue(capacity: 16)
    let piece = Array("0123456789".utf8)
    piece.withUnsafeBytes { queue.append($0) }
    for _ in 0..<10_000 {
      piece.withUnsafeBytes { queue.append($0) }
      expectEqual(Array(queue.bytes.prefix(piece.count)), piece)
      queue.consume(piece.count)
    }
    expectEqual(Array(queue.bytes), piece)
    // At least a quarter of the block is room.
    expect(queue.room().count <= 64)
  }
}
