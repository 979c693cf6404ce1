import FeedClient

/// A terminal's screen, redrawn in place: only the lines that differ from those it shows are written. Pure: it makes
/// the bytes.
struct Screen {
  /// Another screen than the shell's, without a cursor and without wrapping.
  static let enter = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l"
  /// Back to the shell's screen.
  static let leave = "\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"

  private var shown: [String]?

  /// Everything must be drawn anew: the size has changed, or the screen was somebody else's.
  mutating func invalidate() { shown = nil }

  /// What makes the terminal show `lines`; empty when it does already.
  mutating func draw(_ lines: [String]) -> String {
    var text = shown == nil ? "\u{1B}[2J" : ""
    let old = shown ?? []
    for row in 0..<max(lines.count, old.count) {
      let line = row < lines.count ? lines[row] : ""
      if row < old.count ? old[row] == line : line.isEmpty { continue }
      text += "\u{1B}[\(row + 1);1H\(line)\u{1B}[K"
    }
    shown = lines
    return text
  }
}
