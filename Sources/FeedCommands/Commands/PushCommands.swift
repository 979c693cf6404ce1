import FeedClient
import FeedJSON
import FeedSystem

extension Command {
  static let push = Command(
    name: "push", usage: ["FEED [ELEMENT...|-]"], summary: "put elements into a feed",
    about: """
      Puts elements into a feed: into a collection by their identity, replacing those that are there; at the end of \
      an array; or in place of the one in a single. Elements are arguments, in one commit, of which a single takes \
      the last; or lines on standard input, which are pushed as they come. Each refused line is reported with its \
      number, and the others go in: the exit status is 1 when the daemon refused lines, 2 when all others were not JSON.
      """,
    options: [
      OptionDescription("no-define", help: "refuse when the feed is not there, instead of making a plain collection"),
      animation,
    ],
    notes: """
      A feed that is not defined becomes a collection of one bin, 'all', with the identity at $.id.

      Examples:
        feedclient push inbox '{"id":1,"text":"disk full"}' '{"id":2,"text":"all quiet"}'
        git log --format='{"id":"%h","author":"%an"}' | feedclient push commits
        journalctl -f -o json | jq -c --unbuffered '{id:.__CURSOR, text:.MESSAGE}' | feedclient push log -
      """,
    operands: 1...Int.max
  ) { invocation throws(Failure) in
    let words = Array(invocation.operands.dropFirst())
    if words.isEmpty || words == ["-"] { return try invocation.pushStream() }
    return try invocation.push(ElementArguments.parse(words, of: "push"))
  }
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
    let text = params.finish()
    do throws(ClientError) {
      try connection.call(target.method, params: { $0.append(string: text) }, deadline: deadline) { result in
        Show.mutation(result, console)
      }
    } catch {
      throw .client(error)
    }
    return .done
  }

  /// Pushes the lines of standard input.
  fileprivate func pushStream() throws(Failure) -> ExitStatus {
    let deadline = deadline()
    let (connection, hello) = try connect(deadline: deadline)
    var target = try pushTarget(connection, deadline: deadline)
    target.animation = options.text("animation")
    let showsProgress = console.errorTerminal.canRedraw
    if Terminal(descriptor: StandardStreams.input, environment: environment).isTerminal {
      console.say("type elements, one JSON text a line; end with control-D")
    }
    let stream = PushStream(
      connection, target, console: console, maxFrame: hello.maxFrame, showsProgress: showsProgress)
    return try stream.run(deadline: end)
  }

  /// What the feed is; one that is not there is made, unless the user wants none.
  private func pushTarget(_ connection: Connection, deadline: UInt64) throws(Failure) -> PushTarget {
    let feed = operand(0)
    var name = ParameterWriter()
    name.add("feed", feed)
    let params = name.finish()
    do throws(ClientError) {
      do throws(ClientError) {
        return try connection.call("describe", params: { $0.append(string: params) }, deadline: deadline) { result in
          PushTarget(result)
        }
      } catch {
        guard case .refused(let refusal) = error, refusal.code == RemoteError.unknownFeed,
          !options.contains("no-define")
        else { throw error }
        let plain = DefinitionBuilder(feed: feed).json(replace: false)
        try connection.call("define", params: { $0.append(string: plain) }, deadline: deadline) { _ in }
        console.say(
          "defined \(feed) as a plain collection: one bin 'all', identity at $.id (--no-define refuses instead)")
        return try connection.call("describe", params: { $0.append(string: params) }, deadline: deadline) { result in
          PushTarget(result)
        }
      }
    } catch {
      throw .client(error)
    }
  }
}

extension Command {
  static let delete = Command(
    name: "delete", usage: ["FEED ID..."], summary: "take elements out, by identity",
    about: "Takes the elements with these identities out of a collection, in one commit. An unknown one is no error.",
    options: [animation],
    notes: idNote + """
      \n
      Example:
        feedclient delete inbox 17 18 lamp
      """,
    operands: 2...Int.max
  ) { invocation throws(Failure) in
    var params = invocation.changeParameters()
    params.add("ids", json: invocation.operands.dropFirst().map(Operands.id))
    return try invocation.request("delete", params.finish(), show: Show.mutation)
  }

  static let set = Command(
    name: "set", usage: ["FEED [ELEMENT...|-]"], summary: "make a feed hold exactly these elements",
    about: """
      Makes a feed hold exactly the elements given, as arguments or one a line on standard input, in one commit. \
      What is there already and equal stays as it is. Standard input without elements empties the feed only if '-' \
      asks for it.
      """,
    options: [animation],
    notes: """
      Examples:
        jq -c '.[]' todo.json | feedclient set todo
        feedclient set todo - </dev/null     empties it
      """,
    operands: 1...Int.max
  ) { invocation throws(Failure) in
    var params = invocation.changeParameters()
    let elements = try invocation.elements(from: 1)
    if elements.isEmpty, invocation.operands.count == 1 {
      throw invocation.usage("there are no elements on standard input; to empty the feed, give '-' for them")
    }
    params.add("elements", json: elements)
    return try invocation.request("set", params.finish(), show: Show.mutation)
  }
}
