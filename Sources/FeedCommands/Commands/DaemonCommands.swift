import FeedClient
import FeedJSON
import FeedSystem

extension Command {
  static let stats = Command(
    name: "stats", usage: [""], summary: "show the daemon's counters and gauges",
    about: "Shows what the daemon has done since it started and what it holds now.", operands: 0...0
  ) { invocation throws(Failure) in
    try invocation.request("stats", nil, show: Show.members)
  }

  static let clients = Command(
    name: "clients", usage: [""], summary: "show who is connected",
    about: """
      Shows each connection: user, process, name, bytes that wait for it, bytes that it has begun a frame with, how far \
      it lags, and its resets.
      """,
    operands: 0...0
  ) { invocation throws(Failure) in
    try invocation.request("clients", nil, show: Show.table("clients"))
  }

  static let sync = Command(
    name: "sync", usage: [""], summary: "wait until the daemon has done all it was asked before",
    about: "Returns once the daemon has carried out everything that reached it before, and shows its revision.",
    operands: 0...0
  ) { invocation throws(Failure) in
    try invocation.request("sync", nil, show: Show.done("in sync"))
  }

  static let ping = Command(
    name: "ping", usage: [""], summary: "ask whether the daemon is there",
    about: "Asks the daemon to answer, and shows how long that took, the way there and back.", operands: 0...0
  ) { invocation throws(Failure) in
    let deadline = invocation.deadline()
    let (connection, hello) = try invocation.connect(deadline: deadline)
    let begin = MonotonicClock.now
    do throws(ClientError) {
      try connection.call("ping", deadline: deadline) { _ in }
    } catch {
      throw .client(error)
    }
    let microseconds = (MonotonicClock.now - begin) / 1000
    var answer = ParameterWriter()
    answer.add("server", hello.server)
    answer.add("epoch", hello.epoch)
    answer.add("revision", Int(clamping: hello.revision))
    answer.add("microseconds", Int(clamping: microseconds))
    try Operands.withView(of: answer.finish()) { Show.members($0, invocation.console) }
    return .done
  }

  static let call = Command(
    name: "call", usage: ["METHOD [PARAMS|-]"], summary: "send any request of the protocol",
    about: """
      Sends one request and shows its result as it comes. PARAMS is a JSON object, or is read from standard input.
      """,
    notes: """
      Examples:
        feedclient call update '{"feed":"inbox","element":{"id":1}}'
        feedclient call transaction - < ops.json
      """,
    operands: 1...2
  ) { invocation throws(Failure) in
    var params: String?
    if invocation.operands.count == 2 {
      params = try invocation.json(invocation.operand(1), what: "PARAMS")
    }
    return try invocation.request(invocation.operand(0), params, show: Show.value)
  }
}

extension Invocation {
  /// The JSON object that a word is, or with `-` all of standard input.
  func json(_ word: String, what: String) throws(Failure) -> String {
    let text = word == "-" ? try StandardInput.readAll(until: end) : word
    if let flaw = Operands.flaw(text) { throw usage("\(what) is not JSON: \(flaw)") }
    let isObject = try Operands.withView(of: text) { $0.kind == .object }
    guard isObject else { throw usage("\(what) is not a JSON object") }
    return text
  }
}

extension Command {
  static let backup = Command(
    name: "backup", usage: ["FILE"], summary: "copy what the daemon keeps into a new file",
    about: """
      Copies the daemon's state, as of one moment, into FILE, which must not exist; the daemon goes on meanwhile. It tells where its \
      state is, and this program reads it there, so run it as root or as the daemon's user. With --state no daemon is asked, and \
      none need run.
      """,
    options: [
      OptionDescription("state", value: .text("DIR"), help: "the state directory, instead of asking the daemon")
    ],
    notes: """
      To restore: stop feedd, put the file in the place of feedd.sqlite in its state directory, owned by the daemon's user, remove
      feedd.sqlite-wal and feedd.sqlite-shm there, start feedd.
      """,
    operands: 1...1
  ) { invocation throws(Failure) in
    let directory: String
    if let given = invocation.options.text("state") {
      directory = given
    } else {
      directory = try stateOfDaemon(invocation)
    }
    let file = invocation.operand(0)
    if let problem = invocation.copyState(directory, file) { throw .state(problem) }
    var answer = ParameterWriter()
    answer.add("file", file)
    answer.add("state", directory)
    try Operands.withView(of: answer.finish()) { Show.members($0, invocation.console) }
    return .done
  }

  /// Asks the daemon where it keeps its state.
  private static func stateOfDaemon(_ invocation: Invocation) throws(Failure) -> String {
    let deadline = invocation.deadline()
    let (connection, hello) = try invocation.connect(deadline: deadline)
    let state: String?
    do throws(ClientError) {
      state = try connection.call("stats", deadline: deadline) { $0.member("state")?.string }
    } catch {
      throw .client(error)
    }
    if let state { return state }
    throw .state(
      "\(hello.server) at \(invocation.socketPath) keeps nothing (--durability memory), or does not tell this user where: "
        + "run this as root or as its user, or name the directory with --state")
  }
}
