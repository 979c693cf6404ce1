import FeedClient
import FeedJSON
import FeedSystem

/// Commands that change arrays by row, and commands for singles.
extension Command {
  static let insert = Command(
    name: "insert", usage: ["FEED [ELEMENT...|-] [--at ROWS]"], summary: "insert elements into an array",
    examples: """
      feedclient insert styles --at 0 '{"title":"first"}'
      feedclient insert styles --at 0,2 '{"title":"first"}' '{"title":"third"}'
      """,
    about: """
      Inserts elements into an array, at its end unless --at is given. One row is that of the first element, and the \
      others follow. Several rows, one for each element, count with the earlier elements already inserted.
      """,
    options: [rows] + changing,
    operands: 1...Int.max
  ) { invocation throws(Failure) in
    var params = try invocation.changeParameters()
    let elements = try invocation.elements(from: 1)
    if let rows = invocation.options.text("at") { try params.addRows(rows, elements.texts.count, invocation) }
    return try invocation.request("insert", params, elements)
  }

  static let replace = Command(
    name: "replace", usage: ["FEED --at ROWS [ELEMENT...|-]"], summary: "replace elements of an array",
    examples: "feedclient replace styles --at 3 '{\"title\":\"new fourth\"}'",
    about: """
      Replaces elements of an array. One row is that of the first element, and the others follow; or there is one row \
      for each element.
      """,
    options: [rows] + changing,
    operands: 1...Int.max
  ) { invocation throws(Failure) in
    guard let rows = invocation.options.text("at") else { throw invocation.usage("missing option --at ROWS") }
    var params = try invocation.changeParameters()
    let elements = try invocation.elements(from: 1)
    try params.addRows(rows, elements.texts.count, invocation)
    return try invocation.request("replace", params, elements)
  }

  static let remove = Command(
    name: "remove", usage: ["FEED ROW..."], summary: "remove elements of an array",
    examples: "feedclient remove styles 0 4 5",
    about: "Removes the elements at these rows of an array in one commit. Rows count before any of them is removed.",
    options: changing,
    operands: 2...Int.max
  ) { invocation throws(Failure) in
    var params = try invocation.changeParameters()
    let words = invocation.operands.dropFirst().joined(separator: ",")
    guard let rows = Operands.rows(words) else { throw invocation.usage("'\(words)': expected rows, from 0 on") }
    params.add("at", rows)
    return try invocation.change("remove", params)
  }

  static let put = Command(
    name: "put", usage: ["FEED ELEMENT|null"], summary: "set the element of a single",
    examples: """
      feedclient put banner '{"text":"Maintenance at noon"}'
      feedclient put banner null
      """,
    about: "Replaces the element of a single. null empties it.",
    options: changing,
    operands: 2...2
  ) { invocation throws(Failure) in
    var params = try invocation.changeParameters()
    params.add("element", json: try ElementArguments([invocation.operand(1)], of: "put").texts[0])
    return try invocation.change("put", params)
  }

  private static let rows = OptionDescription("at", value: .text("ROWS"), help: "row, or rows such as 0,3,5, from 0")
}

extension ParameterWriter {
  /// Adds `at`, given as `3` or `0,3,5`. Several rows must match the number of elements.
  fileprivate mutating func addRows(_ word: String, _ count: Int, _ invocation: Invocation) throws(Failure) {
    guard let rows = Operands.rows(word) else {
      throw invocation.usage("--at '\(word)': expected rows such as 3 or 0,3,5")
    }
    guard rows.count == 1 || rows.count == count else {
      throw invocation.usage(
        "--at has \(counted(rows.count, "row")) for \(counted(count, "element")); give one for each, or only the first"
      )
    }
    if rows.count == 1 { add("at", rows[0]) } else { add("at", rows) }
  }
}
