import FeedClient
import FeedJSON

/// How rows look on a terminal by their type: `Style={title} by {author}`.
struct Templates: Equatable, Sendable {
  private enum Piece: Equatable, Sendable {
    case text(String)
    case value(MemberPath)
  }

  private var byType: [String: [Piece]] = [:]
  private var fallback: [Piece]?

  /// Adds `TYPE=TEMPLATE`, or a template for all rows that have none: one without a `=` before its first brace.
  mutating func add(_ word: String) throws(Failure) {
    let brace = word.firstIndex(of: "{") ?? word.endIndex
    if let equals = word[..<brace].firstIndex(of: "=") {
      byType[String(word[..<equals])] = try Self.parse(word[word.index(after: equals)...])
    } else {
      fallback = try Self.parse(word[...])
    }
  }

  private static func parse(_ template: Substring) throws(Failure) -> [Piece] {
    var pieces: [Piece] = []
    var rest = template
    while let open = rest.firstIndex(of: "{") {
      if open > rest.startIndex { pieces.append(.text(String(rest[..<open]))) }
      guard let close = rest[open...].firstIndex(of: "}") else {
        throw .usage("--template '\(template)': a { has no }")
      }
      guard let path = MemberPath(dotted: rest[rest.index(after: open)..<close]) else {
        throw .usage("--template '\(template)': expected a member between { and }, such as {title} or {user.name}")
      }
      pieces.append(.value(path))
      rest = rest[rest.index(after: close)...]
    }
    if !rest.isEmpty { pieces.append(.text(String(rest))) }
    return pieces
  }

  /// Adds a row's element to a line: by the template of its type, or as JSON.
  func add(_ element: JSONView, type: String?, to line: inout LinePainter) {
    guard let pieces = type.flatMap({ byType[$0] }) ?? fallback else {
      line.add(element)
      return
    }
    for piece in pieces where !line.isCut {
      switch piece {
      case .text(let text): line.add(text)
      case .value(let path): add(path.resolve(element), to: &line)
      }
    }
  }

  /// Strings without their quotes, arrays and objects as JSON, nothing for what is not there.
  private func add(_ value: JSONView?, to line: inout LinePainter) {
    guard let value, value.kind != .null else { return }
    if let text = value.string {
      line.add(String(text.map { $0.isNewline ? " " : $0 }))
    } else if value.kind == .object || value.kind == .array {
      line.add(value)
    } else {
      line.add(value.source(limit: line.room))
    }
  }
}
