import FeedJSON

/// Prints a list of objects as a table: a column for each member in order of first appearance. Numbers are
/// right-aligned.
///
/// If the table is too wide, empty columns are removed first, then the least important ones, which are the last ones unless
/// the caller says what is important.
struct ValueTable {
  /// Members that are identifiers, so that their digits are not grouped.
  fileprivate static let names: Set<String> = ["uid", "pid"]

  /// The values of one member.
  private struct Column {
    var name: String
    var cells: [String]
    var values: [JSONView?]

    var width: Int { max(DisplayWidth.columns(of: name), cells.map(DisplayWidth.columns(of:)).max() ?? 0) }

    /// Adds empty cells up to a number of rows.
    mutating func extend(to count: Int) {
      while cells.count < count {
        cells.append("")
        values.append(nil)
      }
    }

    /// Whether every value is missing, zero or empty.
    var isEmpty: Bool {
      values.allSatisfy { value in
        guard let value else { return true }
        if ValueTable.names.contains(name) { return false }
        switch value.kind {
        case .null, .false: return true
        case .number: return value.int == 0
        case .string: return value.string == ""
        case .array, .object: return value.count == 0
        case .true: return false
        }
      }
    }
  }

  private var columns: [Column] = []
  private var count = 0
  /// The names of the columns that are removed last, most important first.
  private let important: [String]

  init(_ list: JSONView, important: [String] = []) {
    self.important = important
    for item in list.elements {
      for entry in item.kind == .object ? Flattening.entries(of: item) : [("value", item)] {
        let place = columns.firstIndex { $0.name == entry.name } ?? columns.count
        if place == columns.count { columns.append(Column(name: entry.name, cells: [], values: [])) }
        guard columns[place].values.count <= count else { continue }
        columns[place].extend(to: count)
        columns[place].values.append(entry.value)
        columns[place].cells.append(Self.shown(entry.value, of: entry.name))
      }
      count += 1
    }
    for place in columns.indices { columns[place].extend(to: count) }
  }

  /// Returns the lines, each with its newline; "none" for an empty list.
  func text(width: Int, palette: Palette) -> String {
    if count == 0 { return palette.paint("none", .dim) + "\n" }
    let kept = fitting(width)
    let isCut = columns.contains { column in !column.isEmpty && !kept.contains { $0.name == column.name } }
    var text = line(kept, width, palette, end: isCut ? " …" : "") { column, painter in painter.add(column.name, .bold) }
    for row in 0..<count {
      text += line(kept, width, palette) { column, painter in
        let (cell, value) = (column.cells[row], column.values[row])
        if value?.kind == .number {
          painter.pad(to: painter.columns + column.width - DisplayWidth.columns(of: cell))
        }
        painter.add(cell, value?.role ?? .plain)
      }
    }
    return text
  }

  private func fitting(_ width: Int) -> [Column] {
    // The painter reserves the last column of the screen.
    func isTooWide(_ columns: [Column], _ mark: Int = 0) -> Bool {
      columns.reduce(-2) { $0 + $1.width + 2 } + mark > width - 1
    }
    var kept = columns
    while isTooWide(kept), let empty = kept.lastIndex(where: \.isEmpty) { kept.remove(at: empty) }
    if !isTooWide(kept) { return kept }
    while kept.count > 1, isTooWide(kept, 2) { kept.remove(at: leastImportant(kept)) }
    return kept
  }

  private func leastImportant(_ columns: [Column]) -> Int {
    if let other = columns.lastIndex(where: { !important.contains($0.name) }) { return other }
    for name in important.reversed() {
      if let place = columns.firstIndex(where: { $0.name == name }) { return place }
    }
    return columns.count - 1
  }

  private func line(
    _ columns: [Column], _ width: Int, _ palette: Palette, end: String = "", _ add: (Column, inout LinePainter) -> Void
  ) -> String {
    var painter = LinePainter(width: width, palette: palette)
    for (place, column) in columns.enumerated() {
      let start = painter.columns
      add(column, &painter)
      if place + 1 < columns.count { painter.pad(to: start + column.width + 2) }
    }
    painter.add(end, .dim)
    return painter.text + "\n"
  }

  /// Formats a value: strings without quotes, integers with grouped digits, everything else as JSON.
  private static func shown(_ value: JSONView, of name: String) -> String {
    if let number = value.int, !names.contains(name) { return grouped(number) }
    return (value.string ?? value.source(limit: 60)).inLine
  }
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

/// Prints the feeds as a tree: each feed with its children below it, down to the bins of collections.
struct FeedTree {
  private struct Node {
    var kind: String
    var count: Int?
    var children: [String]
    /// The index of the active child of a segmented feed.
    var current: Int?
  }

  private var nodes: [String: Node] = [:]
  private var names: [String] = []

  /// Parses the list in the result of `feeds`.
  init(_ feeds: JSONView) {
    for feed in feeds.elements {
      guard let name = feed.member("feed")?.string else { continue }
      var children = feed.member("children")?.elements.compactMap(\.string) ?? []
      if let contents = feed.member("contents") { children += contents.members.compactMap(\.value.string) }
      children += Self.bins(of: feed).compactMap { $0.member("name")?.string }
      let isSegmented = feed.member("kind")?.string == "segmented"
      nodes[name] = Node(
        kind: feed.member("kind")?.string ?? "", count: feed.member("count")?.int, children: children,
        current: isSegmented ? feed.member("current")?.int : nil)
      names.append(name)
      addBins(of: feed)
    }
  }

  /// The sections of a feed that are bins. Sections by value are not: there may be many, and none is a feed.
  private static func bins(of feed: JSONView) -> [JSONView] {
    guard feed.member("bins") != nil, feed.member("section") == nil, let sections = feed.member("sections") else {
      return []
    }
    return Array(sections.elements)
  }

  private mutating func addBins(of feed: JSONView) {
    for section in Self.bins(of: feed) {
      guard let name = section.member("name")?.string else { continue }
      nodes[name] = Node(kind: "bin", count: section.member("count")?.int, children: [], current: nil)
    }
  }

  /// Returns the lines, starting with the feeds that have no parent.
  func lines(width: Int, palette: Palette) -> [String] {
    let owned = Set(names.flatMap { nodes[$0]?.children ?? [] })
    var lines: [String] = []
    for name in names where !owned.contains(name) {
      add(name, branch: "", margin: "", above: [], width, palette, to: &lines)
    }
    return lines
  }

  private func add(
    _ name: String, branch: String, margin: String, above: Set<String>, isCurrent: Bool = false, _ width: Int,
    _ palette: Palette, to lines: inout [String]
  ) {
    var line = LinePainter(width: width, palette: palette)
    let node = nodes[name]
    line.add(branch, .dim)
    line.add(name, node?.kind == "bin" ? .key : .bold)
    line.add("  \(node?.kind ?? "undefined")", .dim)
    if let count = node?.count { line.add("  \(grouped(count))", .number) }
    if isCurrent { line.add("  shows", .added) }
    lines.append(line.text)
    // The daemon refuses cycles. The check prevents an endless tree if its answer is wrong.
    guard let node, !above.contains(name) else { return }
    for (place, child) in node.children.enumerated() {
      let isLast = place == node.children.count - 1
      add(
        child, branch: margin + (isLast ? "└─ " : "├─ "), margin: margin + (isLast ? "   " : "│  "),
        above: above.union([name]), isCurrent: node.current == place, width, palette, to: &lines)
    }
  }
}
