import FeedClient
import FeedJSON
import FeedSystem

/// Commands that read feeds.
extension Command {
  static let get = Command(
    name: "get", usage: ["FEED ID", "FEED --at SECTION,ROW"], summary: "show one element",
    examples: """
      feedclient get inbox 17
      feedclient get inbox --at urgent,0 --template '{text}'
      """,
    about: """
      Shows the element with an identity and its places, or the element at a place. Exits with status 1 when there is \
      none.
      """,
    options: [
      OptionDescription("at", value: .text("SECTION,ROW"), help: "section, by name or number, and row, from 0"),
      template,
    ],
    notes: idNote, operands: 1...2
  ) { invocation throws(Failure) in
    let feed = invocation.operand(0)
    let templates = try invocation.templates()
    var params = ParameterWriter(feed: feed)
    var what = "element \(invocation.operand(1))"
    if let at = invocation.options.text("at") {
      guard invocation.operands.count == 1 else { throw invocation.usage("ID and --at exclude each other") }
      let found = try invocation.place(at, of: feed)
      params.add("at", [found.section, found.row])
      what = "row \(grouped(found.row)) in section \(at.split(separator: ",").dropLast().joined(separator: ","))"
    } else {
      guard invocation.operands.count == 2 else { throw invocation.usage("missing argument ID or --at SECTION,ROW") }
      params.add("id", json: Operands.id(invocation.operand(1)))
    }
    var isMissing = false
    let status = try invocation.request("get", params.finish()) { result, console in
      isMissing = result.member("found")?.bool == false
      if !isMissing || console.isJSON && templates.isEmpty { Show.element(result, console, templates) }
    }
    guard isMissing else { return status }
    invocation.console.say("'\(feed)' has no \(what)")
    return .refused
  }

  static let range = Command(
    name: "range", usage: ["FEED SECTION FROM COUNT"], summary: "show some rows of a section",
    examples: """
      feedclient range inbox urgent 0 20
      feedclient range inbox 0 0 20 --template '{priority:>3} {text}'
      """,
    about: """
      Shows COUNT elements of a section from row FROM on, one a line. SECTION is a name or a number; sections and rows \
      are counted from 0. A section that is named by a number, such as days/7, needs its whole name.
      """,
    options: [template], operands: 4...4
  ) { invocation throws(Failure) in
    let feed = invocation.operand(0)
    let templates = try invocation.templates()
    var numbers: [Int] = []
    for (index, name) in ["FROM", "COUNT"].enumerated() {
      let word = invocation.operand(index + 2)
      guard let number = Int(word), number >= 0 else {
        throw invocation.usage("\(name) '\(word)': expected an integer from 0 on")
      }
      numbers.append(number)
    }
    let section = try invocation.section(invocation.operand(1), of: feed)
    var params = ParameterWriter(feed: feed)
    params.add("section", section)
    params.add("from", numbers[0])
    params.add("count", numbers[1])
    do throws(Failure) {
      return try invocation.request("range", params.finish(), show: Show.items("elements", templates))
    } catch {
      guard error.exceeds(["maxFrame"]) else { throw error }
    }
    let end = numbers[0].addingReportingOverflow(numbers[1])
    let rows = numbers[0]..<(end.overflow ? .max : end.partialValue)
    let console = invocation.console
    try SnapshotStream(invocation).read(feed) { row throws(Failure) in
      guard row.place.section == section, rows.contains(row.place.row) else { return }
      Show.row(row.element, type: row.type, console, templates)
      try console.flushIfLarge()
    }
    return .done
  }

  static let query = Command(
    name: "query", usage: ["FEED PATH"], summary: "evaluate a JSONPath",
    examples: """
      feedclient query inbox '$[?@.priority > 5].text'
      feedclient query inbox '$[-3:]' --template '{id}: {text}'
      feedclient query inbox '$[?search(@.text, "disk|memory")]'
      """,
    about: """
      Evaluates a JSONPath (RFC 9535) over the array of the feed's elements, in the order of its rows, and shows each \
      node found on a line. For a single it is evaluated over its element. A query that is too large for the daemon is \
      evaluated by this program.
      """,
    options: [OptionDescription("places", help: "print each node with the place of its element, as JSON"), template],
    operands: 2...2
  ) { invocation throws(Failure) in
    let feed = invocation.operand(0)
    let templates = try invocation.templates()
    var params = ParameterWriter(feed: feed)
    params.add("path", invocation.operand(1))
    let hasPlaces = invocation.options.contains("places")
    if hasPlaces, !templates.isEmpty { throw invocation.usage("--places and --template exclude each other") }
    if hasPlaces { params.add("places", true) }
    do throws(Failure) {
      let show = hasPlaces ? Show.placedNodes : Show.items("nodes", templates)
      return try invocation.request("query", params.finish(), show: show)
    } catch {
      guard error.exceeds(["maxFrame", "maxQueryBytes", "maxQuerySteps"]) else { throw error }
    }
    try LocalQuery(invocation, invocation.operand(1), templates, hasPlaces: hasPlaces).run(feed)
    return .done
  }

  static let snapshot = Command(
    name: "snapshot", usage: ["FEED"], summary: "show a whole feed",
    examples: """
      feedclient snapshot inbox
      feedclient snapshot inbox --template '{priority:>3} {text}'
      """,
    about: "Shows every section of a feed with its elements, all of one revision. The feed may be of any size.",
    options: [template], operands: 1...1
  ) { invocation throws(Failure) in
    let feed = invocation.operand(0)
    let templates = try invocation.templates()
    do throws(Failure) {
      let params = ParameterWriter(feed: feed).finish()
      return try invocation.request("snapshot", params) { Show.snapshot($0, $1, templates) }
    } catch {
      guard error.exceeds(["maxFrame"]) else { throw error }
    }
    try SnapshotStream(invocation).show(feed, templates)
    return .done
  }

  static let verify = Command(
    name: "verify", usage: ["FEED"], summary: "show revision, counts and digest of a feed",
    examples: "feedclient verify inbox",
    about: """
      Shows the revision of a feed, the number of rows in each section, and the CRC-32 of its content. Copies with \
      equal values are equal. See also watch --verify.
      """,
    operands: 1...1
  ) { invocation throws(Failure) in
    try invocation.request("verify", ParameterWriter(feed: invocation.operand(0)).finish(), show: Show.members)
  }

  /// `--template`, for commands that print rows.
  static let template = OptionDescription(
    "template", value: .text("[TYPE=]TEXT"),
    help: "print rows, or those of a type, as TEXT with fields {PATH!FILTER|DEFAULT:WIDTH}, such as "
      + "{user.name|none:>10}, {text!json} or {text!markup}",
    repeats: true)
}

extension Invocation {
  /// The templates of the command line.
  func templates() throws(Failure) -> Templates {
    let templates = try Templates(options.texts("template"))
    if !templates.isEmpty, console.wantsJSON { throw usage("--template and --json exclude each other") }
    return templates
  }
}

extension Failure {
  /// The daemon's error response; nil for any other failure.
  var refusal: RemoteError? {
    guard case .client(.refused(let error)) = self else { return nil }
    return error
  }

  /// Whether the daemon refused the request because of one of these limits.
  func exceeds(_ limits: Set<String>) -> Bool {
    guard let error = refusal, error.code == RemoteError.limitExceeded else { return false }
    return error.data?.readJSON { $0.member("limit")?.string }.map(limits.contains) ?? false
  }
}

/// Commands for the selection, which all clients share.
extension Command {
  static let select = selection(
    "select", summary: "select rows of a feed",
    about: """
      Adds rows to the selection of a feed, which all programs share and are notified about. In a feed defined with \
      --no-multiple, the one row given replaces the selected one.
      """)

  static let deselect = selection(
    "deselect", summary: "deselect rows of a feed",
    about: "Removes rows from the selection of a feed.")

  static let selected = Command(
    name: "selected", usage: ["FEED"], summary: "show the selected rows of a feed",
    examples: "feedclient selected inbox",
    about: "Shows the places of the selected rows of a feed.", operands: 1...1
  ) { invocation throws(Failure) in
    try invocation.request("selected", ParameterWriter(feed: invocation.operand(0)).finish(), show: Show.selection)
  }

  private static func selection(_ name: String, summary: String, about: String) -> Command {
    Command(
      name: name, usage: ["FEED SECTION,ROW...", "FEED --all"], summary: summary,
      examples: """
        feedclient \(name) inbox urgent,3
        feedclient \(name) inbox --all
        """,
      about: about, options: [OptionDescription("all", help: "all rows"), condition],
      operands: 1...Int.max
    ) { invocation throws(Failure) in
      var params = try invocation.changeParameters()
      let words = invocation.operands.dropFirst()
      guard words.isEmpty == invocation.options.contains("all") else {
        throw invocation.usage("expected places such as 0,3, or --all")
      }
      if words.isEmpty {
        params.add("all", true)
      } else {
        var paths: [String] = []
        for word in words {
          let path = try invocation.place(word, of: invocation.operand(0))
          paths.append("[\(path.section),\(path.row)]")
        }
        params.add("at", json: paths)
      }
      return try invocation.request(name, params.finish(), show: Show.changedSelection)
    }
  }
}
