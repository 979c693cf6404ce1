import FeedClient
import TestSupport
import Testing

@testable import FeedCommands

struct ScreenTests {
  /// A terminal with the sequences that ``Screen`` uses: clear, go to a line, erase the line, text.
  private struct Emulator {
    var rows: [Int: String] = [:]
    private var row = 0

    mutating func take(_ text: String) {
      for piece in text.components("\u{1B}[") where !piece.isEmpty {
        if piece.hasPrefix("2J") {
          rows = [:]
        } else if let semicolon = piece.firstIndex(of: ";"), let number = Int(piece[..<semicolon]) {
          row = number - 1
          expect(piece.hasSuffix("H"))
        } else {
          expect(piece.hasPrefix("K"))
          rows[row] = String(piece.dropFirst())
        }
      }
    }
  }

  @Test func terminalShowsTheDrawnLines() {
    var random = SeededRandom(seed: UInt64.random(in: 0...UInt64.max))
    var screen = Screen()
    var emulator = Emulator()
    for step in 0..<500 {
      let lines = (0..<Int.random(in: 0...6, using: &random)).map { _ in
        String(repeating: "ab", count: Int.random(in: 0...2, using: &random))
      }
      if Int.random(in: 0..<20, using: &random) == 0 {
        screen.invalidate()
        emulator.rows = [0: "somebody else's", 9: "lines"]
      }
      emulator.take(screen.draw(lines))
      let shown = emulator.rows.filter { !$0.value.isEmpty }
      let expected = Dictionary(
        uniqueKeysWithValues: lines.enumerated().filter { !$0.element.isEmpty }.map { ($0.offset, $0.element) })
      expectEqual(shown, expected, "seed \(random.seed), step \(step)")
    }
  }

  @Test func onlyDifferencesAreWritten() {
    var screen = Screen()
    _ = screen.draw(["a", "b", "c"])
    expectEqual(screen.draw(["a", "b", "c"]), "")
    expectEqual(screen.draw(["a", "x", "c"]), "\u{1B}[2;1H\u{1B}[Kx")
    expectEqual(screen.draw(["a"]), "\u{1B}[2;1H\u{1B}[K\u{1B}[3;1H\u{1B}[K")
  }
}

extension String {
  fileprivate func components(_ separator: String) -> [String] {
    var parts: [String] = [""]
    var rest = self[...]
    while !rest.isEmpty {
      if rest.hasPrefix(separator) {
        parts.append("")
        rest = rest.dropFirst(separator.count)
      } else {
        parts[parts.count - 1].append(rest.removeFirst())
      }
    }
    return parts
  }
}
