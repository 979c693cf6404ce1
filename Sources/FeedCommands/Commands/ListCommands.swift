import FeedClient
import FeedSystem

/// Commands on arrays and singles.
extension Command {
  static let insert = Command(
    name: "insert", usage: ["FEED [ELEMENT...|-] [--at ROWS]"], summary: "put elements into an array, by row",
    about: """
      Inserts elements into an array at rows, or at its end. One row is that of the first element, and the others \
      follow; of several rows, one for each element, each counts with the earlier ones already in.
      """,
    options: [rows, animation],
    notes: """
      Examples:
        feedclient insert styles --at 0 '{"title":"first"}'
        feedclient insert styles --at 0,2 '{"title":"first"}' '{"title":"third"}'
      """,
    operands: 1...Int.max
  ) { invocation throws(Failure) in
    var params = invocation.changeParameters()
    let elements = try invocation.elements(from: 1)
    if let rows = invocation.options.text("at") { try params.addRows(rows, elements.count, invocation) }
    params.add("elements", json: elements)
    return try invocation.request("insert", params.finish(), show: Show.mutation)
  }

  static let replace = Command(
    name: "replace", usage: ["FEED --at ROWS [ELEMENT...|-]"], summary: "replace elements of an array, by row",
    about: """
      Puts elements in the place of those at rows of an array. One row is that of the first element, and the others \
      follow; of several rows there is one for each element.
      """,
    options: [rows, animation],
    notes: """
      Example:
        feedclient replace styles --at 3 '{"title":"another fourth"}'
      """,
    operands: 1...Int.max
  ) { invocation throws(Failure) in
    guard let rows = invocation.options.text("at") else { throw invocation.usage("--at is missing: say which rows") }
    var params = invocation.changeParameters()
    let elements = try invocation.elements(from: 1)
    try params.addRows(rows, elements.count, invocation)
    params.add("elements", json: elements)
    return try invocation.request("replace", params.finish(), show: Show.mutation)
  }

  static let remove = Command(
    name: "remove", usage: ["FEED ROW..."], summary: "take elements out of an array, by row",
    about:
      "Takes the elements at these rows out of an array, all at once: the rows are those before any of them is gone.",
    options: [animation],
    notes: """
      Example:
        feedclient remove styles 0 4 5
      """,
    operands: 2...Int.max
  ) { invocation throws(Failure) in
    var params = invocation.changeParameters()
    let words = invocation.operands.dropFirst().joined(separator: ",")
    guard let rows = Operands.rows(words) else { throw invocation.usage("'\(words)': expected rows, from 0 on") }
    params.add("at", rows)
    return try invocation.request("remove", params.finish(), show: Show.mutation)
  }

  static let move = Command(
    name: "move", usage: ["FEED FROM TO"], summary: "move an element of an array",
    about: "Moves the element at row FROM of an array to row TO, counted after the move.",
    options: [animation],
    notes: """
      Example:
        feedclient move styles 4 0
      """,
    operands: 3...3
  ) { invocation throws(Failure) in
    var params = invocation.changeParameters()
    guard let rows = Operands.rows("\(invocation.operand(1)),\(invocation.operand(2))"), rows.count == 2 else {
      throw invocation.usage("FROM and TO: expected rows, from 0 on")
    }
    params.add("from", rows[0])
    params.add("to", rows[1])
    return try invocation.request("move", params.finish(), show: Show.mutation)
  }

  static let put = Command(
    name: "put", usage: ["FEED ELEMENT|null"], summary: "put the element into a single",
    about: "Puts an element into a single, in the place of the one there. null empties it.",
    options: [animation],
    notes: """
      Examples:
        feedclient put banner '{"text":"Maintenance at noon"}'
        feedclient put banner null
      """,
    operands: 2...2
  ) { invocation throws(Failure) in
    var params = invocation.changeParameters()
    params.add("element", json: try ElementArguments.parse([invocation.operand(1)], of: "put")[0])
    return try invocation.request("put", params.finish(), show: Show.mutation)
  }

  private static let rows = OptionDescription("at", value: .text("ROWS"), help: "a row, or rows as in 0,3,5, from 0 on")
}

extension ParameterWriter {
  /// Adds `at` from `3` or `0,3,5`; several rows must be as many as there are elements.
  fileprivate mutating func addRows(_ word: String, _ count: Int, _ invocation: Invocation) throws(Failure) {
    guard let rows = Operands.rows(word) else {
      throw invocation.usage("--at '\(word)': expected rows such as 3 or 0,3,5")
    }
    guard rows.count == 1 || rows.count == count else {
      throw invocation.usage(
        "--at names \(rows.count) rows for \(count) elements; give one for each, or the first alone")
    }
    if rows.count == 1 { add("at", rows[0]) } else { add("at", rows) }
  }
}
