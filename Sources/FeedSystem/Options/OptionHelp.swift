extension OptionTable {
  /// The column at which the descriptions of the options begin.
  private static let indent = 28

  /// Returns the text that `--help` prints. It ends with a line feed.
  /// - Parameter width: the columns to wrap at, clamped to 50...100.
  public func helpText(width: Int) -> String {
    let width = min(max(width, 50), 100)
    var text = ""
    for (index, line) in usage.enumerated() {
      text += (index == 0 ? "Usage: " : "       ") + program + (line.isEmpty ? "" : " \(line)") + "\n"
    }
    if !examples.isEmpty {
      text += "\nExamples:\n" + examples.split(separator: "\n").map { "  \($0)\n" }.joined()
    }
    text += "\n" + Self.wrap(about, width: width).joined(separator: "\n") + "\n"
    for group in groups where !group.options.isEmpty {
      text += "\n\(group.title):\n"
      for option in group.options { text += Self.entry(option, width: width) }
    }
    if !notes.isEmpty { text += "\n\(notes)\n" }
    return text
  }

  private static func entry(_ option: OptionDescription, width: Int) -> String {
    var head = option.letter.map { "  -\($0), --" } ?? "      --"
    head += option.name
    if let placeholder = option.value.placeholder { head += " \(placeholder)" }
    let sentence =
      option.help + (option.repeats ? "; may be repeated" : "") + (option.defaultText.map { " (default: \($0))" } ?? "")
    let margin = String(repeating: " ", count: indent)
    let lines = wrap(sentence, width: width - indent)
    if head.count + 2 > indent { return head + "\n" + lines.map { margin + $0 + "\n" }.joined() }
    let first = head + String(repeating: " ", count: indent - head.count) + (lines.first ?? "") + "\n"
    return first + lines.dropFirst().map { margin + $0 + "\n" }.joined()
  }

  /// Breaks a text at white space into lines of at most `width` characters. A longer word has a line of its own.
  static func wrap(_ text: String, width: Int) -> [String] {
    var lines: [String] = []
    for word in text.split(whereSeparator: { $0 == " " || $0 == "\n" }) {
      if let last = lines.last, last.count + 1 + word.count <= width {
        lines[lines.count - 1] = "\(last) \(word)"
      } else {
        lines.append(String(word))
      }
    }
    return lines
  }
}
