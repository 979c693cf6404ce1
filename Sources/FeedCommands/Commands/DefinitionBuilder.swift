import FeedClient
import FeedJSON
import FeedSystem

/// Builds a feed's definition from the options of `define` (`Protocol/README.md`, "Definitions").
struct DefinitionBuilder {
  struct Bin: Equatable {
    var name: String
    var filter: String?
    var sort: [SortTerm] = []
  }

  struct SortTerm: Equatable {
    var by: String
    var descending: Bool

    /// Parses `PATH`, `PATH:asc` or `PATH:desc`.
    init(_ word: String) {
      (by, descending) = (word, false)
      for (suffix, isDescending) in [(":desc", true), (":descending", true), (":asc", false), (":ascending", false)]
      where by.hasSuffix(suffix) {
        by.removeLast(suffix.count)
        descending = isDescending
      }
    }
  }

  /// The kinds that a command line can define.
  static let kinds = ["collection", "array", "single", "composed", "segmented", "slots", "view"]

  var feed: String
  var kind = "collection"
  var id: String?
  var type: String?
  /// The path of the value that determines the section of an element, and the order of the sections.
  var section: (path: String?, order: String?)
  var exclusive = false
  var bins: [Bin] = []
  var retention = Retention()
  var children: [String] = []
  var current: Int?
  var slots = Slots()
  var view = View()
  /// The flags that were given: whether rows can be selected, edited and moved, and whether several can be selected.
  var behaviours: [String: Bool] = [:]

  init(feed: String) { self.feed = feed }

  /// Adds a bin, given as `NAME` or `NAME=FILTER`.
  mutating func addBin(_ word: String) throws(Failure) {
    let (name, filter) = Self.split(word)
    guard !name.isEmpty else { throw .usage("define: --bin '\(word)': expected NAME or NAME=FILTER") }
    guard !bins.contains(where: { $0.name == name }) else {
      throw .usage("define: --bin '\(name)' is given twice; combine the filters with ||")
    }
    bins.append(Bin(name: name, filter: filter))
  }

  /// Adds a sort term. Later terms of a bin or view break ties.
  ///
  /// - Parameter word: `PATH` for a view, otherwise `BIN=PATH`, either of them with an optional suffix `:asc` or
  ///   `:desc`. Without any bin, BIN must be `all`, the name of the default bin.
  mutating func addSort(_ word: String) throws(Failure) {
    if kind == "view" { return view.sort.append(SortTerm(word)) }
    let (name, path) = Self.split(word)
    guard !name.isEmpty, let path, !path.isEmpty else {
      throw .usage("define: --sort '\(word)': expected BIN=PATH or BIN=PATH:desc")
    }
    if bins.isEmpty, name == "all" { bins.append(Bin(name: name)) }
    guard let place = bins.firstIndex(where: { $0.name == name }) else {
      throw .usage(
        "define: --sort '\(word)': there is no --bin '\(name)'" + Spelling.suggestion(for: name, in: bins.map(\.name)))
    }
    bins[place].sort.append(SortTerm(path))
  }

  /// Splits a word at its first equals sign. The second part is nil if there is none.
  static func split(_ word: String) -> (String, String?) {
    guard let equals = word.firstIndex(of: "=") else { return (word, nil) }
    return (String(word[..<equals]), String(word[word.index(after: equals)...]))
  }
}

extension DefinitionBuilder {
  /// Returns the JSON object for `define`.
  /// - Parameter replace: whether to replace another definition with this name.
  func json(replace: Bool) -> String {
    var params = ParameterWriter(feed: feed)
    params.add("kind", kind)
    if let id { params.add("id", id) }
    if let type { params.add("type", type) }
    if exclusive { params.add("exclusive", true) }
    if !bins.isEmpty { params.add("bins", json: bins.map(\.json)) }
    if let path = section.path { params.add("section", path) }
    if let order = section.order { params.add("sectionOrder", order) }
    retention.add(to: &params)
    if !children.isEmpty { params.add("children", json: children.map(\.quotedAsJSON)) }
    if let current { params.add("current", current) }
    slots.add(to: &params)
    view.add(to: &params)
    for name in behaviours.keys.sorted() { params.add(name, behaviours[name] ?? false) }
    if replace { params.add("replace", true) }
    return params.finish()
  }
}

extension DefinitionBuilder.Bin {
  fileprivate var json: String {
    var object = ParameterWriter()
    object.add("name", name)
    if let filter { object.add("filter", filter) }
    if !sort.isEmpty { object.add("sort", json: sort.map(\.json)) }
    return object.finish()
  }
}

extension DefinitionBuilder.SortTerm {
  fileprivate var json: String {
    var object = ParameterWriter()
    object.add("by", by)
    object.add("order", descending ? "descending" : "ascending")
    return object.finish()
  }
}

extension DefinitionBuilder {
  /// How many elements are kept, and how long.
  struct Retention: Equatable {
    var count: Int?
    /// A JSON number.
    var seconds: String?
    /// The path of the time until which an element is kept.
    var until: String?

    init() {}

    /// Reads the options of `define`.
    init(_ options: ParsedOptions) {
      count = options.integer("retain-count")
      seconds = options.text("retain-seconds")
      until = options.text("retain-until")
    }

    /// Adds the given members.
    func add(to params: inout ParameterWriter) {
      if self == Retention() { return }
      var retain = ParameterWriter()
      if let count { retain.add("count", count) }
      if let seconds { retain.add("seconds", json: seconds) }
      if let until { retain.add("until", until) }
      params.add("retain", json: retain.finish())
    }
  }

  /// The members of a definition that only views have.
  struct View: Equatable {
    var of: String?
    var filter: String?
    var sort: [SortTerm] = []
    var offset: Int?
    var limit: Int?

    init() {}

    /// Reads the options of `define`, except the sort terms.
    init(_ options: ParsedOptions) {
      of = options.text("of")
      filter = options.text("filter")
      offset = options.integer("offset")
      limit = options.integer("limit")
    }

    /// Adds the given members.
    func add(to params: inout ParameterWriter) {
      if let of { params.add("of", of) }
      if let filter { params.add("filter", filter) }
      if !sort.isEmpty { params.add("sort", json: sort.map(\.json)) }
      if let offset { params.add("offset", offset) }
      if let limit { params.add("limit", limit) }
    }
  }

  /// The members of a definition that only slots feeds have.
  struct Slots: Equatable {
    var contents: [(type: String, feed: String)] = []
    var pattern: [String] = []
    var header: [String] = []
    var repeatables: [String] = []
    var defaultType: String?
    var types: String?
    var fixed: [(row: Int, type: String)] = []

    init() {}

    /// Reads the options of `define`.
    init(_ options: ParsedOptions) throws(Failure) {
      for word in options.texts("content") {
        let (type, feed) = DefinitionBuilder.split(word)
        guard !type.isEmpty, let feed, !feed.isEmpty else {
          throw .usage("define: --content '\(word)': expected TYPE=FEED")
        }
        contents.append((type, feed))
      }
      for word in options.texts("fixed") {
        let (row, type) = DefinitionBuilder.split(word)
        guard let row = Int(row), row >= 0, let type, !type.isEmpty else {
          throw .usage("define: --fixed '\(word)': expected ROW=TYPE, such as 0=Banner")
        }
        fixed.append((row, type))
      }
      pattern = Self.types(options, "pattern")
      header = Self.types(options, "header")
      repeatables = Self.types(options, "repeatable")
      defaultType = options.text("default")
      types = options.text("types")
      if let types, !["content", "element"].contains(types) {
        throw .usage("define: --types '\(types)': expected content or element")
      }
    }

    private static func types(_ options: ParsedOptions, _ name: String) -> [String] {
      options.texts(name).flatMap { $0.split(separator: ",").map(String.init) }
    }

    static func == (left: Slots, right: Slots) -> Bool { left.json == right.json }

    /// The given members.
    private var json: String {
      var object = ParameterWriter()
      add(to: &object)
      return object.finish()
    }

    /// Adds the given members.
    func add(to params: inout ParameterWriter) {
      if !contents.isEmpty {
        var object = ParameterWriter()
        for content in contents { object.add(content.type, content.feed) }
        params.add("contents", json: object.finish())
      }
      if !pattern.isEmpty { params.add("pattern", json: pattern.map(\.quotedAsJSON)) }
      if !header.isEmpty { params.add("header", json: header.map(\.quotedAsJSON)) }
      if !repeatables.isEmpty { params.add("repeatables", json: repeatables.map(\.quotedAsJSON)) }
      if let defaultType { params.add("default", defaultType) }
      if let types { params.add("types", types) }
      if !fixed.isEmpty {
        var object = ParameterWriter()
        for entry in fixed { object.add("\(entry.row)", entry.type) }
        params.add("fixed", json: object.finish())
      }
    }
  }
}
