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

extension Command {
  static let move = Command(
    name: "move", usage: ["FEED FROM|ID TO|end", "FEED FROM|ID --before ID|--after ID", "FEED --id ID ..."],
    summary: "move an element of an array",
    examples: """
      feedclient move styles 4 0
      feedclient move queue --id 17 end
      feedclient move todo milk --before door
      """,
    about: """
      Moves the element at row FROM of an array, or the one with the identity ID, to row TO, counted after the move, to \
      the end, or next to another element. A number is a row; --id takes an identity that is one. If the feed changes \
      while the place is looked up, that is repeated.
      """,
    options: [
      OptionDescription("id", value: .text("ID"), help: "identity of the element, in an array with identity"),
      OptionDescription("before", value: .text("ID"), help: "move before the element with this identity"),
      OptionDescription("after", value: .text("ID"), help: "move behind the element with this identity"),
      elementCondition,
    ] + changing,
    notes: idNote, operands: 1...3
  ) { invocation throws(Failure) in
    let options = invocation.options
    var words = Array(invocation.operands.dropFirst())
    let source: Relocation.Source
    if let id = options.text("id") {
      source = .id(Operands.id(id))
    } else {
      guard !words.isEmpty else { throw invocation.usage("missing argument FROM or --id ID") }
      source = try invocation.source(words.removeFirst())
    }
    if options.contains("before"), options.contains("after") {
      throw invocation.usage("--before and --after exclude each other")
    }
    let target: Relocation.Target
    if let anchor = options.text("before") ?? options.text("after") {
      guard words.isEmpty else {
        throw invocation.usage("TO and --\(options.contains("before") ? "before" : "after") exclude each other")
      }
      target = .beside(Operands.id(anchor), isAfter: options.contains("after"))
    } else {
      guard let word = words.first else { throw invocation.usage("missing argument TO") }
      guard words.count == 1 else { throw invocation.usage("FROM and --id exclude each other") }
      target = word == "end" ? .end : .row(try invocation.row(word, "TO"))
    }
    return try Relocation(invocation, source, target).run()
  }
}

extension Invocation {
  /// What FROM names: a row, or an identity if it is no number.
  fileprivate func source(_ word: String) throws(Failure) -> Relocation.Source {
    let id = Operands.id(word)
    return Operands.rows(word)?.count != 1 && id.hasPrefix("\"") ? .id(id) : .row(try row(word, "FROM"))
  }

  fileprivate func row(_ word: String, _ name: String) throws(Failure) -> Int {
    guard let rows = Operands.rows(word), rows.count == 1 else {
      throw usage("\(name) '\(word)': expected a row, from 0 on\(name == "TO" ? ", or end" : "")")
    }
    return rows[0]
  }
}

/// A move within an array, to a place that may depend on other elements.
private struct Relocation {
  enum Source {
    case row(Int)
    /// The JSON of an identity.
    case id(String)
  }

  enum Target {
    case row(Int)
    case end
    /// Next to the element with an identity, given as JSON.
    case beside(String, isAfter: Bool)
  }

  /// The maximum number of times that the place is looked up.
  private static let maxAttempts = 100

  private let invocation: Invocation
  private let source: Source
  private let target: Target

  private var feed: String { invocation.operand(0) }

  init(_ invocation: Invocation, _ source: Source, _ target: Target) {
    (self.invocation, self.source, self.target) = (invocation, source, target)
  }

  func run() throws(Failure) -> ExitStatus {
    let deadline = invocation.deadline()
    let (connection, _) = try invocation.connect(deadline: deadline)
    let console = invocation.console
    var attempt = 1
    while true {
      var params = ParameterWriter(feed: feed)
      switch source {
      case .row(let row): params.add("from", row)
      case .id(let id): params.add("id", json: id)
      }
      let isLookedUp = try add(to: &params, connection, deadline)
      do throws(Failure) {
        try invocation.call(connection, "move", params.finish(), deadline: deadline) { Show.mutation($0, console) }
        return .done
      } catch {
        // The feed changed since its rows were looked up.
        guard isLookedUp, !invocation.options.contains("if"), attempt < Self.maxAttempts,
          case .client(.refused(let refusal)) = error, refusal.code == RemoteError.conditionFailed,
          refusal.conditionIndex == nil
        else { throw error }
        attempt += 1
      }
    }
  }

  /// Adds the target and the conditions. Returns whether the target was looked up, so that it is right only at that revision.
  private func add(
    to params: inout ParameterWriter, _ connection: Connection, _ deadline: UInt64
  ) throws(Failure) -> Bool {
    if case .row(let row) = target {
      params.add("to", row)
      try invocation.addChangeMembers(of: feed, to: &params)
      return false
    }
    let (revision, count) = try invocation.describe(feed, over: connection, deadline: deadline) {
      ($0.member("revision")?.int ?? 0, $0.member("count")?.int ?? 0)
    }
    var row = max(count - 1, 0)
    if case .beside(let anchor, let isAfter) = target {
      let place = try self.row(of: anchor, connection, deadline)
      let from =
        switch source {
        case .row(let row): row
        case .id(let id): try self.row(of: id, connection, deadline)
        }
      // The rows behind the element move up when it is taken away.
      row = from < place ? (isAfter ? place : place - 1) : from > place && isAfter ? place + 1 : place
    }
    params.add("to", row)
    try invocation.addChangeMembers(of: feed, to: &params, at: revision)
    return true
  }

  /// The row of the element with an identity.
  private func row(of id: String, _ connection: Connection, _ deadline: UInt64) throws(Failure) -> Int {
    var params = ParameterWriter(feed: feed)
    params.add("id", json: id)
    let row = try invocation.call(connection, "get", params.finish(), deadline: deadline) {
      $0.member("at")?.element(at: 0)?.element(at: 1)?.int
    }
    if let row { return row }
    invocation.console.say("'\(feed)' has no element \(id)")
    throw .told(.refused)
  }
}
