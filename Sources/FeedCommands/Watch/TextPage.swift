import FeedJSON

/// A text that temporarily covers the list: help, or an element. Lines are wrapped at the width, and the text can be
/// scrolled.
struct TextPage: Equatable {
  private let lines: [String]
  /// The column of the continuation lines of a wrapped line; nil for two columns more than the indentation of the line.
  private let hanging: Int?
  /// The index of the first visible wrapped line.
  private(set) var top = 0

  init(_ lines: [String], hanging: Int? = nil) {
    self.lines = lines
    self.hanging = hanging
  }

  /// Returns the lines for a screen of this size.
  func lines(width: Int, height: Int) -> [String] {
    let all = wrapped(width)
    return Array(all[min(top, max(all.count - height, 0))...].prefix(height))
  }

  /// Scrolls. Returns false for a key that closes the page.
  mutating func take(_ key: Key, width: Int, height: Int) -> Bool {
    let (page, count) = (max(height - 1, 1), wrapped(width).count)
    var next = min(top, max(count - height, 0))
    switch key {
    case .down, .character("j"): next += 1
    case .up, .character("k"): next -= 1
    case .pageDown, .character(" "): next += page
    case .pageUp: next -= page
    case .home, .character("g"): next = 0
    case .end, .character("G"): next = count
    default: return false
    }
    top = max(0, min(next, count - height))
    return true
  }

  private func wrapped(_ width: Int) -> [String] { lines.flatMap { Self.wrap($0, width, hanging) } }

  /// Wraps a line between words, or inside a word that is longer than a line, but never inside a character.
  static func wrap(_ line: String, _ width: Int, _ hanging: Int? = nil) -> [String] {
    let line = line.inLine
    guard DisplayWidth.columns(of: line) > width else { return [line] }
    let own = line.prefix { $0 == " " }.count
    var indent = hanging ?? own + 2
    if indent > width / 2 { indent = min(own, width / 2) }
    var lines: [String] = []
    var text = ""
    var columns = 0
    /// The last space at which the line can be broken, and the columns before it.
    var space: (end: String.Index, columns: Int)?
    for character in line {
      let needed = DisplayWidth.columns(of: character)
      if columns + needed > width {
        var rest = ""
        if let at = space?.end {
          rest = String(text[at...].drop { $0 == " " })
          text = String(text[..<at])
        }
        lines.append(text)
        text = String(repeating: " ", count: indent) + rest
        columns = DisplayWidth.columns(of: text)
        space = nil
        if character == " ", rest.isEmpty { continue }
      }
      if character == " ", columns > max(indent, own) { space = (text.endIndex, columns) }
      text.append(character)
      columns += needed
    }
    return lines + [text]
  }
}
