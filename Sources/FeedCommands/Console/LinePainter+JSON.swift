import FeedClient
import FeedJSON

extension LinePainter {
  /// Adds a JSON value on one line, its parts coloured, until the line is full.
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

  /// The text of a scalar as it stands in the source.
  var source: String { String(decoding: text, as: UTF8.self) }

  /// The beginning of the source text, enough to fill so many columns.
  func source(limit columns: Int) -> String {
    // A character that takes a column has at most four bytes; some slack for those that take none.
    let bytes = Swift.max(columns, 1) * 8
    guard text.count > bytes else { return source }
    return String(decoding: text.prefix(bytes), as: UTF8.self)
  }
}
