import FeedClient
import FeedJSON

extension Show {
  /// A snapshot: the sections with their names and below each its elements.
  static func snapshot(_ result: JSONView, _ console: Console) {
    guard !console.isJSON, let sections = result.member("sections"), sections.kind == .array else {
      return value(result, console)
    }
    func print(_ add: (inout LinePainter) -> Void) {
      var line = LinePainter(width: console.terminal.columns, palette: console.palette)
      add(&line)
      console.print(line.text)
    }
    print { $0.add("revision \(result.member("revision")?.int ?? 0)", .dim) }
    for section in sections.elements {
      let count = section.member("count")?.int ?? section.member("elements")?.count ?? 0
      print { line in
        line.add(section.member("name")?.string ?? "", .title)
        line.add("  \(count)", .dim)
      }
      guard let elements = section.member("elements") else { continue }
      for element in elements.elements {
        print { line in
          line.add("  ")
          line.add(element)
        }
      }
    }
  }

  /// Feeds as a tree, for programs too unless they ask for JSON: whoever wants a tree wants to see it.
  static func tree(_ result: JSONView, _ console: Console) {
    guard !console.wantsJSON, let list = result.member("feeds") else { return feeds(result, console) }
    for line in FeedTree(list).lines(width: console.terminal.columns, palette: console.palette) { console.print(line) }
  }

  /// Feeds as a table: name, kind, rows a section, revision.
  static func feeds(_ result: JSONView, _ console: Console) {
    guard let list = result.kind == .array ? result : result.member("feeds"), list.kind == .array else {
      return value(result, console)
    }
    if console.isJSON {
      for feed in list.elements { console.print(feed) }
      return
    }
    if list.count == 0 { return console.print(console.palette.paint("no feeds are defined", .dim)) }
    let names = list.elements.map { LinePainter.safe($0.member("feed")?.string ?? "") }
    let width = names.map(DisplayWidth.columns(of:)).max() ?? 0
    for (name, feed) in zip(names, list.elements) {
      var line = LinePainter(width: console.terminal.columns, palette: console.palette)
      line.add(name, .bold)
      line.pad(to: width + 2)
      line.add(feed.member("kind")?.string ?? "", .dim)
      line.pad(to: width + 14)
      for (place, section) in FeedSections(feed).summaries.enumerated() {
        line.add(place == 0 ? "" : "  ")
        line.add(section.name, .key)
        line.add(" \(section.count)", .number)
      }
      if let revision = feed.member("revision")?.int { line.add("  revision \(revision)", .dim) }
      console.print(line.text)
    }
  }
}

/// The sections of a described feed, whichever of the ways of telling them the daemon chose.
private struct FeedSections {
  private(set) var summaries: [(name: String, count: Int)] = []

  init(_ feed: JSONView) {
    let counts = feed.member("counts")?.elements.map { $0.int ?? 0 } ?? []
    guard let sections = feed.member("sections") else { return }
    for (place, section) in sections.elements.enumerated() {
      let count = section.member("count")?.int ?? (place < counts.count ? counts[place] : 0)
      summaries.append((section.member("name")?.string ?? section.string ?? "", count))
    }
  }
}
