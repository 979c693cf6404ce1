import FeedJSON
import FeedWire
import TestSupport
import Testing

@testable import FeedEngine

/// The output queue of a connection compared with an array of bytes: slices of shared buffers, partial writes, turns.
@Suite struct OutputQueueTests {
  private static func taken(_ queue: borrowing OutputQueue, slices most: Int) -> [UInt8] {
    withUnsafeTemporaryAllocation(of: UnsafeRawBufferPointer.self, capacity: most) { slices in
      let count = queue.gather(into: slices)
      return slices[..<count].flatMap { Array($0) }
    }
  }

  @Test(arguments: 1...20) func randomOperationsMatchAnArray(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var queue = OutputQueue()
    let buffers = (0..<3).map { _ in TurnBuffer() }
    var expected: [UInt8] = []
    /// The bounds of the queued frames; a partly written frame begins below 0.
    var frames: [(start: Int, end: Int)] = []
    for _ in 0..<60 {
      for _ in 0..<Int.random(in: 0..<12, using: &random) {
        let buffer = buffers.randomElement(using: &random)!
        let start = buffer.bytes.count
        for _ in 0..<Int.random(in: 1...3, using: &random) {
          let frame = buffer.bytes.beginFrame()
          for _ in 0..<Int.random(in: 1..<40, using: &random) {
            buffer.bytes.append(UInt8.random(in: 0...255, using: &random))
          }
          let begin = frames.last?.end ?? 0
          frames.append((begin, begin + 4 + buffer.bytes.endFrame(at: frame)))
        }
        queue.append(buffer, from: start, to: buffer.bytes.count)
        expected += buffer.bytes.bytes[start...]
        // Other connections append to the shared buffer too.
        if Bool.random(using: &random) { buffer.bytes.append("something else") }
      }
      while Int.random(in: 0..<3, using: &random) > 0 {
        let slices = Self.taken(queue, slices: Int.random(in: 1...5, using: &random))
        #expect(expected.starts(with: slices), "seed \(seed)")
        let count = Int.random(in: 0...slices.count, using: &random)
        queue.consume(count)
        expected.removeFirst(count)
        frames = frames.map { ($0.start - count, $0.end - count) }.filter { $0.end > 0 }
        #expect(queue.count == expected.count, "seed \(seed)")
      }
      if let most = buffers.first(where: { queue.isMost(of: $0, atLeast: 1) }) {
        queue.take(most)
        let left = most.bytes.count; #expect(left == 0, "seed \(seed)")
      } else {
        queue.keepRest()
      }
      for buffer in buffers { buffer.recycle() }
      #expect(queue.backlog == expected.count && queue.count == expected.count, "seed \(seed)")
      #expect(Self.taken(queue, slices: 3) == expected, "seed \(seed)")
      if Int.random(in: 0..<9, using: &random) == 0 {
        // Only a partly written frame stays.
        queue.dropWholeFrames()
        frames = frames.filter { $0.start < 0 }
        expected = Array(expected.prefix(frames.last?.end ?? 0))
        #expect(Self.taken(queue, slices: 3) == expected, "seed \(seed)")
      }
    }
  }
}
