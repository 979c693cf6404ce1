import FeedClient
import FeedSystem

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
