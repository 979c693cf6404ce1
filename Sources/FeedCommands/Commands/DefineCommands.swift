import FeedClient
import FeedJSON
import FeedSystem

extension Command {
  static let define = Command(
    name: "define", usage: ["FEED [OPTION]...", "JSON [--replace]", "- [--replace]"], summary: "make a feed",
    about: """
      Makes a feed, from options or from a definition in JSON. The same definition again changes nothing; another \
      one for the same name is refused, unless --replace says to keep the elements and sort them into bins anew.
      """,
    options: [
      OptionDescription(
        "bin", value: .text("NAME[=FILTER]"),
        help: "a bin and what it accepts, everything without a FILTER", repeats: true),
      OptionDescription(
        "sort", value: .text("BIN=PATH[:desc]"),
        help: "the order of a bin; of several for one bin, the later ones break ties",
        defaultText: "order of arrival", repeats: true),
      OptionDescription("exclusive", help: "an element stands in the first bin that accepts it only"),
      OptionDescription("id", value: .text("PATH"), help: "where the identity is", defaultText: "$.id"),
      OptionDescription("type", value: .text("PATH"), help: "where the type of a row is"),
      OptionDescription(
        "retain-count", value: .integer(1...Int.max), help: "keep so many elements, those that changed last"),
      OptionDescription(
        "retain-seconds", value: .integer(1...Int.max), help: "keep elements so long after their last change"),
      OptionDescription(
        "kind", value: .text("KIND"), help: "what the feed is: collection, array, single, composed, segmented or slots",
        defaultText: "collection"),
      OptionDescription(
        "child", value: .text("FEED"), help: "a child of a composed or segmented feed", repeats: true),
      OptionDescription("current", value: .integer(-1...Int.max), help: "the active child of a segmented feed, from 0"),
      OptionDescription(
        "content", value: .text("TYPE=FEED"), help: "where a slots feed takes a type from", repeats: true),
      OptionDescription(
        "pattern", value: .text("TYPE,..."), help: "the types that a slots feed repeats", repeats: true),
      OptionDescription(
        "header", value: .text("TYPE,..."), help: "the types that come once before the pattern", repeats: true),
      OptionDescription(
        "repeatable", value: .text("TYPE,..."), help: "types that keep the pattern going while they last",
        repeats: true),
      OptionDescription("default", value: .text("TYPE"), help: "the type that stands in for one that has run out"),
      OptionDescription("fixed", value: .text("ROW=TYPE"), help: "a type at a row of its own", repeats: true),
      OptionDescription("multiple", help: "several rows may be selected at a time, as without it"),
      OptionDescription("no-multiple", help: "one row at most may be selected at a time"),
      OptionDescription("no-select", help: "rows may not be selected"),
      OptionDescription("no-edit", help: "elements may not be inserted, removed or replaced by row"),
      OptionDescription("no-move", help: "rows may not be moved"),
      OptionDescription("replace", help: "take the place of another definition of that name"),
      animation,
    ],
    notes: """
      A FILTER is what stands between the brackets of a JSONPath filter [?...] (RFC 9535), with @ the element.
      A PATH leads to one value: $.priority, $.user.name, $['a key'].

      Examples:
        feedclient define inbox --bin 'urgent=@.priority >= 8 && @.read == false' --bin rest \\
          --sort 'urgent=$.priority:desc' --retain-count 10000
        feedclient define log --id '$.__CURSOR' --retain-count 1000
        feedclient define '{"feed":"styles","kind":"array","type":"$.kind"}'
        feedclient define home --kind composed --child banner --child inbox/urgent --child styles
        feedclient define mixed --kind slots --content Style=styles --content Ad=ads --pattern Style,Style,Ad
      """,
    operands: 1...1
  ) { invocation throws(Failure) in
    var definition = try invocation.definition()
    if let hint = invocation.options.text("animation") {
      definition = Operands.adding("\"animation\":\(Operands.quoted(hint))", to: definition)
    }
    let name = try Operands.withView(of: definition) { $0.member("feed")?.string ?? "" }
    return try invocation.request("define", definition, show: Show.done("defined \(name)"))
  }

  static let undefine = Command(
    name: "undefine", usage: ["FEED"], summary: "take a feed away with its elements",
    about: "Takes a feed away with all its elements. A feed that is a child of another is refused.",
    options: [animation], operands: 1...1
  ) { invocation throws(Failure) in
    let params = invocation.changeParameters()
    let shown = Show.done("undefined \(invocation.operand(0))")
    return try invocation.request("undefine", params.finish(), show: shown)
  }

  static let feeds = Command(
    name: "feeds", usage: [""], summary: "list the feeds",
    about: "Lists every feed: its kind, its sections with the number of rows in each, and its revision.",
    options: [OptionDescription("tree", help: "as a tree: each feed with its children below it")], operands: 0...0
  ) { invocation throws(Failure) in
    let wantsTree = invocation.options.contains("tree")
    return try invocation.request("feeds", nil, show: wantsTree ? Show.tree : Show.feeds)
  }

  static let describe = Command(
    name: "describe", usage: ["FEED"], summary: "show the definition of a feed",
    about: "Shows the definition of a feed, its sections with the number of rows in each, and its revision.",
    operands: 1...1
  ) { invocation throws(Failure) in
    var params = ParameterWriter()
    params.add("feed", invocation.operand(0))
    return try invocation.request("describe", params.finish(), show: Show.value)
  }
}

extension Invocation {
  /// The definition that the command line gives, as the JSON that `define` takes.
  func definition() throws(Failure) -> String {
    let word = operand(0)
    if word == "-" || word.hasPrefix("{") {
      let own = command.options.map(\.name).filter { $0 != "replace" && $0 != "animation" }
      if let option = own.first(where: options.contains) {
        throw usage("--\(option) goes with a feed's name; a JSON definition says it itself")
      }
      let text = try json(word, what: "the definition")
      return options.contains("replace") ? Operands.adding("\"replace\":true", to: text) : text
    }
    var builder = DefinitionBuilder(feed: word)
    builder.kind = options.text("kind") ?? builder.kind
    builder.id = options.text("id")
    builder.type = options.text("type")
    builder.exclusive = options.contains("exclusive")
    builder.retainCount = options.integer("retain-count")
    builder.retainSeconds = options.text("retain-seconds")
    builder.children = options.texts("child")
    builder.current = options.integer("current")
    builder.slots = try DefinitionBuilder.Slots(options)
    if options.contains("multiple") && options.contains("no-multiple") {
      throw usage("--multiple and --no-multiple exclude each other")
    }
    for (option, name, value) in [
      ("multiple", "multiple", true), ("no-multiple", "multiple", false), ("no-select", "selectable", false),
      ("no-edit", "editable", false),
      ("no-move", "movable", false),
    ] where options.contains(option) { builder.behaviours[name] = value }
    for bin in options.texts("bin") { try builder.addBin(bin) }
    for sort in options.texts("sort") { try builder.addSort(sort) }
    return builder.json(replace: options.contains("replace"))
  }
}

extension Operands {
  /// A JSON object's text with one more member at its end, which is the one that counts.
  static func adding(_ member: String, to object: String) -> String {
    guard let end = object.lastIndex(of: "}") else { return object }
    let isEmpty = object[..<end].allSatisfy { $0.isWhitespace || $0 == "{" }
    return object[..<end] + (isEmpty ? "" : ",") + member + "}"
  }
}
