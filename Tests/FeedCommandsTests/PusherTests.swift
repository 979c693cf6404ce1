import FeedClient
import FeedJSON
import TestSupport
import Testing

@testable import FeedCommands

struct PusherTests {
  /// A daemon that keeps the last text of each identity, or all texts in their order, and refuses every request with a text that
  /// is marked as refused.
  private struct Daemon: Equatable {
    var appends = false
    var elements: [Int: String] = [:]
    var rows: [String] = []

    mutating func take(_ texts: [String]) -> Bool {
      if texts.contains(where: { $0.hasSuffix("bad") }) { return false }
      if appends { rows += texts }
      for text in texts where !appends { elements[Int(text.prefix { $0 != ":" }) ?? 0] = text }
      return true
    }
  }

  private func texts(_ batch: PushBatch) -> [String] {
    String(decoding: batch.bytes.bytes, as: UTF8.self).split(separator: ",").map(String.init)
  }

  private func add(_ text: String, line: Int, alone: Bool = false, to pusher: inout Pusher) {
    Array(text.utf8).withUnsafeBytes { pusher.add($0, line: line, alone: alone) }
  }

  @Test func partialBatchWaitsWhileTwoBatchesAreInFlight() {
    var pusher = Pusher(window: .init(batchLines: 2, batchBytes: 1000, batches: 3, eager: 2))
    for line in 1...7 { add("\(line):", line: line, to: &pusher) }
    expectEqual(pusher.next()?.lines, [1, 2])
    expectEqual(pusher.next()?.lines, [3, 4])
    expectEqual(pusher.next()?.lines, [5, 6])
    expect(pusher.next() == nil)
    pusher.accepted(revision: 1)
    expect(pusher.next() == nil)
    pusher.accepted(revision: 2)
    expectEqual(pusher.next()?.lines, [7])
    expectEqual(pusher.unanswered, 3)
    pusher.accepted(revision: 3)
    pusher.accepted(revision: 4)
    expect(pusher.isIdle)
    expectEqual(pusher.pushed, 7)
    expectEqual(pusher.revision, 4)
  }

  @Test func batchesAreLimitedInSize() {
    var pusher = Pusher(window: .init(batchLines: 100, batchBytes: 10, batches: 9, eager: 2))
    for line in 1...3 { add("\(line):234567", line: line, to: &pusher) }
    add("4:" + String(repeating: "x", count: 50), line: 4, to: &pusher)
    var batches: [[Int]] = []
    while let batch = pusher.next() {
      batches.append(batch.lines)
      if batches.count > 1 { pusher.accepted(revision: 1) }
    }
    expectEqual(batches, [[1], [2], [3], [4]])
  }

  @Test func refusedBatchIsRetriedLineByLineAndLaterOnesAreResent() {
    var pusher = Pusher(window: .init(batchLines: 3, batchBytes: 1000, batches: 3, eager: 2))
    for (line, text) in ["1:a", "2:bad", "3:a", "1:b", "4:a", "5:a"].enumerated() {
      add(text, line: line + 1, to: &pusher)
    }
    expectEqual(pusher.next()?.lines, [1, 2, 3])
    expectEqual(pusher.next()?.lines, [4, 5, 6])
    expectEqual(pusher.refused("no"), nil)
    expect(!pusher.wantsLines)
    expect(pusher.next() == nil)
    pusher.accepted(revision: 1)
    expectEqual(pusher.pushed, 0)
    expectEqual(pusher.next()?.lines, [1])
    expectEqual(pusher.next()?.lines, [2])
    expectEqual(pusher.next()?.lines, [3])
    pusher.accepted(revision: 2)
    expectEqual(pusher.next()?.lines, [4, 5, 6])
    expectEqual(pusher.refused("no"), Pusher.Refusal(line: 2, reason: "no"))
    pusher.accepted(revision: 3)
    pusher.accepted(revision: 4)
    expect(pusher.isIdle)
    expectEqual(pusher.pushed, 5)
  }

  @Test("nothing is sent behind a batch of several lines if it could have to be sent again")
  func requestsThatAreNotRepeatable() {
    var pusher = Pusher(window: .init(batchLines: 2, batchBytes: 1000, batches: 3, eager: 2), isRepeatable: false)
    for line in 1...5 { add("\(line):", line: line, alone: line == 1, to: &pusher) }
    expectEqual(pusher.next()?.lines, [1])
    expectEqual(pusher.next()?.lines, [2, 3])
    expect(pusher.next() == nil)
    pusher.accepted(revision: 1)
    expect(pusher.next() == nil)
    expectEqual(pusher.refused("no"), nil)
    expectEqual(pusher.next()?.lines, [2])
    expectEqual(pusher.next()?.lines, [3])
    expectEqual(pusher.next()?.lines, [4, 5])
    for revision in 2...4 { pusher.accepted(revision: revision) }
    expect(pusher.isIdle)
    expectEqual(pusher.pushed, 5)
  }

  @Test(arguments: [true, false]) func randomStreamsHaveTheEffectOfSingleLines(isRepeatable: Bool) {
    var random = SeededRandom(seed: UInt64.random(in: 0...UInt64.max))
    for _ in 0..<300 {
      var pusher = Pusher(
        window: .init(
          batchLines: Int.random(in: 1...5, using: &random), batchBytes: Int.random(in: 1...40, using: &random),
          batches: Int.random(in: 1...4, using: &random), eager: Int.random(in: 1...3, using: &random)),
        isRepeatable: isRepeatable)
      var daemon = Daemon(appends: !isRepeatable)
      var expected = daemon
      var refusedLines: [Int] = []
      var expectedRefusals: [Int] = []
      var underWay: [PushBatch] = []
      var line = 0
      let total = Int.random(in: 0...60, using: &random)
      while line < total || !pusher.isIdle {
        if line < total, pusher.wantsLines, Bool.random(using: &random) {
          line += 1
          let isBad = Int.random(in: 0..<10, using: &random) == 0
          let text = "\(Int.random(in: 0..<6, using: &random)):\(line)\(isBad ? "bad" : "")"
          if !expected.take([text]) { expectedRefusals.append(line) }
          // Some invalid lines, such as those without identity, are known before they are sent.
          add(text, line: line, alone: isBad && Bool.random(using: &random), to: &pusher)
        } else if let batch = pusher.next() {
          underWay.append(batch)
        } else if !underWay.isEmpty {
          if daemon.take(texts(underWay.removeFirst())) {
            pusher.accepted(revision: line)
          } else if let refusal = pusher.refused("bad") {
            refusedLines.append(refusal.line)
          }
        }
      }
      expectEqual(daemon, expected, "seed \(random.seed)")
      expectEqual(refusedLines, expectedRefusals, "seed \(random.seed)")
      expectEqual(pusher.pushed, total - expectedRefusals.count, "seed \(random.seed)")
      expectEqual(pusher.unanswered, 0, "seed \(random.seed)")
    }
  }
}
