import FeedClient
import FeedJSON
import FeedSystem

/// The definition of a feed in the command line of `define` (`Protocol/README.md`, "Definitions").
extension Invocation {
  /// The kinds that a command line can define.
  private static let kinds = ["collection", "array", "single", "composed", "segmented", "slots", "view"]

  func definition() throws(Failure) -> String {
    let word = operand(0)
    guard word == "-" || Operands.beginsObject(word) else { return try definition(of: word) }
    let own = command.options.map(\.name).filter { !["replace", "animation", "if"].contains($0) }
    if let option = own.first(where: options.contains) {
      throw usage("--\(option) cannot be combined with a definition in JSON")
    }
    var text = try json(word, what: "the definition")
    let hasKind = try Operands.withView(of: text) { $0.member("kind") != nil }
    if !hasKind { text = Operands.adding("\"kind\":\"collection\"", to: text) }
    return options.contains("replace") ? Operands.adding("\"replace\":true", to: text) : text
  }

  private func definition(of feed: String) throws(Failure) -> String {
    let kind = options.text("kind") ?? "collection"
    guard Self.kinds.contains(kind) else { throw unknown("kind", kind, known: Self.kinds) }
    if let order = options.text("section-order"), !["ascending", "descending"].contains(order) {
      throw usage("--section-order '\(order)': expected ascending or descending")
    }
    let children = options.texts("child")
    let current = try options.text("current").map { word throws(Failure) in try activeChild(word, of: children) }
    let contents = try pairs("content", "TYPE=FEED") { $0.isEmpty ? nil : $0 }
    let fixed = try pairs("fixed", "ROW=TYPE, such as 0=Banner") { row in
      Int(row).flatMap { $0 >= 0 ? "\($0)" : nil }
    }
    if let types = options.text("types"), !["content", "element"].contains(types) {
      throw usage("--types '\(types)': expected content or element")
    }
    if options.contains("multiple"), options.contains("no-multiple") {
      throw usage("--multiple and --no-multiple exclude each other")
    }
    var (bins, terms): ([DefinedBin], [String]) = ([], [])
    for word in options.texts("bin") { bins.append(try bin(word, besides: bins)) }
    for word in options.texts("sort") {
      if kind == "view" { terms.append(sortTerm(word)) } else { try addSort(word, to: &bins) }
    }

    var params = ParameterWriter(feed: feed)
    params.add("kind", kind)
    params.add(options, [("id", "id"), ("type", "type")])
    if options.contains("exclusive") { params.add("exclusive", true) }
    params.add("bins", notEmpty: bins.map(\.json))
    params.add(options, [("section", "section"), ("section-order", "sectionOrder")])
    var retain = ParameterWriter()
    if let count = options.integer("retain-count") { retain.add("count", count) }
    if let seconds = options.text("retain-seconds") { retain.add("seconds", json: seconds) }
    retain.add(options, [("retain-until", "until")])
    params.add("retain", notEmpty: retain)
    params.add("children", notEmpty: children.map(\.quotedAsJSON))
    if let current { params.add("current", current) }
    params.add("contents", notEmpty: contents)
    for (option, name) in [("pattern", "pattern"), ("header", "header"), ("repeatable", "repeatables")] {
      let types = options.texts(option).flatMap { $0.split(separator: ",") }
      params.add(name, notEmpty: types.map { String($0).quotedAsJSON })
    }
    params.add(options, [("default", "default"), ("types", "types")])
    params.add("fixed", notEmpty: fixed)
    params.add(options, [("of", "of"), ("filter", "filter")])
    params.add("sort", notEmpty: terms)
    for name in ["offset", "limit"] { if let number = options.integer(name) { params.add(name, number) } }
    for (option, name, value) in [
      ("no-edit", "editable", false), ("no-move", "movable", false), ("multiple", "multiple", true),
      ("no-multiple", "multiple", false), ("no-select", "selectable", false), ("replace", "replace", true),
    ] where options.contains(option) { params.add(name, value) }
    return params.finish()
  }

  /// The index of the active child, given as its index or its name.
  private func activeChild(_ word: String, of children: [String]) throws(Failure) -> Int {
    if let index = Int(word), index >= -1 { return index }
    if word == "none" { return -1 }
    if let index = children.firstIndex(of: word) { return index }
    let known = Spelling.suggestion(for: word, in: children, otherwise: "; give a child, its index, or none")
    throw usage("--current '\(word)': there is no --child '\(word)'\(known)")
  }

  /// The object of an option whose values are `NAME=TEXT`.
  /// - Parameter name: returns the member's name; nil for a wrong one.
  private func pairs(
    _ option: String, _ expected: String, name: (String) -> String?
  ) throws(Failure) -> ParameterWriter {
    var object = ParameterWriter()
    for word in options.texts(option) {
      let (first, text) = split(word)
      guard let name = name(first), let text, !text.isEmpty else {
        throw usage("--\(option) '\(word)': expected \(expected)")
      }
      object.add(name, text)
    }
    return object
  }

  /// A bin, given as `NAME` or `NAME=FILTER`.
  private func bin(_ word: String, besides bins: [DefinedBin]) throws(Failure) -> DefinedBin {
    let (name, filter) = split(word)
    guard !name.isEmpty else { throw usage("--bin '\(word)': expected NAME or NAME=FILTER") }
    guard !bins.contains(where: { $0.name == name }) else {
      throw usage("--bin '\(name)' is given twice; combine the filters with ||")
    }
    return DefinedBin(name: name, filter: filter)
  }

  /// Adds a sort term, given as `BIN=PATH`, to its bin. Without any bin, BIN must be `all`, the name of the default bin.
  private func addSort(_ word: String, to bins: inout [DefinedBin]) throws(Failure) {
    let (name, path) = split(word)
    guard !name.isEmpty, let path, !path.isEmpty else {
      throw usage("--sort '\(word)': expected BIN=PATH or BIN=PATH:desc")
    }
    if bins.isEmpty, name == "all" { bins.append(DefinedBin(name: name)) }
    guard let place = bins.firstIndex(where: { $0.name == name }) else {
      let similar = Spelling.suggestion(for: name, in: bins.map(\.name))
      throw usage("--sort '\(word)': there is no --bin '\(name)'\(similar)")
    }
    bins[place].sort.append(sortTerm(path))
  }

  /// The JSON of the sort term `PATH`, `PATH:asc` or `PATH:desc`. Later terms of a bin or view break ties.
  private func sortTerm(_ word: String) -> String {
    var (path, order) = (word, "ascending")
    for (suffix, itsOrder) in [
      (":desc", "descending"), (":descending", "descending"), (":asc", "ascending"), (":ascending", "ascending"),
    ] where path.hasSuffix(suffix) {
      path.removeLast(suffix.count)
      order = itsOrder
    }
    var object = ParameterWriter()
    object.add("by", path)
    object.add("order", order)
    return object.finish()
  }

  /// Splits a word at its first equals sign. The second part is nil if there is none.
  private func split(_ word: String) -> (String, String?) {
    guard let equals = word.firstIndex(of: "=") else { return (word, nil) }
    return (String(word[..<equals]), String(word[word.index(after: equals)...]))
  }
}

private struct DefinedBin {
  var name: String
  var filter: String?
  /// The JSON of its sort terms.
  var sort: [String] = []

  var json: String {
    var object = ParameterWriter()
    object.add("name", name)
    if let filter { object.add("filter", filter) }
    object.add("sort", notEmpty: sort)
    return object.finish()
  }
}

extension ParameterWriter {
  /// Adds the texts of options that were given, as members with other names.
  fileprivate mutating func add(_ options: ParsedOptions, _ names: [(option: String, member: String)]) {
    for (option, member) in names { if let text = options.text(option) { add(member, text) } }
  }

  fileprivate mutating func add(_ name: String, notEmpty texts: [String]) {
    if !texts.isEmpty { add(name, json: texts) }
  }

  fileprivate mutating func add(_ name: String, notEmpty object: consuming ParameterWriter) {
    let text = object.finish()
    if text != "{}" { add(name, json: text) }
  }
}
