import FeedClient
import TestSupport
import Testing

@testable import FeedCommands

@Suite struct LineSplitterTests {
  private enum Piece: Equatable {
    case text(String)
    case blank
    case tooLong
  }

  /// What comes of `input` when it is read in pieces of these sizes, over and over.
  private func split(_ input: String, sizes: [Int], limit: Int = 1000, capacity: Int = 16) -> [Piece] {
    var splitter = LineSplitter(limit: limit, capacity: capacity)
    var pieces: [Piece] = []
    func drain(_ splitter: inout LineSplitter) {
      while let line = splitter.next() {
        switch line {
        case .blank: pieces.append(.blank)
        case .tooLong: pieces.append(.tooLong)
        case .text(let bytes): pieces.append(.text(String(decoding: bytes, as: UTF8.self)))
        }
      }
    }
    var rest = Array(input.utf8)[...]
    var turn = 0
    while !rest.isEmpty {
      let room = splitter.room()
      let count = min(room.count, rest.count, sizes[turn % sizes.count])
      room.copyBytes(from: rest.prefix(count))
      splitter.didFill(count)
      rest = rest.dropFirst(count)
      turn += 1
      drain(&splitter)
    }
    splitter.finish()
    drain(&splitter)
    return pieces
  }

  @Test func linesAreTrimmedAndTheLastNeedsNoEnd() {
    let expected: [Piece] = [.text("{}"), .blank, .text("[1, 2]"), .blank, .text("x")]
    #expect(split("{}\n\n  [1, 2] \r\n \t \nx", sizes: [1000]) == expected)
    #expect(split("{}\n\n  [1, 2] \r\n \t \nx\n", sizes: [1]) == expected)
    #expect(split("", sizes: [1]).isEmpty)
    #expect(split("\n", sizes: [1]) == [.blank])
  }

  @Test func longLinesAreDroppedAndTheOthersStay() {
    let long = String(repeating: "x", count: 50)
    for size in [1, 7, 1000] {
      #expect(
        split("a\n\(long)\nb\n\(long)", sizes: [size], limit: 20) == [.text("a"), .tooLong, .text("b"), .tooLong])
    }
    for size in [1, 100] {
      #expect(split("   \(long.prefix(17))", sizes: [size], limit: 20) == [.text(String(long.prefix(17)))])
      #expect(split("   \(long.prefix(18))\n", sizes: [size], limit: 20) == [.tooLong])
    }
  }

  @Test func randomPiecesChangeNothing() {
    var random = SeededRandom(seed: UInt64.random(in: 0...UInt64.max))
    for _ in 0..<200 {
      let lines = (0..<Int.random(in: 0...12, using: &random)).map { _ in
        String(repeating: "ab", count: Int.random(in: 0...40, using: &random))
      }
      let sizes = (0..<3).map { _ in Int.random(in: 1...30, using: &random) }
      let pieces = split(lines.map { $0 + "\n" }.joined(), sizes: sizes)
      #expect(pieces == lines.map { $0.isEmpty ? .blank : .text($0) }, "seed \(random.seed)")
    }
  }
}
