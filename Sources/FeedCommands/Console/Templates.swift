import FeedClient
import FeedJSON

/// Texts with fields that format rows, one template for each type of row: `Style={title} by {author.name}`.
///
/// A field is `{PATH!FILTER|DEFAULT:FORMAT}` or `{PATH!FILTER:FORMAT|DEFAULT}`: a path of names and indices, filters for
/// other programs (``TextFilter``), the text for a missing or null value, and a width with an alignment (`<` left, `>` right,
/// `^` centre). In the second form the default may contain a colon. `{{` and `}}` are literal braces. `{}` is the whole
/// element.
struct Templates: Equatable, Sendable {
  /// By the bytes of the type: `String` takes "é" in one and in two code points for the same.
  private var byType: [[UInt8]: Template] = [:]
  private var fallback: Template?

  /// Whether there is no template. Rows are then shown as JSON.
  var isEmpty: Bool { byType.isEmpty && fallback == nil }

  init() {}

  /// Parses the values of `--template`.
  init(_ words: [String]) throws(Failure) {
    for word in words { try add(word) }
  }

  /// Adds `TYPE=TEMPLATE`, or a template for all other rows, which has no `=` before its first brace.
  mutating func add(_ word: String) throws(Failure) {
    let brace = word.firstIndex(of: "{") ?? word.endIndex
    if let equals = word[..<brace].firstIndex(of: "=") {
      byType[Array(word[..<equals].utf8)] = try Template(word[word.index(after: equals)...], option: "--template")
    } else {
      fallback = try Template(word[...], option: "--template")
    }
  }

  /// Appends a row's element, a JSON text, to a line.
  func add(_ element: [UInt8], type: String?, to line: inout LinePainter) {
    _ = element.readJSON { add($0, type: type, to: &line) }
  }

  /// Appends a row's element to a line, by the template of its type or as JSON.
  func add(_ element: JSONView, type: String?, to line: inout LinePainter) {
    if let template = type.flatMap({ byType[Array($0.utf8)] }) ?? fallback {
      template.add(element, to: &line)
    } else {
      line.add(element)
    }
  }
}

/// A text with fields; see ``Templates``.
struct Template: Equatable, Sendable {
  fileprivate enum Alignment: Character {
    case left = "<"
    case right = ">"
    case centre = "^"
  }

  fileprivate struct Field: Equatable, Sendable {
    var path: MemberPath
    var filters: [TextFilter] = []
    var standIn: String?
    var alignment: Alignment?
    var width = 0
  }

  private enum Piece: Equatable, Sendable {
    case text(String)
    case field(Field)
  }

  private var pieces: [Piece] = []

  /// Parses a template.
  /// - Parameter option: the option of the template, for errors.
  init(_ text: Substring, option: String) throws(Failure) {
    func refuse(_ reason: String) -> Failure { .usage("\(option) '\(text)': \(reason)") }
    var plain = ""
    var rest = text
    while let character = rest.popFirst() {
      if (character == "{" || character == "}"), rest.first == character {
        plain.append(character)
        rest.removeFirst()
      } else if character == "{" {
        guard let close = rest.firstIndex(of: "}") else { throw refuse("{ without }; write {{ for a brace") }
        let body = rest[..<close]
        guard let field = Field(body) else {
          throw refuse(
            "cannot read {\(body)}; expected {PATH!FILTER|DEFAULT:WIDTH} or {PATH!FILTER:WIDTH|DEFAULT}, "
              + "such as {user.name:>10} or {text!json}; FILTER is json or markup"
          )
        }
        if !plain.isEmpty { pieces.append(.text(plain)) }
        plain = ""
        pieces.append(.field(field))
        rest = rest[rest.index(after: close)...]
      } else if character == "}" {
        throw refuse("} without {; write }} for a brace")
      } else {
        plain.append(character)
      }
    }
    if !plain.isEmpty { pieces.append(.text(plain)) }
  }

  func add(_ element: JSONView, to line: inout LinePainter) {
    for piece in pieces where !line.isCut {
      switch piece {
      case .text(let text):
        for (place, part) in text.split(separator: "\t", omittingEmptySubsequences: false).enumerated() {
          if place > 0 { line.addTab() }
          line.add(part)
        }
      case .field(let field): field.add(element, to: &line)
      }
    }
  }
}

extension Template.Field {
  fileprivate func add(_ element: JSONView, to line: inout LinePainter) {
    if let value = path.resolve(element), value.kind != .null {
      add(value: value, to: &line)
    } else {
      add(value: nil, to: &line)
    }
  }

  /// Appends a value, or what stands for a missing one, to a line.
  private func add(value: JSONView?, to line: inout LinePainter) {
    guard filters.isEmpty else { return line.add(filtered(value).withSpaces) }
    if width > 0 { return line.add(fitted(value)) }
    guard let value else { return line.add(standIn ?? "") }
    Self.add(value, to: &line)
  }

  /// The text of a value with the width of the field: cut with an ellipsis, or padded with spaces.
  private func fitted(_ value: JSONView?) -> String {
    // The text is measured on a separate line, which is truncated at that width.
    var cell = LinePainter(width: width + 1, palette: Palette(isOn: false))
    if let value { Self.add(value, to: &cell) } else { cell.add(standIn ?? "") }
    let cut = cell.columns > width ? LinePainter.cut(cell.text, to: width) : cell.text
    let spare = max(width - DisplayWidth.columns(of: cut), 0)
    let isRight = alignment == .right || alignment == nil && value?.kind == .number
    let before = alignment == .centre ? spare / 2 : isRight ? spare : 0
    return String(repeating: " ", count: before) + cut + String(repeating: " ", count: spare - before)
  }

  /// The text of a value for another program. A width applies before the filters, so that it cuts no escape.
  private func filtered(_ value: JSONView?) -> String {
    var filters = filters[...]
    var text: String
    if width > 0 {
      text = fitted(value)
    } else if filters.first == .json, value != nil || standIn == nil {
      filters.removeFirst()
      text = value.map(TextFilter.json(of:)) ?? "null"
    } else {
      text = value.map { $0.string ?? String(decoding: $0.compactText, as: UTF8.self) } ?? standIn ?? ""
    }
    for filter in filters { text = filter.apply(to: text) }
    return text
  }

  /// Appends a value: strings without quotes, arrays and objects as JSON.
  private static func add(_ value: JSONView, to line: inout LinePainter) {
    if let text = value.string {
      line.add(text.withSpaces)
    } else if value.kind == .object || value.kind == .array {
      line.add(value)
    } else {
      line.add(value.source(limit: line.room))
    }
  }
}

extension String {
  /// The text with a space for each tab and line break.
  fileprivate var withSpaces: String {
    guard unicodeScalars.contains(where: { $0.properties.isWhitespace && $0 != " " }) else { return self }
    return String(map { $0.isNewline || $0 == "\t" ? " " : $0 })
  }
}

/// A conversion of a field's text for the program that reads it.
///
///     {"text":{text!markup!json},"class":{level!json}}
enum TextFilter: String, Equatable, Sendable, CaseIterable {
  /// A JSON value: the value itself, or a text as a string.
  case json
  /// Text of XML, HTML and Pango markup.
  case markup

  func apply(to text: String) -> String {
    switch self {
    case .json: Self.inLine(Array(text.quotedAsJSON.utf8))
    case .markup: Self.escaped(text)
    }
  }

  /// The JSON text of a value, in one line that is safe to print.
  static func json(of value: JSONView) -> String { inLine(value.compactText) }

  /// Escapes what could control a terminal.
  private static func inLine(_ json: [UInt8]) -> String {
    json.withUnsafeBytes { bytes in
      let escaped = TerminalFilter.filtered(bytes)
      return String(decoding: escaped.bytes, as: UTF8.self)
    }
  }

  /// Escapes the characters of markup. Replaces those that XML does not allow.
  private static func escaped(_ text: String) -> String {
    var escaped = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      case "\"": escaped += "&quot;"
      case "'": escaped += "&#39;"
      case "\t", "\n", "\r": escaped.unicodeScalars.append(scalar)
      case "\0"..<" ", "\u{FFFE}"..."\u{FFFF}": escaped += "\u{FFFD}"
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }
}

extension Template.Field {
  /// Parses the text between the braces; nil if it is malformed.
  fileprivate init?(_ body: Substring) {
    var head = body
    if let bar = body.firstIndex(of: "|"), body[..<bar].contains(":") {
      standIn = String(body[body.index(after: bar)...])
      head = body[..<bar]
    }
    if let colon = head.lastIndex(of: ":") {
      var format = head[head.index(after: colon)...]
      alignment = format.first.flatMap(Template.Alignment.init)
      if alignment != nil { format.removeFirst() }
      guard let number = Int(format), (1...1000).contains(number), format.first?.isNumber == true else { return nil }
      width = number
      head = head[..<colon]
    }
    if let bar = head.firstIndex(of: "|") {
      standIn = String(head[head.index(after: bar)...])
      head = head[..<bar]
    }
    let words = head.split(separator: "!", omittingEmptySubsequences: false)
    for word in words.dropFirst() {
      guard let filter = TextFilter(rawValue: String(word)) else { return nil }
      filters.append(filter)
    }
    head = words.first ?? ""
    if head.isEmpty {
      path = MemberPath(steps: [])
    } else {
      guard let found = MemberPath(dotted: head) else { return nil }
      path = found
    }
  }
}
