import FeedClient
import FeedJSON

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
