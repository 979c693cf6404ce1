import FeedJSON
import FeedWire
import TestSupport
import Testing

@testable import FeedEngine

/// The output queues of several connections compared with arrays of bytes: parts of shared buffers, partial writes, turns.
struct OutputQueueTests {
  /// A queue, and what it should hold.
  private final class Line {
    let uid: UInt32
    var queue: OutputQueue
    var expected: [UInt8] = []
    /// The frames of `expected`; a partly written one begins below 0.
    var frames: [(start: Int, end: Int, watch: UInt32)] = []
    var pinned = 0

    init(uid: UInt32) {
      self.uid = uid
      queue = OutputQueue(uid: uid)
    }

    func taken(slices most: Int) -> [UInt8] {
      withUnsafeTemporaryAllocation(of: UnsafeRawBufferPointer.self, capacity: most) { slices in
        let count = queue.gather(into: slices)
        return slices[..<count].flatMap { Array($0) }
      }
    }

    func append(_ buffer: TurnBuffer, from start: Int, _ lengths: [Int], watch: UInt32) {
      for length in lengths {
        let begin = frames.last?.end ?? 0
        frames.append((begin, begin + length, watch))
      }
      queue.append(buffer, from: start, to: buffer.bytes.count, watch: watch)
      expected += buffer.bytes.bytes[start...]
    }

    func consume(_ count: Int) {
      queue.consume(count)
      expected.removeFirst(count)
      frames = frames.map { ($0.start - count, $0.end - count, $0.watch) }.filter { $0.end > 0 }
      pinned = max(0, pinned - count)
    }

    func pin() {
      queue.pin()
      pinned = expected.count
    }

    /// Discards the frames of some watches. Returns the texts of those that the queue discarded, and of those that it should have.
    func drop(_ watches: Set<UInt32>) -> (found: [[UInt8]], expected: [[UInt8]]) {
      var found: [[UInt8]] = []
      queue.drop(where: watches.contains) { found.append(Array($1)) }
      var dropped: [[UInt8]] = []
      var left: [UInt8] = []
      var kept: [(start: Int, end: Int, watch: UInt32)] = []
      for frame in frames {
        if frame.start < pinned || frame.start < 0 || !watches.contains(frame.watch) {
          let begin = kept.last?.end ?? min(0, frame.start)
          kept.append((begin, begin + frame.end - frame.start, frame.watch))
          left += expected[max(0, frame.start)..<frame.end]
        } else {
          dropped.append(Array(expected[frame.start + 4..<frame.end]))
        }
      }
      (expected, frames) = (left, kept)
      return (found, dropped)
    }
  }

  private static let noise: [UInt8] = {
    var random = SeededRandom(seed: 0)
    return (0..<20_000).map { _ in .random(in: 0...255, using: &random) }
  }()

  /// Appends one to three frames. Returns their lengths.
  private static func write(_ buffer: TurnBuffer, longest: Int, _ random: inout SeededRandom) -> [Int] {
    (0..<Int.random(in: 1...3, using: &random)).map { _ in
      let frame = buffer.bytes.beginFrame()
      let start = Int.random(in: 0..<noise.count - longest, using: &random)
      noise[start..<start + Int.random(in: 1..<longest, using: &random)].withUnsafeBytes { buffer.bytes.append($0) }
      return 4 + buffer.bytes.endFrame(at: frame)
    }
  }

  /// - Parameter seed: every third one has long turns, whose memory is taken over.
  @Test(arguments: 1...TestEffort.count(12, long: 300)) func randomOperationsMatchArrays(seed: Int) {
    var random = SeededRandom(seed: UInt64(seed))
    let longest = seed % 3 == 0 ? 6000 : 40
    let buffers = [TurnBuffer(isShared: true), TurnBuffer(isShared: true), TurnBuffer()]
    let lines = [Line(uid: 1), Line(uid: 1), Line(uid: 2)]
    var charges: [UInt32: Int] = [:]

    for _ in 0..<60 {
      for _ in 0..<Int.random(in: 0..<8, using: &random) {
        let place = Int.random(in: 0..<3, using: &random)
        let start = buffers[place].bytes.count
        let lengths = Self.write(buffers[place], longest: longest, &random)
        let receivers =
          place == 2 ? [Int.random(in: 0..<3, using: &random)] : [0, 1, 2].filter { _ in .random(using: &random) }
        let watch = UInt32(place == 2 ? 0 : 1 + place)
        for receiver in receivers { lines[receiver].append(buffers[place], from: start, lengths, watch: watch) }
      }
      for line in lines {
        while Int.random(in: 0..<3, using: &random) > 0 {
          let slices = line.taken(slices: Int.random(in: 1...5, using: &random))
          expect(line.expected.starts(with: slices), "seed \(seed)")
          line.consume(Int.random(in: 0...slices.count, using: &random))
          expectEqual(line.queue.count, line.expected.count, "seed \(seed)")
          if let frame = line.frames.first { expectEqual(line.queue.firstFrame, frame.end, "seed \(seed)") }
        }
        if Int.random(in: 0..<9, using: &random) == 0 { line.pin() }
      }
      for line in lines { line.queue.noteRest() }
      for line in lines { line.queue.keepRest() }
      for buffer in buffers {
        if let growth = buffer.open?.takeGrowth() {
          for uid in growth.users { charges[uid, default: 0] += growth.bytes }
        }
        buffer.recycle()
      }
      for line in lines {
        expect(line.queue.backlog == line.expected.count && line.queue.count == line.expected.count, "seed \(seed)")
        expectEqual(line.taken(slices: 200), line.expected, "seed \(seed)")
      }
      for line in lines {
        switch Int.random(in: 0..<12, using: &random) {
        case 0:
          line.queue.dropWholeFrames()
          line.pinned = 0
          line.frames = line.frames.filter { $0.start < 0 }
          line.expected = Array(line.expected.prefix(line.frames.last?.end ?? 0))
        case 1, 2:
          let dropped = line.drop(Bool.random(using: &random) ? [1] : [1, 2])
          expectEqual(dropped.found, dropped.expected, "seed \(seed)")
        default: break
        }
        expectEqual(line.taken(slices: 200), line.expected, "seed \(seed)")
      }
      // Each user is charged once for each block that one of its queues holds.
      for line in lines { charges[line.uid, default: 0] += line.queue.takeDues() }
      var held: [UInt32: [ObjectIdentifier: Int]] = [:]
      for line in lines {
        for block in line.queue.blocks { held[line.uid, default: [:]][ObjectIdentifier(block)] = block.bytes.count }
      }
      for uid in [1, 2] as [UInt32] {
        expectEqual(charges[uid, default: 0], held[uid, default: [:]].values.reduce(0, +), "seed \(seed)")
      }
      for line in lines { Self.checkSpent(line, others: lines.filter { $0 !== line }, seed: seed) }
    }
    for line in lines {
      line.queue.removeAll()
      charges[line.uid, default: 0] += line.queue.takeDues()
    }
    expect(charges.values.allSatisfy { $0 == 0 }, "seed \(seed)")
  }

  /// Checks the written bytes of the blocks that only one queue holds, if it holds no others or only others.
  private static func checkSpent(_ line: Line, others: [Line], seed: Int) {
    let shared = Set(others.flatMap { $0.queue.blocks.map(ObjectIdentifier.init) })
    let blocks = line.queue.blocks
    let own = blocks.filter { !shared.contains(ObjectIdentifier($0)) }
    if own.isEmpty { expectEqual(line.queue.spent, 0, "seed \(seed)") }
    if own.count < blocks.count { return }
    expectEqual(line.queue.spent, own.reduce(0) { $0 + $1.bytes.count } - line.expected.count, "seed \(seed)")
  }

  /// What several queues did not take of one buffer is in one block; a short rest of one queue does not keep a long block.
  @Test func partsShareABlockUnlessItWouldKeepMuchMore() {
    let lines = [Line(uid: 1), Line(uid: 1), Line(uid: 2)]
    let buffer = TurnBuffer(isShared: true)
    let length = 100_000
    func turn(unwritten: [Int]) {
      let frame = buffer.bytes.beginFrame()
      for _ in 0..<length - 4 { buffer.bytes.append(UInt8(ascii: "x")) }
      buffer.bytes.endFrame(at: frame)
      for (line, left) in zip(lines, unwritten) {
        line.queue.append(buffer, from: 0, to: length, watch: 1)
        line.queue.consume(length - left)
        line.queue.noteRest()
      }
      for line in lines { line.queue.keepRest() }
      buffer.recycle()
    }
    func dues() -> [Int] { lines.map { $0.queue.takeDues() } }
    turn(unwritten: [length, 40_000, 10])
    expectEqual(dues(), [length, 0, 10])
    lines[0].queue.removeAll()
    expectEqual(dues(), [0, 0, 0])
    lines[1].queue.removeAll()
    lines[2].queue.removeAll()
    expectEqual(dues(), [0, -length, -10])
    turn(unwritten: [10_000, 0, 10])
    expectEqual(dues(), [10_000, 0, 10])
  }
}
