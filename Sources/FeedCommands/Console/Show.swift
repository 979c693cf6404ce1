import FeedClient
import FeedJSON

/// Prints results: as JSON for programs, as text for people.
enum Show {
  /// The maximum number of rows that the JSON of a mutation lists unless `--json` was given.
  private static let maxRows = 1000

  /// Prints the revision of a mutation, and the places of the rows that it changed or, for people and for many rows, their
  /// numbers.
  static func mutation(_ result: JSONView, _ console: Console) {
    let counts = MutationCounts(result)
    if console.isJSON {
      if console.wantsJSON || counts.rows <= maxRows { return console.print(result) }
      return console.print(counts.json)
    }
    var line = console.line()
    line.add("revision \(grouped(counts.revision))", .dim)
    let signs: [(String, String, Palette.Role)] = [
      ("added", "+", .added), ("updated", "~", .updated), ("deleted", "-", .deleted),
    ]
    var isEmpty = true
    for (name, sign, role) in signs {
      guard let count = counts[name], count > 0 else { continue }
      line.add(" \(sign)\(grouped(count))", role)
      isEmpty = false
    }
    if isEmpty { line.add(" no change", .dim) }
    console.print(line.text)
  }

  /// Prints a sentence and the revision of the result.
  static func done(_ what: String) -> (JSONView, Console) -> Void {
    { result, console in
      if console.isJSON { return console.print(result) }
      var line = console.line()
      line.add(what)
      if let revision = result.member("revision")?.int { line.add("  revision \(grouped(revision))", .dim) }
      console.print(line.text)
    }
  }

  /// Prints the result: one line for programs, indented for people.
  static func value(_ result: JSONView, _ console: Console) {
    if console.isJSON { return console.print(result) }
    console.print(PrettyPrinter(palette: console.palette, width: console.terminal.columns).text(of: result))
  }

  /// Prints the result of a change of the selection; see ``selection(_:_:)``. The JSON for many rows has their number.
  static func changedSelection(_ result: JSONView, _ console: Console) {
    let counts = MutationCounts(result)
    guard console.isJSON, !console.wantsJSON, counts.rows > maxRows else { return selection(result, console) }
    console.print(counts.json)
  }

  /// Prints the revision and the places of the selected rows, as the commands take them.
  static func selection(_ result: JSONView, _ console: Console) {
    guard !console.isJSON, let selected = result.member("selected") else { return value(result, console) }
    var line = console.line()
    line.add("revision \(grouped(result.member("revision")?.int ?? 0))", .dim)
    line.add(selected.count == 0 ? " nothing selected" : " \(counted(selected.count, "row")) selected:")
    for place in places(selected) {
      if line.isCut { break }
      line.add(" ")
      line.add(place, .number)
    }
    console.print(line.text)
  }

  /// Prints the element in the result of `get`, with its places and type, or by a template.
  static func element(_ result: JSONView, _ console: Console, _ templates: Templates) {
    guard !console.isJSON || !templates.isEmpty, let element = result.member("element") else {
      return value(result, console)
    }
    guard templates.isEmpty else { return row(element, type: result.member("type")?.string, console, templates) }
    value(element, console)
    var line = console.line()
    let places = result.member("at").map { self.places($0) } ?? []
    line.add(places.isEmpty ? "in no section" : "at \(places.joined(separator: " "))", .dim)
    if let type = result.member("type")?.string { line.add("  type \(type)", .dim) }
    if let revision = result.member("revision")?.int { line.add("  revision \(grouped(revision))", .dim) }
    console.print(line.text)
  }

  /// One index path or a list of them as the commands take them: `0,3`.
  private static func places(_ list: JSONView) -> [String] {
    let paths = list.element(at: 0)?.kind == .number ? [list] : Array(list.elements)
    return paths.map { $0.elements.map { "\($0.int ?? 0)" }.joined(separator: ",") }
  }

  /// Prints a list in the result: one item on each line, as JSON, by a template, or truncated for people.
  static func items(_ name: StaticString, _ templates: Templates) -> (JSONView, Console) -> Void {
    { result, console in
      guard let list = result.member(name), list.kind == .array else { return value(result, console) }
      for item in list.elements { row(item, type: nil, console, templates) }
    }
  }

  /// Prints one element on one line.
  static func row(_ element: JSONView, type: String?, indent: String = "", _ console: Console, _ templates: Templates) {
    if console.isJSON, templates.isEmpty { return console.print(element) }
    var line = console.line()
    line.add(indent)
    templates.add(element, type: type, to: &line)
    console.print(line.text)
  }

  /// Prints the nodes of a query with their places: one `{"at":[s,r],"node":…}` on each line.
  static func placedNodes(_ result: JSONView, _ console: Console) {
    guard let nodes = result.member("nodes"), let places = result.member("places") else {
      return value(result, console)
    }
    for (node, place) in zip(nodes.elements, places.elements) {
      placedNode(node, at: String(decoding: place.text, as: UTF8.self), console)
    }
  }

  /// Prints a node and its place, the JSON text of an index path or null.
  static func placedNode(_ node: JSONView, at place: String, _ console: Console) {
    var line = ParameterWriter()
    line.add("at", json: place)
    line.add("node", json: String(decoding: node.compactText, as: UTF8.self))
    console.print(line.finish())
  }

  /// Prints the items of a list in the result as a table with a column for each member.
  /// - Parameter important: the members whose columns are kept on a narrow terminal, most important first.
  static func table(_ name: StaticString, important: [String] = []) -> (JSONView, Console) -> Void {
    { result, console in
      guard let list = result.kind == .array ? result : result.member(name), list.kind == .array else {
        return value(result, console)
      }
      if console.isJSON {
        for item in list.elements { console.print(item) }
      } else {
        console.printRaw(
          ValueTable(list, important: important).text(width: console.terminal.columns, palette: console.palette))
      }
    }
  }

  /// Prints the members of an object, one on each line, aligned. Members of nested objects are named by their path.
  static func members(_ result: JSONView, _ console: Console) {
    if console.isJSON { return console.print(result) }
    members(Flattening.entries(of: result), console)
  }

  /// Prints members, one on each line, aligned.
  static func members(_ entries: [(name: String, value: JSONView)], _ console: Console) {
    let width = entries.map { DisplayWidth.columns(of: $0.name) }.max() ?? 0
    for entry in entries {
      var line = console.line()
      line.add(entry.name, .key)
      line.pad(to: width + 2)
      if let number = entry.value.int { line.add(grouped(number), .number) } else { line.add(entry.value) }
      console.print(line.text)
    }
  }
}

extension Show {
  /// Prints a snapshot for people: the heading and the elements of each section.
  static func snapshot(_ result: JSONView, _ console: Console, _ templates: Templates) {
    guard !console.isJSON || !templates.isEmpty, let sections = result.member("sections"), sections.kind == .array
    else { return value(result, console) }
    if !console.isJSON {
      var line = console.line()
      line.add("revision \(grouped(result.member("revision")?.int ?? 0))", .dim)
      console.print(line.text)
    }
    for section in sections.elements {
      guard let elements = section.member("elements") else { continue }
      if !console.isJSON {
        heading(section.member("name")?.string ?? "", section.member("count")?.int ?? elements.count, console)
      }
      var types = section.member("types")?.elements
      for element in elements.elements {
        row(element, type: types?.next()?.string, indent: console.isJSON ? "" : "  ", console, templates)
      }
    }
  }

  /// Prints the line before the rows of a section.
  static func heading(_ section: String, _ count: Int, _ console: Console) {
    var line = console.line()
    line.add(section, .title)
    line.add("  \(grouped(count))", .dim)
    console.print(line.text)
  }

  /// Prints feeds as a tree, even in a pipe; as JSON only with `--json`.
  static func tree(_ result: JSONView, _ console: Console) {
    guard !console.wantsJSON, let list = result.member("feeds") else { return feeds(result, console) }
    for line in FeedTree(list).lines(width: console.terminal.columns, palette: console.palette) { console.print(line) }
  }

  /// Prints the names of feeds and bins, one on each line, even in a pipe; as JSON strings only with `--json`.
  static func feedNames(_ result: JSONView, _ console: Console) {
    for name in names(ofFeeds: result) {
      console.print(console.wantsJSON ? name.quotedAsJSON : console.isJSON ? name : name.inLine)
    }
  }

  static func names(ofFeeds result: JSONView) -> [String] {
    (result.member("feeds") ?? result).elements.flatMap { feed in
      guard let name = feed.member("feed")?.string else { return [String]() }
      // The sections of a collection with a member "section" are not feeds.
      guard let bins = feed.member("bins"), feed.member("section") == nil else { return [name] }
      return [name] + bins.elements.compactMap { $0.member("name")?.string }.map { "\(name)/\($0)" }
    }
  }

  /// Prints feeds as a table: name, kind, rows of each section, revision.
  static func feeds(_ result: JSONView, _ console: Console) {
    guard !console.isJSON, let list = result.kind == .array ? result : result.member("feeds"), list.kind == .array
    else {
      return table("feeds")(result, console)
    }
    if list.count == 0 {
      return console.print(console.palette.paint("no feeds; make one with feedclient define NAME", .dim))
    }
    let names = list.elements.map { ($0.member("feed")?.string ?? "").inLine }
    let width = names.map(DisplayWidth.columns(of:)).max() ?? 0
    for (name, feed) in zip(names, list.elements) {
      var line = console.line()
      line.add(name, .bold)
      line.pad(to: width + 2)
      line.add(feed.member("kind")?.string ?? "", .dim)
      line.pad(to: width + 14)
      add(FeedSections(feed).summaries, of: name, to: &line)
      if let revision = feed.member("revision")?.int { line.addWhole("  revision \(grouped(revision))", .dim) }
      console.print(line.text)
    }
  }
}

extension Show {
  /// Appends the sections with their numbers of rows, as many as fit. Bins are shown without the name of their feed.
  fileprivate static func add(_ sections: [(name: String, count: Int)], of feed: String, to line: inout LinePainter) {
    for (place, section) in sections.enumerated() {
      let margin = place == 0 ? "" : "  "
      let count = section.name == feed ? counted(section.count, "row") : grouped(section.count)
      var name = section.name == feed ? "" : section.name.inLine + " "
      if name.hasPrefix("\(feed)/") { name.removeFirst(feed.count + 1) }
      let columns = DisplayWidth.columns(of: margin + name + count)
      // If more sections follow, two columns are needed for the ellipsis; the painter reserves the last column.
      guard columns + (place + 1 < sections.count ? 3 : 1) <= line.room else { return line.addWhole(" …", .dim) }
      line.add(margin)
      line.add(name, .key)
      line.add(count, .number)
    }
  }
}

/// The sections of a described feed with their numbers of rows.
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

/// The numbers of rows that a mutation changed ("How many rows changed" in `Protocol/README.md`), also from an answer that
/// lists their places.
struct MutationCounts {
  let revision: Int
  private var entries: [(name: String, count: Int)] = []
  /// The JSON of the numbers of sections; nil if no section was deleted or added.
  private var sections: String?

  init(_ result: JSONView) {
    revision = result.member("revision")?.int ?? 0
    let counts = result.member("counts")
    for member in (counts ?? result).members {
      guard let name = member.key.string, name != "revision" else { continue }
      if name == "sections" {
        sections = Self.numbers(member.value)
      } else if member.value.kind == .array {
        entries.append((name, member.value.count))
      } else if let count = member.value.int {
        entries.append((name, count))
      }
    }
  }

  private static func numbers(_ sections: JSONView) -> String {
    var object = ParameterWriter()
    for list in sections.members { object.add(list.key.string ?? "", list.value.int ?? list.value.count) }
    return object.finish()
  }

  /// A number; nil if the answer does not have it.
  subscript(_ name: String) -> Int? { entries.first { $0.name == name }?.count }

  /// The number of rows that changed; one that moved is among both the deleted and the added ones.
  var rows: Int { entries.reduce(0) { $0 + ($1.name == "moves" ? -$1.count : $1.count) } }

  /// The answer with numbers in place of lists, as with `"result":"counts"`.
  var json: String {
    var counts = ParameterWriter()
    for (name, count) in entries { counts.add(name, count) }
    if let sections { counts.add("sections", json: sections) }
    var answer = ParameterWriter()
    answer.add("revision", revision)
    answer.add("counts", json: counts.finish())
    return answer.finish()
  }
}
