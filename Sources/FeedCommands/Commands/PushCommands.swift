import FeedChange
import FeedClient
import FeedJSON
import FeedSystem

/// Commands that change elements by identity.
extension Command {
  static let push = Command(
    name: "push", usage: ["FEED [ELEMENT...|-]"], summary: "insert or update elements",
    examples: """
      feedclient push inbox '{"id":1,"text":"disk full"}' '{"id":2,"text":"ok"}'
      feedclient push inbox - < elements.json
      journalctl -f -o json | feedclient push journal
      """,
    about: """
      Pushes elements into a feed: a collection or an array with identity inserts or updates them by identity, another \
      array appends them, a single keeps the last one. Elements given as arguments are one commit. Elements on standard \
      input are pushed as they come: one a line, concatenated, pretty-printed, or in JSON arrays, which stand for their \
      items.
      """,
    options: [
      OptionDescription("define", help: "define an unknown feed as a plain collection"),
      OptionDescription("no-define", help: "refuse an unknown feed (default)"),
      elementCondition,
      OptionDescription("absent", help: "change nothing if there is an element of that identity; exit with 1 then"),
      animation, condition,
    ],
    notes: """
      An element that is refused is reported with its line, and the others are
      pushed. The exit status is then 1, or 2 when all refused ones are not JSON.
      --where and --absent hold for each commit: for all arguments, or for a part
      of standard input, from which each refused element is left out.
      """,
    operands: 1...Int.max
  ) { invocation throws(Failure) in
    let words = Array(invocation.operands.dropFirst())
    if words.isEmpty || words == ["-"] { return try invocation.pushStream() }
    return try invocation.push(ElementArguments(words, of: "push").texts)
  }

  static let set = Command(
    name: "set", usage: ["FEED [ELEMENT...|-]"], summary: "replace all elements of a feed",
    examples: """
      feedclient set todo < todo.json
      feedclient set todo - < /dev/null        remove all
      """,
    about: """
      Makes a feed hold exactly these elements, given as arguments or on standard input, in one commit. Elements that \
      are equal stay as they are. Empty standard input removes all elements only if '-' is given.
      """,
    options: changing,
    operands: 1...Int.max
  ) { invocation throws(Failure) in
    let params = try invocation.changeParameters()
    let elements = try invocation.elements(from: 1)
    if elements.texts.isEmpty, invocation.operands.count == 1 {
      throw invocation.usage("standard input is empty; to remove all elements, give '-'")
    }
    return try invocation.request("set", params, elements)
  }

  static let patch = Command(
    name: "patch", usage: ["FEED ID PATCH", "FEED --at ROW PATCH", "FEED PATCH"],
    summary: "change members of an element",
    examples: """
      feedclient patch inbox 17 '{"read":true,"draft":null}'
      feedclient patch styles --at 3 '{"name":"Prairie"}'
      feedclient patch banner '{"text":"Back at noon"}'
      feedclient patch todo b '{"owner":"me"}' --where '!@.owner'
      """,
    about: """
      Merges PATCH, a JSON object, into an element: its members replace those of the same name, null removes a member, \
      and all others stay as they are (RFC 7396). The element is named by its identity in a collection and by its row \
      in an array, or by its identity if it has one; a single has only one. With --where, of several programs that claim \
      an element exactly one ends with 0 and the others with 1.
      """,
    options: [OptionDescription("at", value: .integer(0...Int.max), help: "row of an array, from 0"), elementCondition]
      + changing,
    notes: idNote, operands: 1...3
  ) { invocation throws(Failure) in
    var params = try invocation.changeParameters()
    let words = Array(invocation.operands.dropFirst())
    let row = invocation.options.integer("at")
    guard let patch = words.last else {
      throw invocation.usage("missing argument \(row == nil ? "ID or " : "")PATCH, a JSON object")
    }
    if let row {
      guard words.count == 1 else { throw invocation.usage("ID and --at exclude each other") }
      params.add("at", row)
    } else if words.count == 2 {
      params.add("id", json: Operands.id(words[0]))
    } else if !Operands.beginsObject(patch) {
      throw invocation.usage("missing argument PATCH, a JSON object")
    }
    if let flaw = Operands.flaw(patch) { throw invocation.usage("PATCH is not JSON: \(flaw)") }
    guard Operands.beginsObject(patch) else { throw invocation.usage("PATCH '\(patch)': expected a JSON object") }
    params.add("patch", json: patch)
    return try invocation.change("patch", params)
  }

  /// The help on the syntax of an ID.
  static let idNote = """
    An ID that is a JSON number or a quoted JSON string is used as it is; every
    other word is a string: 17 is a number, '"17"' and lamp are strings.
    """
}

extension Invocation {
  /// Pushes the elements of the command line in one commit.
  fileprivate func push(_ elements: [String]) throws(Failure) -> ExitStatus {
    let deadline = deadline()
    let (connection, _) = try connect(deadline: deadline)
    let target = try pushTarget(connection, deadline: deadline)
    let console = console
    var params = try changeParameters()
    if target.takesMany {
      params.add("elements", json: elements)
    } else if let last = elements.last {
      params.add("element", json: last)
    }
    try call(connection, target.method, params.finish(), deadline: deadline) { Show.mutation($0, console) }
    return .done
  }

  /// Pushes the elements on standard input.
  fileprivate func pushStream() throws(Failure) -> ExitStatus {
    if options.contains("if") {
      throw usage("--if needs elements as arguments; those on standard input are several commits")
    }
    let deadline = deadline()
    let (connection, hello) = try connect(deadline: deadline)
    let target = try pushTarget(connection, deadline: deadline)
    announceInput("JSON elements")
    let stream = PushStream(
      self, connection, target, hello, showsProgress: console.errorTerminal.canRedraw && !console.isQuiet)
    return try stream.run(deadline: end)
  }

  /// Returns the target with the members of each request.
  private func pushTarget(_ connection: Connection, deadline: UInt64) throws(Failure) -> PushTarget {
    var target = try describedTarget(connection, deadline: deadline)
    target.animation = options.text("animation")
    target.filter = options.text("where")
    target.isAbsent = options.contains("absent")
    if target.filter != nil, target.isAbsent { throw usage("--where and --absent exclude each other") }
    if target.filter != nil || target.isAbsent, target.method != "update" {
      throw usage("--where and --absent need a collection, or an array with identity")
    }
    return target
  }

  /// Reads the definition of the feed in the list of feeds, which has no sections: those of some feeds do not fit a frame.
  private func listedTarget(_ connection: Connection, deadline: UInt64) throws(Failure) -> PushTarget? {
    var params = ParameterWriter(feed: FeedName.feeds)
    params.add("id", operand(0))
    return try call(connection, "get", params.finish(), deadline: deadline) { found in
      found.member("element")?.member("definition").flatMap { $0.isNull ? nil : PushTarget($0) }
    }
  }

  /// Describes the feed. With `--define`, defines it first if it is unknown.
  private func describedTarget(_ connection: Connection, deadline: UInt64) throws(Failure) -> PushTarget {
    let feed = operand(0)
    let params = ParameterWriter(feed: feed).finish()
    do throws(Failure) {
      return try call(connection, "describe", params, deadline: deadline) { PushTarget($0) }
    } catch {
      if error.exceeds(["maxFrame"]), let target = try listedTarget(connection, deadline: deadline) { return target }
      guard case .client(.refused(let refusal)) = error, refusal.code == RemoteError.unknownFeed else { throw error }
      if let slash = feed.firstIndex(of: "/") {
        console.say("there is no bin '\(feed)'; push to \(feed[..<slash]), whose bins select its elements")
        throw .told(.refused)
      }
      guard options.contains("define"), !options.contains("no-define") else {
        let similar = suggestion(for: refusal)
        let advice = "define it with: feedclient define \(LinePainter.shellWord(feed)), or give --define"
        let code = isVerbose || console.wantsJSON ? " (\(refusal.code))" : ""
        console.say("there is no feed '\(feed)'\(similar.isEmpty ? "; \(advice)" : similar)\(code)")
        if !similar.isEmpty { console.say(advice) }
        throw .told(.refused)
      }
    }
    var definition = ParameterWriter(feed: feed)
    definition.add("kind", "collection")
    try call(connection, "define", definition.finish(), deadline: deadline) { _ in }
    console.note("defined '\(feed)' as a collection with one bin, all, and the identity at $.id")
    return try call(connection, "describe", params, deadline: deadline) { PushTarget($0) }
  }
}

extension Command {
  static let delete = Command(
    name: "delete", usage: ["FEED ID... [--where FILTER]", "FEED --where FILTER"],
    summary: "delete elements by identity or by a filter",
    examples: """
      feedclient delete inbox 17 18 lamp
      feedclient delete inbox --where '@.read == true && @.priority < 3'
      feedclient delete todo b --where '@.owner == "me"'
      """,
    about: """
      Deletes elements of a collection, or of an array with identity, in one commit: those with these identities, or all \
      that a filter accepts. An identity that is not there is reported and the others are deleted. With identities and \
      --where, nothing is deleted unless each element is there and matches.
      """,
    options: [
      OptionDescription(
        "where", value: .text("FILTER"),
        help: "delete the elements that this filter accepts; with ID, delete only if each of them matches"),
      OptionDescription("strict", help: "exit with 1 if an identity is not there"),
    ] + changing,
    notes: idNote, operands: 1...Int.max
  ) { invocation throws(Failure) in
    let ids = invocation.operands.dropFirst().map(Operands.id)
    if ids.isEmpty {
      guard invocation.options.contains("where") else {
        throw invocation.usage("missing argument ID or --where FILTER")
      }
      if invocation.options.contains("strict") { throw invocation.usage("--strict needs ID") }
      return try invocation.change("delete", invocation.changeParameters())
    }
    return try Deletion(invocation, ids).run()
  }
}

/// A deletion by identity that finds out which identities are not there.
///
/// The daemon ignores unknown identities. With a filter that every element matches, it deletes nothing and names the first
/// one instead. The request is then repeated without it.
private struct Deletion {
  /// The maximum number of identities that are reported. The rest is deleted without a condition.
  private static let maxMissing = 100
  /// A filter that every element matches.
  private static let everything = "@"

  private let invocation: Invocation
  private var ids: [String]
  private var missing = 0

  init(_ invocation: Invocation, _ ids: [String]) { (self.invocation, self.ids) = (invocation, ids) }

  consuming func run() throws(Failure) -> ExitStatus {
    let deadline = invocation.deadline()
    let (connection, _) = try invocation.connect(deadline: deadline)
    let hasFilter = invocation.options.contains("where")
    var isConditional = !hasFilter
    while true {
      var params = try invocation.changeParameters()
      params.add("ids", json: ids)
      if isConditional { params.add("where", Self.everything) }
      do throws(Failure) {
        let console = invocation.console
        try invocation.call(connection, "delete", params.finish(), deadline: deadline) { Show.mutation($0, console) }
        break
      } catch {
        guard isConditional, case .client(.refused(let refusal)) = error else { throw error }
        if let index = refusal.conditionIndex, ids.indices.contains(index) {
          try report(ids.remove(at: index))
          isConditional = !ids.isEmpty && missing < Self.maxMissing
        } else if refusal.code == RemoteError.notAllowed || refusal.code == RemoteError.invalidParameters {
          // A condition needs the right to read the feed, and a daemon that knows conditions on elements.
          isConditional = false
        } else {
          throw error
        }
      }
    }
    return missing > 0 && invocation.options.contains("strict") ? .refused : .done
  }

  private mutating func report(_ id: String) throws(Failure) {
    missing += 1
    let console = invocation.console
    let tell = invocation.options.contains("strict") ? console.say : console.note
    tell("'\(invocation.operand(0))' has no element \(id)")
    if missing == Self.maxMissing { tell("further elements that are not there are not named") }
  }
}

extension RemoteError {
  fileprivate static let notAllowed = -32006
  fileprivate static let invalidParameters = -32602

  /// The index of the first element in the request that does not meet the condition on elements.
  var conditionIndex: Int? {
    code == Self.conditionFailed ? data?.readJSON { $0.member("index")?.int } : nil
  }
}
