import FeedClient
import FeedSystem

/// Commands on the selection that all programs share.
extension Command {
  static let select = selection(
    "select", summary: "select rows of a feed, for everybody",
    about: """
      Selects rows of a feed, besides those that are. The selection is one for all programs, and they are told. \
      Where the feed is defined with --no-multiple, one row may be given, and it takes the place of the one selected \
      before.
      """)

  static let deselect = selection(
    "deselect", summary: "deselect rows of a feed, for everybody",
    about: "Takes rows out of the selection of a feed.")

  static let selected = Command(
    name: "selected", usage: ["FEED"], summary: "show which rows of a feed are selected",
    about: "Shows the places of the selected rows of a feed.", operands: 1...1
  ) { invocation throws(Failure) in
    var params = ParameterWriter()
    params.add("feed", invocation.operand(0))
    return try invocation.request("selected", params.finish(), show: Show.value)
  }

  private static func selection(_ name: String, summary: String, about: String) -> Command {
    Command(
      name: name, usage: ["FEED SECTION,ROW...", "FEED --all"], summary: summary, about: about,
      options: [OptionDescription("all", help: "every row")],
      notes: """
        Examples:
          feedclient \(name) inbox 0,3
          feedclient \(name) inbox --all
        """,
      operands: 1...Int.max
    ) { invocation throws(Failure) in
      var params = ParameterWriter()
      params.add("feed", invocation.operand(0))
      let words = invocation.operands.dropFirst()
      guard words.isEmpty == invocation.options.contains("all") else {
        throw invocation.usage("give places such as 0,3, or --all")
      }
      if words.isEmpty {
        params.add("all", true)
      } else {
        var paths: [String] = []
        for word in words {
          guard let path = Operands.path(word) else { throw invocation.usage("'\(word)': expected SECTION,ROW") }
          paths.append("[\(path.section),\(path.row)]")
        }
        params.add("at", json: paths)
      }
      return try invocation.request(name, params.finish(), show: Show.value)
    }
  }
}
