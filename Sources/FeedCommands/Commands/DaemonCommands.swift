import FeedClient
import FeedJSON
import FeedSystem
import FeedWire

/// Commands about the daemon itself.
extension Command {
  static let stats = Command(
    name: "stats", usage: ["[OPTION]..."], summary: "show the daemon's counters and gauges",
    examples: """
      feedclient stats
      feedclient stats --watch --interval 5s
      feedclient stats --prometheus > /var/lib/node_exporter/feedd.prom
      """,
    about: "Shows what the daemon has done since it started and what it holds now.",
    options: [
      OptionDescription("watch", help: "print them again and again, until interrupted"),
      OptionDescription(
        "interval", value: .duration(.milliseconds(100)...(.seconds(86_400))),
        help: "time between two prints with --watch",
        defaultText: "1s"),
      OptionDescription("prometheus", help: "print the Prometheus text exposition format"),
    ],
    operands: 0...0
  ) { invocation throws(Failure) in
    let isPrometheus = invocation.options.contains("prometheus")
    if isPrometheus, invocation.console.wantsJSON {
      throw invocation.usage("--prometheus and --json exclude each other")
    }
    let show = isPrometheus ? { $1.printRaw(Metrics.text(of: $0)) } : Show.members
    if invocation.options.contains("watch") { return try invocation.watchStats(show) }
    return try invocation.request("stats", show: show)
  }

  static let clients = Command(
    name: "clients", usage: [""], summary: "list the connections", examples: "feedclient clients",
    about: """
      Lists the connections: user, process, name, queued bytes, bytes held for incomplete and waiting requests, lag, and \
      number of resets.
      """,
    operands: 0...0
  ) { invocation throws(Failure) in
    let important = ["connection", "name", "watches", "lag", "queued", "pid", "uid"]
    return try invocation.request("clients", show: Show.table("clients", important: important))
  }

  static let logLevel = Command(
    name: "log-level", usage: ["[LEVEL]"], summary: "show or change what the daemon logs",
    examples: """
      feedclient log-level
      feedclient log-level debug
      """,
    about: """
      Makes the daemon log events of LEVEL and those more severe until it ends: error, warning, notice, info or debug. \
      Without LEVEL it shows the present level. Opened and closed connections are logged at debug.
      """,
    operands: 0...1
  ) { invocation throws(Failure) in
    var params = ParameterWriter()
    if let level = invocation.operands.first {
      let levels = ["error", "warning", "notice", "info", "debug"]
      guard levels.contains(level) else { throw invocation.unknown("level", level, known: levels) }
      params.add("level", level)
    }
    return try invocation.request("logLevel", params.finish(), show: Show.members)
  }

  static let quotas = Command(
    name: "quotas", usage: [""], summary: "show what each user stores and holds",
    examples: """
      feedclient quotas
      feedclient --json quotas
      """,
    about: """
      Shows for each user its connections, the bytes that they hold, and the feeds, elements and bytes that it stores. \
      Only for root, the daemon's user, and users with the right "admin".
      """,
    operands: 0...0
  ) { invocation throws(Failure) in
    try invocation.request("quotas") { result, console in
      if console.isJSON { Show.value(result, console) } else { Show.table("users")(result, console) }
    }
  }

  static let kick = Command(
    name: "kick", usage: ["CONNECTION..."], summary: "close connections of other clients",
    examples: """
      feedclient clients
      feedclient kick 17
      """,
    about: """
      Closes connections by their numbers, as 'feedclient clients' shows them. \
      Only for root, the daemon's user, and users with the right "admin".
      """,
    operands: 1...1000
  ) { invocation throws(Failure) in
    let numbers = try invocation.operands.map { word throws(Failure) in
      guard let number = Int(word), number >= 0 else {
        throw invocation.usage("CONNECTION '\(word)' is not a number; see 'feedclient clients'")
      }
      return number
    }
    var status = ExitStatus.done
    for number in numbers {
      status = try invocation.request("kick", "{\"connection\":\(number)}") { result, console in
        if console.isJSON { return console.print(result) }
        let (uid, pid) = (result.member("uid")?.int ?? 0, result.member("pid")?.int ?? 0)
        console.print("closed connection \(number) (uid \(uid) pid \(pid))")
      }
    }
    return status
  }

  static let sync = Command(
    name: "sync", usage: [""], summary: "wait for requests sent before", examples: "feedclient sync",
    about: "Returns once the daemon has carried out every request that it received before, and shows its revision.",
    operands: 0...0
  ) { invocation throws(Failure) in
    try invocation.request("sync", show: Show.done("in sync"))
  }

  static let ping = Command(
    name: "ping", usage: [""], summary: "measure a round trip", examples: "feedclient ping",
    about: """
      Sends a request and shows the time until its answer in microseconds, and which socket is used and why. A client uses \
      the socket of the user's own daemon if there ever was one, even if it is stopped, and otherwise that of the system.
      """,
    operands: 0...0
  ) { invocation throws(Failure) in
    let deadline = invocation.deadline()
    let (connection, hello): (Connection, ServerHello)
    do throws(Failure) {
      (connection, hello) = try invocation.connect(deadline: deadline)
    } catch {
      if !invocation.isVerbose { invocation.saySocket() }
      throw error
    }
    let begin = MonotonicClock.now
    try invocation.call(connection, "ping", deadline: deadline) { _ in }
    let microseconds = (MonotonicClock.now - begin) / 1000
    var answer = ParameterWriter()
    answer.add("server", hello.server)
    answer.add("epoch", hello.epoch)
    answer.add("revision", Int(clamping: hello.revision))
    answer.add("microseconds", Int(clamping: microseconds))
    answer.add("socket", invocation.socket.path)
    answer.add("why", invocation.socket.reason)
    try Operands.withView(of: answer.finish()) { Show.members($0, invocation.console) }
    return .done
  }

  static let call = Command(
    name: "call", usage: ["METHOD [PARAMS|-]"], summary: "send any request of the protocol",
    examples: """
      feedclient call update '{"feed":"inbox","element":{"id":1}}'
      feedclient call transaction - < ops.json
      """,
    about: "Sends one request and shows its result. PARAMS is a JSON object; '-' reads it from standard input.",
    operands: 1...2
  ) { invocation throws(Failure) in
    let hasParams = invocation.operands.count == 2
    let params = hasParams ? try invocation.json(invocation.operand(1), what: "PARAMS") : "{}"
    return try invocation.request(invocation.operand(0), params, show: Show.value)
  }
}

extension Invocation {
  /// Prints the statistics at intervals until `--timeout` expires. On a terminal that has room for them, each print
  /// replaces the one before; members that are 0 give way first.
  fileprivate func watchStats(_ show: (JSONView, Console) -> Void) throws(Failure) -> ExitStatus {
    let interval = (options.duration("interval") ?? .seconds(1)).clampedNanoseconds
    let (connection, _) = try connect(deadline: deadline())
    var next = MonotonicClock.now
    var lastCount = 0
    let isReplaced = console.terminal.canRedraw && !console.isJSON && !options.contains("prometheus")
    while true {
      try call(connection, "stats", deadline: deadline()) { stats in
        var entries = Flattening.entries(of: stats)
        let room = isReplaced ? (console.terminal.rows ?? 0) - 1 : 0
        if entries.count > room { entries.removeAll { $0.value.int == 0 } }
        guard entries.count <= room else {
          lastCount = 0
          show(stats, console)
          if !console.isJSON { console.print("") }
          return
        }
        if lastCount > 0 { console.printRaw("\u{1B}[\(lastCount)A\u{1B}[J") }
        Show.members(entries, console)
        lastCount = entries.count
      }
      try console.flush()
      next &+= interval
      let due = min(next, end ?? .max)
      while MonotonicClock.now < due {
        try attempt { () throws(ClientError) in
          guard try connection.wait(until: due) else { return }
          try connection.fill()
          while try connection.next() != nil {}
        }
      }
      if let end, MonotonicClock.now >= end { throw failure(.timedOut) }
    }
  }

  /// Returns an operand that is a JSON object; `-` reads it from standard input.
  func json(_ word: String, what: String) throws(Failure) -> String {
    let text: String
    if word == "-" { announceInput(what) }
    do throws(Failure) {
      text = word == "-" ? try StandardInput.readValue("\(command.name): \(what)", until: end) : word
    } catch {
      if case .client(let error) = error { throw failure(error) }
      throw error
    }
    if let flaw = Operands.flaw(text) { throw usage("\(what) is not JSON: \(flaw)") }
    let isObject = try Operands.withView(of: text) { $0.kind == .object }
    guard isObject else { throw usage("\(what) is not a JSON object") }
    return text
  }
}

/// The command about the group of hosts that share their feeds.
extension Command {
  static let group = Command(
    name: "group", usage: ["[status | leave | join | image]"], summary: "show or change the membership of the group",
    examples: """
      feedclient group status
      feedclient --json group | jq .members
      feedclient group leave
      feedclient group join
      """,
    about: """
      Shows the group of hosts that share their feeds: its members, the position of this host in the log and how far it lags \
      behind, the newest image, and whether the members agree on the digest of the state. 'leave' refuses changes here until \
      'join', while reads go on; 'image' publishes an image of the state for new members. A daemon \
      joins a group at its start, by 'feedd --group NAME'.
      """,
    operands: 0...1
  ) { invocation throws(Failure) in
    let action = invocation.operands.first ?? "status"
    let actions = ["status", "leave", "join", "image"]
    guard actions.contains(action) else { throw invocation.unknown("action", action, known: actions) }
    var params = ParameterWriter()
    params.add("action", action)
    return try invocation.request("group", params.finish()) { result, console in
      if console.isJSON { return console.print(result) }
      if action != "status" { return console.print(done(action)) }
      show(result, console)
    }
  }

  private static func done(_ action: String) -> String {
    switch action {
    case "leave": "left the group; changes are refused here until: feedclient group join"
    case "join": "joins the group again"
    default: "an image is published when it is complete; see: feedclient group status"
    }
  }

  /// Shows the members as a table, and the rest as lines.
  private static func show(_ result: JSONView, _ console: Console) {
    guard let name = result.member("group")?.string else {
      return console.print("this daemon is in no group; start feedd with --group NAME")
    }
    console.print("group \(name): \(result.member("log")?.string ?? "")\(reason(result))")
    let (position, last) = (result.member("position")?.int ?? 0, result.member("last")?.int ?? 0)
    console.print("position \(position) of \(last), lag \(result.member("lag")?.int ?? 0)")
    if let image = result.member("image") {
      console.print(
        "image of position \(image.member("position")?.int ?? 0), \(image.member("bytes")?.int ?? 0) bytes, by "
          + "\(image.member("host")?.string ?? "") at \(image.member("time")?.string ?? "")")
    } else {
      console.print("no image yet")
    }
    if let digest = result.member("digest") {
      console.print("digest \(digest.member("value")?.string ?? "") at position \(digest.member("position")?.int ?? 0)")
    }
    Show.table("members", important: ["host", "agrees", "self", "seen", "pid"])(result, console)
  }

  private static func reason(_ result: JSONView) -> String {
    result.member("reason")?.string.map { " (\($0))" } ?? ""
  }
}
