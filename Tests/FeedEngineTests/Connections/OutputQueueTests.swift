import FeedJSON
import FeedWire
import TestSupport
import Testing

@testable import FeedEngine

/// What waits for a connection, against a plain array of bytes: pieces of shared buffers, partial writes, turns.
@Suite struct OutputQueueTests {
  private static func taken(_ queue: borrowing OutputQueue, slices most: Int) -> [UInt8] {
    withUnsafeTemporaryAllocation(of: UnsafeRawBufferPointer.self, capacity: most) { slices in
      let count = queue.gather(into: slices)
      return slices[..<count].flatMap { Array($0) }
    }
  }

  @Test(arguments: 1...20) func randomHistories(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var queue = OutputQueue()
    let buffers = (0..<3).map { _ in TurnBuffer() }
    var waiting: [UInt8] = []
    /// Where the frames that wait begin and end; the one that was begun to be written begins below 0.
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
        waiting += buffer.bytes.bytes[start...]
        // Others use the shared buffer too.
        if Bool.random(using: &random) { buffer.bytes.append("something else") }
      }
      while Int.random(in: 0..<3, using: &random) > 0 {
        let slices = Self.taken(queue, slices: Int.random(in: 1...5, using: &random))
        #expect(waiting.starts(with: slices), "seed \(seed)")
        let count = Int.random(in: 0...slices.count, using: &random)
        queue.consume(count)
        waiting.removeFirst(count)
        frames = frames.map { ($0.start - count, $0.end - count) }.filter { $0.end > 0 }
        #expect(queue.count == waiting.count, "seed \(seed)")
      }
      queue.keepRest()
      for buffer in buffers { buffer.recycle() }
      #expect(queue.backlog == waiting.count && queue.count == waiting.count, "seed \(seed)")
      #expect(Self.taken(queue, slices: 3) == waiting, "seed \(seed)")
      if Int.random(in: 0..<9, using: &random) == 0 {
        // Only the frame that was begun stays.
        queue.dropWholeFrames()
        frames = frames.filter { $0.start < 0 }
        waiting = Array(waiting.prefix(frames.last?.end ?? 0))
        #expect(Self.taken(queue, slices: 3) == waiting, "seed \(seed)")
      }
    }
  }
}
