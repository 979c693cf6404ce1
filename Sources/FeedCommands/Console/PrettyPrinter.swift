import FeedClient
import FeedJSON

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
