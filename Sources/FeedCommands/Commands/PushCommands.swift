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
      Pushes elements into a feed: a collection inserts or updates them by identity, an array appends them, a single \
      keeps the last one. Elements given as arguments are one commit. Elements on standard input are pushed as they \
      come: one a line, concatenated, pretty-printed, or in JSON arrays, which stand for their items.
      """,
    options: [
      OptionDescription("define", help: "define an unknown feed as a plain collection"),
      OptionDescription("no-define", help: "refuse an unknown feed (default)"),
      animation,
    ],
    notes: """
      An element that is refused is reported with its line, and the others are
      pushed. The exit status is then 1, or 2 when all refused ones are not JSON.
      """,
    operands: 1...Int.max
  ) { invocation throws(Failure) in
    let words = Array(invocation.operands.dropFirst())
    if words.isEmpty || words == ["-"] { return try invocation.pushStream() }
    return try invocation.push(ElementArguments.parse(words, of: "push"))
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
    options: [animation],
    operands: 1...Int.max
  ) { invocation throws(Failure) in
    var params = invocation.changeParameters()
    let elements = try invocation.elements(from: 1)
    if elements.isEmpty, invocation.operands.count == 1 {
      throw invocation.usage("standard input is empty; to remove all elements, give '-'")
    }
    params.add("elements", json: elements)
    return try invocation.request("set", params.finish(), show: Show.mutation)
  }

  static let delete = Command(
    name: "delete", usage: ["FEED ID..."], summary: "delete elements by identity",
    examples: "feedclient delete inbox 17 18 lamp",
    about: "Deletes the elements with these identities from a collection, in one commit. Unknown ones are ignored.",
    options: [animation], notes: idNote, operands: 2...Int.max
  ) { invocation throws(Failure) in
    var params = invocation.changeParameters()
    params.add("ids", json: invocation.operands.dropFirst().map(Operands.id))
    return try invocation.request("delete", params.finish(), show: Show.mutation)
  }

  /// How an ID on a command line is read.
  static let idNote = """
    An ID that is a JSON number or a quoted JSON string is used as it is; every
    other word is a string: 17 is a number, '"17"' and lamp are strings.
    """
}

extension Invocation {
  /// Pushes elements of the command line as one commit.
  fileprivate func push(_ elements: [String]) throws(Failure) -> ExitStatus {
    let deadline = deadline()
    let (connection, _) = try connect(deadline: deadline)
    let target = try pushTarget(connection, deadline: deadline)
    let console = console
    var params = changeParameters()
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
    let deadline = deadline()
    let (connection, hello) = try connect(deadline: deadline)
    var target = try pushTarget(connection, deadline: deadline)
    target.animation = options.text("animation")
    if Terminal(descriptor: StandardStreams.input, environment: environment).isTerminal {
      console.say("reading JSON elements from the terminal; end with Ctrl-D")
    }
    let stream = PushStream(
      self, connection, target, maxFrame: hello.maxFrame, showsProgress: console.errorTerminal.canRedraw)
    return try stream.run(deadline: end)
  }

  /// Describes the feed; with `--define`, an unknown one is defined first.
  func pushTarget(_ connection: Connection, deadline: UInt64) throws(Failure) -> PushTarget {
    let feed = operand(0)
    var name = ParameterWriter()
    name.add("feed", feed)
    let params = name.finish()
    do throws(Failure) {
      return try call(connection, "describe", params, deadline: deadline) { PushTarget($0) }
    } catch {
      guard case .client(.refused(let refusal)) = error, refusal.code == RemoteError.unknownFeed else { throw error }
      guard options.contains("define"), !options.contains("no-define") else {
        let similar = suggestion(for: refusal)
        let advice = "define it with: feedclient define \(LinePainter.shellWord(feed)), or give --define"
        let code = isVerbose || console.wantsJSON ? " (\(refusal.code))" : ""
        console.say("there is no feed '\(feed)'\(similar.isEmpty ? "; \(advice)" : similar)\(code)")
        if !similar.isEmpty { console.say(advice) }
        throw .told(.refused)
      }
    }
    try call(connection, "define", DefinitionBuilder(feed: feed).json(replace: false), deadline: deadline) { _ in }
    console.say("defined '\(feed)' as a collection with one bin, all, and the identity at $.id")
    return try call(connection, "describe", params, deadline: deadline) { PushTarget($0) }
  }
}
