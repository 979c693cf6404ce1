import FeedJSON

/// JSON indented for people, with colours. What is nested deeper than a screen could show stays on one line.
struct PrettyPrinter {
  private static let maxDepth = 40
  let palette: Palette

  func text(of view: JSONView) -> String {
    var text = ""
    add(view, indent: 0, to: &text)
    return text
  }

  private func add(_ view: JSONView, indent: Int, to text: inout String) {
    guard view.kind == .object || view.kind == .array, view.count > 0, indent < Self.maxDepth else {
      text += palette.paint(LinePainter.safe(String(decoding: view.compactText, as: UTF8.self)), view.role)
      return
    }
    let margin = "\n" + String(repeating: "  ", count: indent + 1)
    var separator = ""
    text += view.kind == .object ? "{" : "["
    for member in view.members {
      text += separator + margin + palette.paint(LinePainter.safe(member.key.source), .key) + ": "
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
