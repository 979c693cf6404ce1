import TestSupport

/// What a terminal of a fixed size shows after a program wrote to it: the cursor moves, erasures and switches of screens that
/// programs of this package use. Wide characters take two columns.
struct TerminalScreen {
  private let columns: Int
  private let rows: Int
  private var cells: [[String]]
  /// The shell's screen, while a program shows its own.
  private var shell: [[String]]?
  private var row = 0
  private var column = 0
  /// Whether something was written beyond the last row or column.
  private(set) var isOverrun = false
  private var wraps = true

  init(columns: Int, rows: Int) {
    self.columns = columns
    self.rows = rows
    cells = Self.blank(columns, rows)
  }

  private static func blank(_ columns: Int, _ rows: Int) -> [[String]] {
    [[String]](repeating: [String](repeating: " ", count: columns), count: rows)
  }

  /// The rows without spaces at their ends.
  var lines: [String] {
    cells.map { cells in String(cells.joined().reversed().drop { $0 == " " }.reversed()) }
  }

  /// Whether a program shows its own screen.
  var isAlternate: Bool { shell != nil }

  mutating func take(_ text: String) {
    var rest = text.unicodeScalars[...]
    while let scalar = rest.popFirst() {
      switch scalar {
      case "\u{1B}":
        guard rest.popFirst() == "[" else { continue }
        let parameters = String(String.UnicodeScalarView(rest.prefix { !$0.properties.isAlphabetic }))
        rest = rest.dropFirst(parameters.unicodeScalars.count)
        if let letter = rest.popFirst() { obey(letter, parameters) }
      case "\r": column = 0
      case "\n": feedLine()
      case "\u{8}": column = max(column - 1, 0)
      default: put(scalar)
      }
    }
  }

  private mutating func obey(_ letter: Unicode.Scalar, _ parameters: String) {
    switch (letter, parameters) {
    case ("h", "?1049"): (shell, cells) = (cells, Self.blank(columns, rows))
    case ("l", "?1049"): (cells, shell) = (shell ?? cells, nil)
    case ("h", "?7"): wraps = true
    case ("l", "?7"): wraps = false
    case ("A", _): row = max(row - (Int(parameters) ?? 1), 0)
    case ("J", "2"): cells = Self.blank(columns, rows)
    case ("J", _):
      cells[row].replaceSubrange(
        min(column, columns)..., with: Array(repeating: " ", count: columns - min(column, columns)))
      for below in (row + 1)..<max(row + 1, rows) { cells[below] = Array(repeating: " ", count: columns) }
    // Behind the last column, the cursor is still on it.
    case ("K", _): for place in min(column, columns - 1)..<columns { cells[row][place] = " " }
    case ("H", _):
      let numbers = parameters.split(separator: ";").map { Int($0) ?? 1 }
      if numbers.count == 2 { (row, column) = (min(numbers[0], rows) - 1, numbers[1] - 1) }
      if numbers.first ?? 1 > rows { isOverrun = true }
    default: break
    }
  }

  private mutating func feedLine() {
    row += 1
    guard row == rows else { return }
    row = rows - 1
    cells.removeFirst()
    cells.append([String](repeating: " ", count: columns))
  }

  private mutating func put(_ scalar: Unicode.Scalar) {
    let width = Self.width(of: scalar)
    if width == 0 { return }
    if column + width > columns {
      if wraps {
        column = 0
        feedLine()
      } else {
        isOverrun = true
        column = columns - width
      }
    }
    cells[row][column] = String(Character(scalar))
    if width == 2 { cells[row][column + 1] = "" }
    column += width
  }

  private static func width(of scalar: Unicode.Scalar) -> Int {
    switch scalar.value {
    case 0x300...0x36F, 0x200B...0x200D, 0xFE0F: 0
    case 0x1100...0x115F, 0x2E80...0x9FFF, 0xAC00...0xD7A3, 0xFF00...0xFF60, 0x1F300...0x1FAFF: 2
    default: 1
    }
  }
}

extension TerminalReader {
  /// What a terminal of this size shows after everything that came since it was resized last.
  /// - Parameter start: how many characters to leave out at the beginning.
  func screen(columns: Int, rows: Int, after start: Int = 0) -> TerminalScreen {
    var screen = TerminalScreen(columns: columns, rows: rows)
    screen.take(String(text.dropFirst(start)))
    return screen
  }

  /// Reads until a terminal of this size shows what a condition asks for, and returns its lines.
  func waitForScreen(
    columns: Int, rows: Int, after start: Int = 0, _ isWanted: ([String]) -> Bool
  ) throws -> [String] {
    let end = ContinuousClock.now + testTimeout
    while true {
      let screen = screen(columns: columns, rows: rows, after: start)
      if isWanted(screen.lines) { return screen.lines }
      guard ContinuousClock.now < end, try readMore() else {
        throw TestFailure("the terminal shows something else:\n\(screen.lines.joined(separator: "\n"))")
      }
    }
  }
}
