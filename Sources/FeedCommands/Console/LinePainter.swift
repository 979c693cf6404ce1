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

  var room: Int { width - columns }

  /// Appends text. Text that does not fit is truncated and ends in an ellipsis; later pieces are ignored.
  mutating func add(_ piece: some StringProtocol, _ role: Palette.Role = .plain) {
    if isCut { return }
    let piece = String(piece).inLine
    // The last column is reserved for the ellipsis, because more text may follow.
    let fitting = DisplayWidth.prefix(of: piece, columns: width - 1 - columns)
    text += palette.paint(String(fitting.text), role)
    columns += fitting.columns
    if fitting.text.endIndex < piece.endIndex { cut() }
  }

  /// Ends the line with an ellipsis.
  private mutating func cut() {
    isCut = true
    text += palette.paint("…", .dim)
    columns += 1
  }

  /// Advances to the next multiple of eight columns: with spaces, or with a tab in a line that is not truncated.
  mutating func addTab() {
    let stop = (columns / 8 + 1) * 8
    guard width == Self.unlimited, !isCut else { return pad(to: stop) }
    text += "\t"
    columns = stop
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
    default: add(scalar: view)
    }
  }

  /// Appends a scalar. Only the beginning of a long one is decoded: if characters have many bytes, not all columns are used.
  private mutating func add(scalar view: JSONView) {
    let source = view.source(limit: room)
    add(source, view.role)
    if !isCut, source.utf8.count < view.text.count { cut() }
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

  /// The source text of a scalar, or its beginning, which nearly always fills `columns`. It ends at a character.
  func source(limit columns: Int) -> String {
    let bytes = Swift.max(columns, 1) * 64
    guard text.count > bytes else { return source }
    let end = Swift.max(bytes, 1)
    // A character that is cut becomes U+FFFD or another one; the last one is omitted.
    return String(String(decoding: text.prefix(end), as: UTF8.self).dropLast())
  }
}

struct Palette: Equatable, Sendable {
  /// The role of a piece of text.
  enum Role: Sendable {
    case plain, dim, bold
    case key, string, number, literal
    case added, updated, moved, deleted, selected
    case title, error
  }

  var isOn: Bool

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

/// Prints JSON indented and coloured. Short values and deeply nested values stay on one line.
struct PrettyPrinter {
  private static let maxDepth = 40
  /// The maximum bytes of an array or object on one line.
  private static let shortLength = 60
  let palette: Palette
  /// The columns of the terminal.
  var width = 80

  func text(of view: JSONView) -> String {
    var text = ""
    add(view, indent: 0, to: &text)
    return text
  }

  private func add(_ view: JSONView, indent: Int, to text: inout String) {
    let room = max(min(Self.shortLength, width - 2 * indent - 2), 10)
    guard view.kind == .object || view.kind == .array, view.text.count > room, indent < Self.maxDepth else {
      var line = LinePainter(width: LinePainter.unlimited, palette: palette)
      if indent < Self.maxDepth { line.add(view) } else { line.add(String(decoding: view.compactText, as: UTF8.self)) }
      text += line.text
      return
    }
    let margin = "\n" + String(repeating: "  ", count: indent + 1)
    var separator = ""
    text += view.kind == .object ? "{" : "["
    for member in view.members {
      text += separator + margin + palette.paint(member.key.source.inLine, .key) + ": "
      add(member.value, indent: indent + 1, to: &text)
      separator = ","
    }
    for element in view.elements {
      text += separator + margin
      add(element, indent: indent + 1, to: &text)
      separator = ","
    }
    text += "\n" + String(repeating: "  ", count: indent) + (view.kind == .object ? "}" : "]")
  }
}
