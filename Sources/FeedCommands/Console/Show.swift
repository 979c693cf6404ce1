import FeedChange
import FeedClient
import FeedJSON

/// How results look to people, on a terminal.
enum Show {
  /// What a mutation did: its revision and how much came, went and changed.
  static func mutation(_ result: JSONView, _ console: Console) {
    if console.isJSON { return console.print(result) }
    var line = LinePainter(width: console.terminal.columns, palette: console.palette)
    line.add("revision \(result.member("revision")?.int ?? 0)", .dim)
    let counts: [(StaticString, String, Palette.Role)] = [
      ("added", "+", .added), ("updated", "~", .updated), ("deleted", "-", .deleted),
    ]
    var isEmpty = true
    for (name, sign, role) in counts {
      guard let count = result.member(name)?.count, count > 0 else { continue }
      line.add(" \(sign)\(count)", role)
      isEmpty = false
    }
    if isEmpty { line.add(" nothing changed", .dim) }
    console.print(line.text)
  }

  /// That something was done, with the revision it made.
  static func done(_ what: String) -> (JSONView, Console) -> Void {
    { result, console in
      if console.isJSON { return console.print(result) }
      var line = LinePainter(width: console.terminal.columns, palette: console.palette)
      line.add(what)
      if let revision = result.member("revision")?.int { line.add("  revision \(revision)", .dim) }
      console.print(line.text)
    }
  }

  /// A result as it is: one line for programs, indented for people.
  static func value(_ result: JSONView, _ console: Console) {
    if console.isJSON { return console.print(result) }
    console.print(PrettyPrinter(palette: console.palette).text(of: result))
  }

  /// A list inside the result: one item a line for programs, one line cut to the width for people.
  static func items(_ name: StaticString) -> (JSONView, Console) -> Void {
    { result, console in
      guard let list = result.member(name), list.kind == .array else { return value(result, console) }
      for item in list.elements {
        if console.isJSON {
          console.print(item)
        } else {
          var line = LinePainter(width: console.terminal.columns, palette: console.palette)
          line.add(item)
          console.print(line.text)
        }
      }
    }
  }

  /// The items of a list in the result as a table: a column a member.
  static func table(_ name: StaticString) -> (JSONView, Console) -> Void {
    { result, console in
      // A list that is the result itself is taken as well.
      guard let list = result.kind == .array ? result : result.member(name), list.kind == .array else {
        return value(result, console)
      }
      if console.isJSON {
        for item in list.elements { console.print(item) }
      } else {
        console.printRaw(ValueTable(list).text(width: console.terminal.columns, palette: console.palette))
      }
    }
  }

  /// An object's members, one a line, names and values aligned; objects inside are written with points.
  static func members(_ result: JSONView, _ console: Console) {
    if console.isJSON { return console.print(result) }
    let entries = Flattening.entries(of: result)
    let width = entries.map { DisplayWidth.columns(of: $0.name) }.max() ?? 0
    for entry in entries {
      var line = LinePainter(width: console.terminal.columns, palette: console.palette)
      line.add(entry.name, .key)
      line.pad(to: width + 2)
      line.add(entry.value)
      console.print(line.text)
    }
  }
}

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
