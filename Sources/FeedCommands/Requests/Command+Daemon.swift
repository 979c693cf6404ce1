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
    var answer = Parameters()
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
