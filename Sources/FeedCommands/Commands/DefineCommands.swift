import FeedClient
import FeedJSON
import FeedSystem

extension Command {
  static let define = Command(
    name: "define", usage: ["FEED [OPTION]...", "JSON [--replace]", "- [--replace]"], summary: "define a feed",
    examples: #"""
      feedclient define inbox --bin 'urgent=@.priority >= 8' --bin rest \
        --sort 'urgent=$.priority:desc' --retain-count 10000
      feedclient define journal --id '$.__CURSOR' --retain-count 1000
      feedclient define agenda --section '$.date' --sort 'all=$.time'
      feedclient define '{"feed":"styles","kind":"array","type":"$.kind"}'
      feedclient define queue --kind array --id '$.id' --retain-until '$.expires'
      feedclient define home --kind composed --child banner --child inbox/urgent
      feedclient define mixed --kind slots --content Style=styles \
        --content Ad=ads --pattern Style,Style,Ad
      feedclient define top --kind view --of inbox --filter '@.read == false' \
        --sort '$.priority:desc' --limit 20
      """#,
    about: """
      Defines a feed, from options or from a definition in JSON, which is a collection unless it has a kind. Defining \
      it again in the same way changes nothing. Another definition is refused unless --replace is given, which keeps \
      the elements and sorts them into the new bins.
      """,
    options: [
      OptionDescription(
        "bin", value: .text("NAME[=FILTER]"), help: "bin and the filter of its elements (default: all elements)",
        repeats: true),
      OptionDescription(
        "sort", value: .text("[BIN=]PATH[:desc]"), help: "sort key of a bin, or of a view; later ones break ties",
        defaultText: "order of arrival or of the source", repeats: true),
      OptionDescription("exclusive", help: "put an element only into the first bin that accepts it"),
      OptionDescription(
        "id", value: .text("PATH"), help: "path of the identity", defaultText: "$.id, for an array: none"),
      OptionDescription("type", value: .text("PATH"), help: "path of the type of a row"),
      OptionDescription(
        "section", value: .text("PATH"), help: "path of the value that divides a collection into sections"),
      OptionDescription(
        "section-order", value: .text("ORDER"), help: "order of these sections, ascending or descending",
        defaultText: "ascending"),
      OptionDescription(
        "retain-count", value: .integer(1...Int.max), help: "keep this many elements, the last changed ones"),
      OptionDescription(
        "retain-seconds", value: .integer(1...Int.max), help: "keep elements this long after their last change"),
      OptionDescription(
        "retain-until", value: .text("PATH"),
        help: "path of the time at which an element expires: RFC 3339 or seconds since 1970"),
      OptionDescription(
        "kind", value: .text("KIND"), help: "collection, array, single, composed, segmented, slots or view",
        defaultText: "collection"),
      OptionDescription("child", value: .text("FEED"), help: "child of a composed or segmented feed", repeats: true),
      OptionDescription(
        "current", value: .text("CHILD"), help: "active child of a segmented feed: its name, or its index from 0"),
      OptionDescription(
        "content", value: .text("TYPE=FEED"), help: "source of a type of a slots feed", repeats: true),
      OptionDescription("pattern", value: .text("TYPE,..."), help: "types that a slots feed repeats", repeats: true),
      OptionDescription("header", value: .text("TYPE,..."), help: "types before the pattern, once", repeats: true),
      OptionDescription(
        "repeatable", value: .text("TYPE,..."), help: "types that continue the pattern while they last", repeats: true),
      OptionDescription("default", value: .text("TYPE"), help: "type that replaces exhausted ones"),
      OptionDescription(
        "types", value: .text("TYPES"),
        help: "types of the rows of a slots feed: content, the types above, or element, their own",
        defaultText: "content"),
      OptionDescription("fixed", value: .text("ROW=TYPE"), help: "type at a fixed row", repeats: true),
      OptionDescription("of", value: .text("FEED"), help: "feed or bin whose rows a view shows"),
      OptionDescription(
        "filter", value: .text("FILTER"), help: "filter of the rows of a view", defaultText: "all rows"),
      OptionDescription("offset", value: .integer(0...Int.max), help: "rows before the window of a view"),
      OptionDescription("limit", value: .integer(1...Int.max), help: "maximum number of rows in the window of a view"),
      OptionDescription("multiple", help: "let several rows be selected (default)"),
      OptionDescription("no-multiple", help: "let only one row be selected"),
      OptionDescription("no-select", help: "forbid the selection of rows"),
      OptionDescription("no-edit", help: "forbid insert, remove, replace, update, delete and patch of an array"),
      OptionDescription("no-move", help: "forbid the moving of rows of an array"),
      OptionDescription("replace", help: "replace another definition of this name, keeping the elements"),
      animation, condition,
    ],
    notes: """
      FILTER is the condition of a JSONPath filter [?...] (RFC 9535), with @ for the
      element. PATH leads to one value: $.priority, $.user.name, $['a key'].
      """,
    operands: 1...1
  ) { invocation throws(Failure) in
    var definition = try invocation.definition()
    let name = try Operands.withView(of: definition) { $0.member("feed")?.string ?? "" }
    var members = ParameterWriter()
    try invocation.addChangeMembers(of: name, to: &members)
    let given = members.finish().dropFirst().dropLast()
    if !given.isEmpty { definition = Operands.adding(String(given), to: definition) }
    return try invocation.request("define", definition, show: Show.done("defined \(name)"))
  }

  static let undefine = Command(
    name: "undefine", usage: ["FEED"], summary: "remove a feed and its elements",
    examples: "feedclient undefine inbox",
    about: "Removes a feed and its elements. A feed that another feed shows cannot be removed.",
    options: changing, operands: 1...1
  ) { invocation throws(Failure) in
    let params = try invocation.changeParameters()
    let shown = Show.done("removed \(invocation.operand(0))")
    return try invocation.request("undefine", params.finish(), show: shown)
  }

  static let feeds = Command(
    name: "feeds", usage: [""], summary: "list the feeds",
    examples: """
      feedclient feeds
      feedclient feeds --tree
      feedclient feeds --names
      feedclient watch '$feeds'
      """,
    about: """
      Lists every feed with its kind, its sections, their numbers of rows, and its revision. The feed $feeds has a row for each of \
      them, which can be watched.
      """,
    options: [
      OptionDescription("tree", help: "print a tree: each feed with its children below it"),
      OptionDescription("names", help: "print only the names of feeds and bins, one a line"),
    ],
    operands: 0...0
  ) { invocation throws(Failure) in
    let (wantsTree, wantsNames) = (invocation.options.contains("tree"), invocation.options.contains("names"))
    if wantsTree, wantsNames { throw invocation.usage("--tree and --names exclude each other") }
    return try invocation.request("feeds", show: wantsTree ? Show.tree : wantsNames ? Show.feedNames : Show.feeds)
  }

  static let describe = Command(
    name: "describe", usage: ["FEED"], summary: "show the definition of a feed",
    examples: "feedclient describe inbox",
    about: "Shows the definition of a feed, its sections, their numbers of rows, and its revision.",
    operands: 1...1
  ) { invocation throws(Failure) in
    try invocation.request("describe", ParameterWriter(feed: invocation.operand(0)).finish(), show: Show.value)
  }
}

/// Commands for the children of composed and segmented feeds.
extension Command {
  static let activate = Command(
    name: "activate", usage: ["FEED CHILD|none"], summary: "choose the active child of a segmented feed",
    examples: """
      feedclient activate tabs 1
      feedclient activate tabs inbox/urgent
      feedclient activate tabs none
      """,
    about: """
      Makes a child of a segmented feed the active one, whose rows the feed shows: by index from 0, by name, or none. \
      An index past the end is the last child.
      """,
    options: changing,
    operands: 2...2
  ) { invocation throws(Failure) in
    var params = try invocation.changeParameters()
    let child = invocation.operand(1)
    params.add("child", json: child == "none" ? "-1" : Operands.child(child))
    return try invocation.change("activate", params)
  }

  static let insertChild = Command(
    name: "insertChild", usage: ["FEED CHILD [--at N|--before NAME|--after NAME]"],
    summary: "add a child to a composed or segmented feed",
    examples: "feedclient insertChild home inbox/urgent --before styles",
    about: "Adds a feed or a bin as a child of a composed or segmented feed: at the end unless a place is given.",
    options: [
      OptionDescription("at", value: .integer(0...Int.max), help: "index of the new child, from 0"),
      OptionDescription("before", value: .text("NAME"), help: "insert before this child"),
      OptionDescription("after", value: .text("NAME"), help: "insert after this child"),
      animation, condition,
    ],
    operands: 2...2
  ) { invocation throws(Failure) in
    var params = try invocation.changeParameters()
    params.add("child", invocation.operand(1))
    let places = ["at", "before", "after"].filter(invocation.options.contains)
    if places.count > 1 { throw invocation.usage("--\(places[0]) and --\(places[1]) exclude each other") }
    if let index = invocation.options.integer("at") { params.add("at", index) }
    for place in ["before", "after"] {
      if let name = invocation.options.text(place) { params.add(place, name) }
    }
    return try invocation.change("insertChild", params)
  }

  static let removeChild = Command(
    name: "removeChild", usage: ["FEED CHILD"], summary: "remove a child of a composed or segmented feed",
    examples: "feedclient removeChild home styles",
    about: "Removes a child of a composed or segmented feed, by index from 0 or by name. The child itself stays.",
    options: changing,
    operands: 2...2
  ) { invocation throws(Failure) in
    var params = try invocation.changeParameters()
    let child = invocation.operand(1)
    params.add(Int(child) == nil ? "child" : "at", json: Operands.child(child))
    return try invocation.change("removeChild", params)
  }
}
