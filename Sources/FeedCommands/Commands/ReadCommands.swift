import FeedClient
import FeedSystem

extension Command {
  static let get = Command(
    name: "get", usage: ["FEED ID", "FEED --at SECTION,ROW"], summary: "show one element, by identity or by place",
    about: """
      Shows the element with an identity, and where it is, or the element at a place. There being none is no error: \
      the element is null then.
      """,
    options: [OptionDescription("at", value: .text("SECTION,ROW"), help: "the place, both counted from 0")],
    notes: idNote + """
      \n
      Examples:
        feedclient get inbox 17
        feedclient get inbox --at 0,3
      """,
    operands: 1...2
  ) { invocation throws(Failure) in
    var params = ParameterWriter()
    params.add("feed", invocation.operand(0))
    if let place = invocation.options.text("at") {
      guard invocation.operands.count == 1 else { throw invocation.usage("give an ID or --at, not both") }
      guard let (section, row) = Operands.path(place) else {
        throw invocation.usage("--at '\(place)': expected SECTION,ROW, such as 0,3")
      }
      params.add("at", [section, row])
    } else {
      guard invocation.operands.count == 2 else { throw invocation.usage("give an ID, or --at SECTION,ROW") }
      params.add("id", json: Operands.id(invocation.operand(1)))
    }
    return try invocation.request("get", params.finish(), show: Show.value)
  }

  static let range = Command(
    name: "range", usage: ["FEED SECTION FROM COUNT"], summary: "show some rows of a section",
    about:
      "Shows COUNT elements of a section from row FROM on; sections and rows are counted from 0. One element a line.",
    notes: """
      Example:
        feedclient range inbox 0 0 20
      """,
    operands: 4...4
  ) { invocation throws(Failure) in
    var params = ParameterWriter()
    params.add("feed", invocation.operand(0))
    for (index, name) in ["section", "from", "count"].enumerated() {
      let word = invocation.operand(index + 1)
      guard let number = Int(word), number >= 0 else {
        throw invocation.usage("\(name.uppercased()) '\(word)': expected a whole number from 0 on")
      }
      params.add(name, number)
    }
    return try invocation.request("range", params.finish(), show: Show.items("elements"))
  }

  static let query = Command(
    name: "query", usage: ["FEED PATH"], summary: "show what a JSONPath finds in a feed",
    about: """
      Evaluates a JSONPath (RFC 9535) over the array of the feed's elements in flattened order, and shows each node \
      that it finds on a line.
      """,
    notes: """
      Examples:
        feedclient query inbox '$[?@.priority > 5].text'
        feedclient query inbox '$[-3:]'
        feedclient query inbox '$[?search(@.text, "disk|memory")]'
      """,
    operands: 2...2
  ) { invocation throws(Failure) in
    var params = ParameterWriter()
    params.add("feed", invocation.operand(0))
    params.add("path", invocation.operand(1))
    return try invocation.request("query", params.finish(), show: Show.items("nodes"))
  }

  static let snapshot = Command(
    name: "snapshot", usage: ["FEED"], summary: "show the whole feed at one revision",
    about: """
      Shows every section of a feed with its elements, all of one revision. A feed that is too big for one frame is \
      refused; 'feedclient watch FEED --snapshot-only' has no such limit.
      """,
    operands: 1...1
  ) { invocation throws(Failure) in
    var params = ParameterWriter()
    params.add("feed", invocation.operand(0))
    return try invocation.request("snapshot", params.finish(), show: Show.snapshot)
  }

  static let verify = Command(
    name: "verify", usage: ["FEED"], summary: "show revision, counts and digest of a feed",
    about: """
      Shows the revision of a feed, the number of rows in each section, and the CRC-32 of its content: two copies \
      are the same when these are. See also watch --verify.
      """,
    operands: 1...1
  ) { invocation throws(Failure) in
    var params = ParameterWriter()
    params.add("feed", invocation.operand(0))
    return try invocation.request("verify", params.finish(), show: Show.members)
  }

  /// How an ID on a command line is read.
  static let idNote = """
    An ID that is a JSON number or a JSON string is taken as that; any other word is a string.
    So 17 is the number and '"17"' the string of two digits; lamp is the string "lamp".
    """
}
