import FeedClient
import FeedJSON

/// Prints a list of objects as a table: a column for each member in order of first appearance. Numbers are
/// right-aligned.
struct ValueTable {
  private var names: [String] = []
  private var rows: [[String: JSONView]] = []

  init(_ list: JSONView) {
    for item in list.elements {
      var row: [String: JSONView] = [:]
      for entry in item.kind == .object ? Flattening.entries(of: item) : [("value", item)] {
        if row.updateValue(entry.value, forKey: entry.name) == nil, !names.contains(entry.name) {
          names.append(entry.name)
        }
      }
      rows.append(row)
    }
  }

  /// Returns the lines, each with its newline; "none" for an empty list.
  func text(width: Int, palette: Palette) -> String {
    if rows.isEmpty { return palette.paint("none", .dim) + "\n" }
    let widths = names.map { name in
      max(DisplayWidth.columns(of: name), rows.map { Self.columns($0[name]) }.max() ?? 0)
    }
    var text = line(width, palette) { painter, column in
      painter.add(names[column], .bold)
      painter.pad(to: Self.end(widths, column))
    }
    for row in rows {
      text += line(width, palette) { painter, column in
        let value = row[names[column]]
        let spare = widths[column] - Self.columns(value)
        if value?.kind == .number { painter.pad(to: painter.columns + spare) }
        if let value { painter.add(Self.shown(value), value.role) }
        painter.pad(to: Self.end(widths, column))
      }
    }
    return text
  }

  private func line(_ width: Int, _ palette: Palette, _ add: (inout LinePainter, Int) -> Void) -> String {
    var painter = LinePainter(width: width, palette: palette)
    for column in names.indices { add(&painter, column) }
    return painter.text + "\n"
  }

  /// The end of a column, including the two spaces after it.
  private static func end(_ widths: [Int], _ column: Int) -> Int {
    widths[...column].reduce(0) { $0 + $1 + 2 }
  }

  private static func columns(_ value: JSONView?) -> Int { value.map { DisplayWidth.columns(of: shown($0)) } ?? 0 }

  /// Formats a value: strings without quotes, everything else as JSON.
  private static func shown(_ value: JSONView) -> String { LinePainter.safe(value.string ?? value.source(limit: 60)) }
}

/// The members of an object and of its nested objects, named by their path.
enum Flattening {
  /// The maximum depth of nested objects; deeper objects are values.
  private static let maxDepth = 8

  static func entries(of object: JSONView) -> [(name: String, value: JSONView)] {
    var entries: [(name: String, value: JSONView)] = []
    add(object, prefix: "", depth: 0, to: &entries)
    return entries
  }

  private static func add(
    _ object: JSONView, prefix: String, depth: Int, to entries: inout [(name: String, value: JSONView)]
  ) {
    for member in object.members {
      let name = prefix + (member.key.string ?? "")
      if member.value.kind == .object, member.value.count > 0, depth < maxDepth {
        add(member.value, prefix: name + ".", depth: depth + 1, to: &entries)
      } else {
        entries.append((name, member.value))
      }
    }
  }
}
