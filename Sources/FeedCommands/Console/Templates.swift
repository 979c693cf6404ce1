import FeedClient
import FeedJSON

/// Texts with fields that format rows, one template for each type of row: `Style={title} by {author.name}`.
///
/// A field is `{PATH|DEFAULT:FORMAT}` or `{PATH:FORMAT|DEFAULT}`: a path of names and indices, the text for a missing or
/// null value, and a width with an alignment (`<` left, `>` right, `^` centre). In the second form the default may contain
/// a colon. `{{` and `}}` are literal braces. `{}` is the whole element.
struct Templates: Equatable, Sendable {
  private var byType: [String: Template] = [:]
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
      byType[String(word[..<equals])] = try Template(word[word.index(after: equals)...], option: "--template")
    } else {
      fallback = try Template(word[...], option: "--template")
    }
  }

  /// Appends a row's element to a line, by the template of its type or as JSON.
  func add(_ element: JSONView, type: String?, to line: inout LinePainter) {
    if let template = type.flatMap({ byType[$0] }) ?? fallback {
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
  /// - Throws: a usage error that names the malformed part.
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
            "cannot read {\(body)}; expected {PATH}, {PATH|DEFAULT}, {PATH:WIDTH} or {PATH:WIDTH|DEFAULT}, such as {user.name:>10}"
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

  /// Appends an element to a line.
  func add(_ element: JSONView, to line: inout LinePainter) {
    for piece in pieces where !line.isCut {
      switch piece {
      case .text(let text): line.add(text)
      case .field(let field): Self.add(field, of: element, to: &line)
      }
    }
  }

  private static func add(_ field: Field, of element: JSONView, to line: inout LinePainter) {
    let value = field.path.resolve(element)
    guard field.width > 0 else {
      if let value, value.kind != .null { return add(value, to: &line) }
      return line.add(field.standIn ?? "")
    }
    // Text of a fixed width is measured on a separate line, which is truncated at that width.
    var cell = LinePainter(width: field.width + 1, palette: Palette(isOn: false))
    if let value, value.kind != .null { add(value, to: &cell) } else { cell.add(field.standIn ?? "") }
    let cut = cell.columns > field.width ? LinePainter.cut(cell.text, to: field.width) : cell.text
    let spare = max(field.width - DisplayWidth.columns(of: cut), 0)
    let isRight = field.alignment == .right || field.alignment == nil && value?.kind == .number
    let before = field.alignment == .centre ? spare / 2 : isRight ? spare : 0
    line.add(String(repeating: " ", count: before) + cut + String(repeating: " ", count: spare - before))
  }

  /// Appends a value: strings without quotes, arrays and objects as JSON.
  private static func add(_ value: JSONView, to line: inout LinePainter) {
    if let text = value.string {
      line.add(String(text.map { $0.isNewline ? " " : $0 }))
    } else if value.kind == .object || value.kind == .array {
      line.add(value)
    } else {
      line.add(value.source(limit: line.room))
    }
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
    if head.isEmpty {
      path = MemberPath(steps: [])
    } else {
      guard let found = MemberPath(dotted: head) else { return nil }
      path = found
    }
  }
}
