import FeedClient
import FeedJSON

/// Builds one line of a terminal from coloured pieces. Truncates it at the width and replaces control characters.
struct LinePainter {
  /// The width of lines that are not truncated.
  static let unlimited = 1 << 40

  private let palette: Palette
  private let width: Int
  private(set) var text = ""
  /// The number of columns used so far.
  private(set) var columns = 0
  /// Whether the line was truncated.
  private(set) var isCut = false

  /// Creates an empty line of at most `width` columns.
  init(width: Int, palette: Palette) {
    self.width = max(width, 1)
    self.palette = palette
  }

  /// The number of columns left.
  var room: Int { width - columns }

  /// Appends text. Text that does not fit is truncated and ends in an ellipsis; later pieces are ignored.
  mutating func add(_ piece: some StringProtocol, _ role: Palette.Role = .plain) {
    if isCut { return }
    var shown = ""
    for scalar in piece.unicodeScalars {
      let safe = scalar.inLine
      let needed = DisplayWidth.columns(of: safe)
      // The last column is reserved for the ellipsis, because more text may follow.
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

  /// Appends text only if all of it fits.
  mutating func addWhole(_ piece: String, _ role: Palette.Role = .plain) {
    if columns + DisplayWidth.columns(of: piece.inLine) <= width - 1 { add(piece, role) }
  }

  /// Appends words while they fit; the rest becomes an ellipsis. The first word of a line is truncated if it does not
  /// fit.
  mutating func addWords(_ piece: String, _ role: Palette.Role = .plain) {
    let piece = piece.inLine
    if isCut { return }
    if columns + DisplayWidth.columns(of: piece) <= width - 1 { return add(piece, role) }
    var fitting = piece[...]
    while let space = fitting.lastIndex(of: " ") {
      fitting = fitting[..<space]
      if columns + DisplayWidth.columns(of: String(fitting)) <= width - 3 { break }
    }
    guard columns > 0 || fitting.contains(where: { $0 != " " }) else { return add(piece, role) }
    if fitting.contains(where: { $0 != " " }) { add(fitting, role) }
    add(columns + 2 <= width - 1 ? " …" : "…", .dim)
    isCut = true
  }

  /// Fills the line with spaces up to its width.
  mutating func fill() {
    if columns < width { text += String(repeating: " ", count: width - columns) }
    columns = max(columns, width)
  }

  /// Appends spaces up to a column.
  mutating func pad(to column: Int) {
    if column > columns { add(String(repeating: " ", count: column - columns)) }
  }
}

extension LinePainter {
  /// Quotes a word for a shell: single quotes, unless it needs none.
  static func shellWord(_ word: String) -> String {
    let isPlain =
      !word.isEmpty
      && word.utf8.allSatisfy { byte in
        UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte || UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte
          || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || "/._-+:,@%".utf8.contains(byte)
      }
    return isPlain ? word : "'\(word.replacing("'", with: "'\\''"))'"
  }

  /// Truncates printable text to a width. The last column becomes an ellipsis if text is lost.
  static func cut(_ text: String, to width: Int) -> String {
    if DisplayWidth.columns(of: text) <= width { return text }
    var line = LinePainter(width: width, palette: Palette(isOn: false))
    line.add(text)
    return line.text
  }
}

extension LinePainter {
  /// Appends a coloured JSON value, until the line is full.
  mutating func add(_ view: JSONView) {
    if isCut { return }
    switch view.kind {
    case .object:
      add("{")
      var isFirst = true
      for member in view.members {
        if isCut { return }
        if !isFirst { add(", ", .dim) }
        isFirst = false
        add(member.key.source, .key)
        add(": ", .dim)
        add(member.value)
      }
      add("}")
    case .array:
      add("[")
      var isFirst = true
      for element in view.elements {
        if isCut { return }
        if !isFirst { add(", ", .dim) }
        isFirst = false
        add(element)
      }
      add("]")
    default:
      add(view.source(limit: room), view.role)
    }
  }
}

extension JSONView {
  /// The colour of a scalar.
  var role: Palette.Role {
    switch kind {
    case .string: .string
    case .number: .number
    case .null, .true, .false: .literal
    case .object, .array: .plain
    }
  }

  /// The text of a scalar as in the source.
  var source: String { String(decoding: text, as: UTF8.self) }

  /// The beginning of the source text, enough to fill `columns`.
  func source(limit columns: Int) -> String {
    // A character has at most four bytes; the factor allows for characters without width.
    let bytes = Swift.max(columns, 1) * 8
    guard text.count > bytes else { return source }
    return String(decoding: text.prefix(bytes), as: UTF8.self)
  }
}

/// The colours of text on a terminal, by role.
struct Palette: Equatable, Sendable {
  /// The role of a piece of text.
  enum Role: Sendable {
    case plain, dim, bold
    case key, string, number, literal
    case added, updated, moved, deleted, selected
    case title, error
  }

  var isOn: Bool

  /// Returns the text in the colour of its role.
  func paint(_ text: String, _ role: Role) -> String {
    guard isOn, let code = Self.code(role) else { return text }
    return "\u{1B}[\(code)m\(text)\u{1B}[0m"
  }

  private static func code(_ role: Role) -> String? {
    switch role {
    case .plain: nil
    case .dim: "2"
    case .bold: "1"
    case .key: "36"
    case .string: "32"
    case .number: "33"
    case .literal: "35"
    case .added: "1;32"
    case .updated: "1;33"
    case .moved: "1;36"
    case .deleted: "1;31"
    case .selected: "1;35"
    case .title: "1;4"
    case .error: "1;31"
    }
  }
}

/// The width of characters on a terminal.
enum DisplayWidth {
  /// 0 for combining marks, 2 for East Asian wide characters and emoji, 1 for the rest.
  static func columns(of scalar: Unicode.Scalar) -> Int {
    let value = scalar.value
    if value < 0x300 { return 1 }
    switch scalar.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format: return 0
    default: break
    }
    return isWide(value) ? 2 : 1
  }

  /// The columns of a text whose scalars are all printable.
  static func columns(of text: String) -> Int { text.unicodeScalars.reduce(0) { $0 + columns(of: $1) } }

  /// The Unicode blocks with wide or full-width characters (EastAsianWidth), approximately.
  private static func isWide(_ value: UInt32) -> Bool {
    switch value {
    case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0x9FFF, 0xA000...0xA4CF,
      0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6,
      0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1F9FF, 0x1FA70...0x1FAFF, 0x20000...0x3FFFD:
      true
    default: false
    }
  }
}
