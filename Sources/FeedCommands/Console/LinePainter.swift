import FeedClient

/// Builds one line of a terminal: pieces with colours, cut at the width, with nothing in it that a terminal could obey.
struct LinePainter {
  /// A width that no text reaches.
  static let unlimited = 1 << 40

  private let palette: Palette
  private let width: Int
  private(set) var text = ""
  /// Columns used so far.
  private(set) var columns = 0
  /// Whether something did not fit.
  private(set) var isCut = false

  /// An empty line of at most `width` columns.
  init(width: Int, palette: Palette) {
    self.width = max(width, 1)
    self.palette = palette
  }

  /// Columns that are left.
  var room: Int { width - columns }

  /// Adds text. What does not fit is cut off, and an ellipsis shows it; nothing more fits then.
  mutating func add(_ piece: some StringProtocol, _ role: Palette.Role = .plain) {
    if isCut { return }
    var shown = ""
    for scalar in piece.unicodeScalars {
      let safe = DisplayWidth.isUnsafe(scalar) ? "\u{FFFD}" : scalar
      let needed = DisplayWidth.columns(of: safe)
      // The last column is kept for the ellipsis as long as more may come.
      if columns + needed > width - 1 {
        isCut = true
        break
      }
      shown.unicodeScalars.append(safe)
      columns += needed
    }
    text += palette.paint(shown, role)
    if isCut {
      text += palette.paint("…", .dim)
      columns += 1
    }
  }

  /// Adds spaces up to a column, if the line is shorter.
  mutating func pad(to column: Int) {
    if column > columns { add(String(repeating: " ", count: column - columns)) }
  }
}

extension LinePainter {
  /// The text with everything that a terminal could obey shown as U+FFFD; not cut.
  static func safe(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: DisplayWidth.isUnsafe) else { return text }
    var safe = ""
    safe.unicodeScalars.append(
      contentsOf: text.unicodeScalars.map { DisplayWidth.isUnsafe($0) ? "\u{FFFD}" : $0 })
    return safe
  }
}
