import FeedClient
import FeedJSON
import FeedSystem

/// One run of one command: its command line, its output and its connection to the daemon.
struct Invocation {
  let command: Command
  let options: ParsedOptions
  let console: Console
  let environment: Environment
  /// The options before the command.
  let global: ParsedOptions
  /// The time when the command began, in nanoseconds of ``MonotonicClock``.
  private let begin = MonotonicClock.now
  /// The actions of `backup` and `restore`.
  var states = StateActions.none

  var operands: [String] { options.operands }

  /// The daemon's socket (`Protocol/README.md`, "Connecting and framing"), and why it is this one.
  var socket: SocketPath.Choice {
    if let path = options.text("socket") ?? global.text("socket") {
      return .init(path: path, reason: "--socket names it")
    }
    return SocketPath.clientChoice(environment)
  }

  var socketPath: String { socket.path }

  /// Tells which socket is used, and why.
  func saySocket() {
    let socket = socket
    console.say("socket \(socket.path): \(socket.reason)")
  }

  var timeout: Duration? { options.duration("timeout") ?? global.duration("timeout") }

  /// Whether errors show the protocol's code and data, and the socket is named.
  var isVerbose: Bool { options.contains("verbose") || global.contains("verbose") }

  /// The deadline of a single request, in nanoseconds of ``MonotonicClock``: ``end``, or in 30 s.
  func deadline() -> UInt64 { end ?? MonotonicClock.now &+ 30_000_000_000 }

  /// The time when `--timeout` expires; nil without a timeout.
  var end: UInt64? {
    guard let timeout else { return nil }
    let (end, overflow) = begin.addingReportingOverflow(timeout.clampedNanoseconds)
    return overflow ? .max : end
  }

  /// The operand at `index`; empty if there is none.
  func operand(_ index: Int) -> String { operands.indices.contains(index) ? operands[index] : "" }

  func usage(_ text: String) -> Failure { .usage("\(command.name): \(text)") }

  /// Returns a usage error for a word that is none of the known ones.
  func unknown(_ what: String, _ word: String, known: [String]) -> Failure {
    let list = "; give one of \(known.joined(separator: ", "))"
    return usage("unknown \(what) '\(word)'" + Spelling.suggestion(for: word, in: known, otherwise: list))
  }

  /// Returns the failure of a client operation. A timeout names its duration.
  /// - Parameter advice: the next step after a timeout; nil for none.
  func failure(_ error: ClientError, advice: String? = nil) -> Failure {
    guard error == .timedOut else { return .client(error) }
    let time = TimeSpan.text(timeout ?? .seconds(30))
    let digits = time.prefix { $0.isNumber }
    console.say("timed out after \(digits) \(time.dropFirst(digits.count))" + (advice.map { "; \($0)" } ?? ""))
    return .told(.timedOut)
  }

  /// Performs operations of a client; see ``failure(_:advice:)``.
  func attempt<Result>(advice: String? = nil, _ body: () throws(ClientError) -> Result) throws(Failure) -> Result {
    do throws(ClientError) { return try body() } catch { throw failure(error, advice: advice) }
  }

  /// Connects and sends `hello`.
  func connect(deadline: UInt64) throws(Failure) -> (Connection, ServerHello) {
    try attempt { () throws(ClientError) in
      let left = Duration.milliseconds(Int64(MonotonicClock.milliseconds(until: deadline)))
      let connection = try Connection.open(path: socketPath, timeout: left)
      return (connection, try connection.hello(client: "feedclient/\(command.name)", deadline: deadline))
    }
  }

  /// Sends one request over a connection and parses its result.
  func call<Result>(
    _ connection: Connection, _ method: String, _ params: String = "{}", deadline: UInt64,
    _ read: (JSONView) throws(MalformedMessage) -> Result
  ) throws(Failure) -> Result {
    try attempt { () throws(ClientError) in
      try connection.call(method, params: { $0.append(string: params) }, deadline: deadline, read)
    }
  }

  /// Asks for the definition of a feed over a connection.
  func describe<Result>(
    _ feed: String, over connection: Connection, deadline: UInt64? = nil, _ read: (JSONView) -> Result
  ) throws(Failure) -> Result {
    let params = ParameterWriter(feed: feed).finish()
    return try call(connection, "describe", params, deadline: deadline ?? self.deadline(), read)
  }

  /// Sends one request over a new connection and prints its result.
  func request(
    _ method: String, _ params: String = "{}", show: (JSONView, Console) -> Void
  ) throws(Failure) -> ExitStatus {
    let deadline = deadline()
    let (connection, _) = try connect(deadline: deadline)
    try call(connection, method, params, deadline: deadline) { show($0, console) }
    try console.flush()
    return .done
  }
}

extension Invocation {
  /// Returns the index of the section with a number from 0, or with the name of a section or bin.
  func section(_ word: String, of feed: String) throws(Failure) -> Int {
    if let index = Int(word), index >= 0 { return index }
    let deadline = deadline()
    let (connection, _) = try connect(deadline: deadline)
    let sections = try describe(feed, over: connection, deadline: deadline) { SectionLookup($0.member("sections")) }
    return try sections.find(word, in: feed)
  }

  /// Returns the section and the row of `SECTION,ROW`, where SECTION is a number or a name.
  func place(_ word: String, of feed: String) throws(Failure) -> (section: Int, row: Int) {
    guard let comma = word.lastIndex(of: ","), comma > word.startIndex,
      let row = Int(word[word.index(after: comma)...]),
      row >= 0
    else { throw usage("'\(word)': expected SECTION,ROW, such as 0,3 or urgent,3") }
    let name = String(word[..<comma])
    guard Int(name).map({ $0 >= 0 }) ?? !name.hasPrefix("-") else {
      throw usage("'\(word)': expected SECTION,ROW, such as 0,3 or urgent,3")
    }
    return (try section(name, of: feed), row)
  }

  /// Returns `; did you mean inbox?` for an unknown feed or bin; empty if no name is similar.
  func suggestion(for refusal: RemoteError) -> String {
    guard refusal.code == RemoteError.unknownFeed else { return "" }
    let deadline = MonotonicClock.now &+ 1_000_000_000
    let names = try? { () throws(ClientError) in
      let connection = try Connection.open(path: socketPath, timeout: .seconds(1))
      _ = try connection.hello(client: "feedclient/\(command.name)", deadline: deadline)
      return try connection.call("feeds", deadline: deadline) { Show.names(ofFeeds: $0) }
    }()
    guard let names else { return "" }
    let word = refusal.feedName ?? operand(0)
    return names.contains(word) ? "" : Spelling.suggestion(for: word, in: names)
  }
}

extension RemoteError {
  fileprivate var feedName: String? { data?.readJSON { $0.member("feed")?.string } }
}
