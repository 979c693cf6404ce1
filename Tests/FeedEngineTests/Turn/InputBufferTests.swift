import TestSupport
import Testing

@testable import FeedEngine

@Suite("Input of a connection")
struct InputBufferTests {
  /// Random operations compared with an array.
  @Test(arguments: 0..<TestEffort.count(8, long: 200)) func randomOperationsMatchAnArray(seed: Int) {
    var random = SeededRandom(seed: UInt64(seed))
    var buffer = InputBuffer()
    defer { buffer.removeAll() }
    var model: [UInt8] = []
    for _ in 0..<300 {
      switch Int.random(in: 0..<4, using: &random) {
      case 0:
        model = (0..<Int.random(in: 0...6000, using: &random)).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        model.withUnsafeBytes { buffer.replace($0) }
      case 1, 2:
        let total = model.count + Int.random(in: 0...200_000, using: &random)
        let space = buffer.space(towards: total)
        expect(space.count >= 1, "seed \(seed)")
        let more = min(space.count, Int.random(in: 0...5000, using: &random))
        for index in 0..<more { space[index] = UInt8(truncatingIfNeeded: index) }
        buffer.didAppend(more)
        model += (0..<more).map { UInt8(truncatingIfNeeded: $0) }
      default:
        let taken = Int.random(in: 0...model.count, using: &random)
        buffer.removeFirst(taken)
        model.removeFirst(taken)
      }
      expectEqual(Array(buffer.bytes), model, "seed \(seed)")
    }
  }

  @Test func memoryGrowsWithReceivedBytesAndIsReleased() {
    var buffer = InputBuffer()
    defer { buffer.removeAll() }
    let total = 64 << 20
    _ = buffer.space(towards: total)
    expect(buffer.capacity <= 64 << 10)
    var steps = 0
    while buffer.count < total {
      buffer.didAppend(buffer.space(towards: total).count)
      steps += 1
      expect(buffer.capacity <= max(buffer.count * 2, 64 << 10))
    }
    expectEqual(buffer.capacity, total)
    expect(steps < 16)
    buffer.removeFirst(total - 10)
    expectEqual(buffer.count, 10)
    expect(buffer.capacity <= 512)
    buffer.removeFirst(10)
    expectEqual(buffer.capacity, 0)
  }
}
