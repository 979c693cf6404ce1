import FeedClient
import FeedJSON
import FeedSystem

extension Command {
  static let top = Command(
    name: "top", usage: ["[OPTION]..."], summary: "show rates, queues and clients, and keep them current",
    examples: """
      feedclient top
      feedclient top --interval 5s
      """,
    about: """
      Shows the daemon's rates with small graphs, what it holds, and its connections, sorted and filtered with keys; \
      ? lists them. When standard output is not a terminal, and with --json, it prints one interval as a line of JSON and \
      ends: "rates" a second, "stats" and "clients".
      """,
    options: [
      OptionDescription(
        "interval", value: .duration(.milliseconds(100)...(.seconds(3600))), help: "time between two samples",
        defaultText: "1s")
    ],
    operands: 0...0
  ) { invocation throws(Failure) in
    try TopRun(invocation).run()
  }
}

/// One run of `top`: polls the daemon at intervals and shows a ``TopView``.
private final class TopRun {
  private let invocation: Invocation
  private let interval: UInt64
  private var view: TopView

  private var console: Console { invocation.console }

  init(_ invocation: Invocation) {
    self.invocation = invocation
    interval = (invocation.options.duration("interval") ?? .seconds(1)).clampedNanoseconds
    view = TopView(palette: invocation.console.palette)
  }

  func run() throws(Failure) -> ExitStatus {
    let (connection, _) = try invocation.connect(deadline: invocation.deadline())
    guard console.terminal.canRedraw, !console.isJSON else { return try printOnce(connection) }
    let session = try TerminalSession(console, invocation.environment)
    defer { session.leave() }
    view.add(try sample(connection))
    var next = MonotonicClock.now &+ interval
    while true {
      let size = session.size
      try session.draw(view.lines(width: size.width, height: size.height))
      try wait(connection, session, until: min(next, invocation.end ?? .max))
      for event in try session.events() {
        switch event {
        case .redraw: continue
        case .end(let signal):
          session.leave()
          throw .interrupted(signal)
        case .key(let key): if view.take(key, width: size.width, height: size.height) { return .done }
        }
      }
      let now = MonotonicClock.now
      if let end = invocation.end, now >= end { throw invocation.failure(.timedOut) }
      guard now >= next else { continue }
      view.add(try sample(connection))
      next = now &+ interval
    }
  }

  /// Prints the rates of one interval.
  private func printOnce(_ connection: Connection) throws(Failure) -> ExitStatus {
    let first = try sample(connection)
    let due = MonotonicClock.now &+ interval
    while MonotonicClock.now < due { try wait(connection, nil, until: due) }
    let last = try sample(connection)
    if console.isJSON {
      console.print(TopView.json(from: first, to: last))
      return .done
    }
    view.add(first)
    view.add(last)
    for line in view.lines(width: 80, height: last.clients.count + 20) { console.print(line) }
    return .done
  }

  private func sample(_ connection: Connection) throws(Failure) -> TopSample {
    var sample = try invocation.call(connection, "stats", deadline: invocation.deadline()) {
      TopSample(time: MonotonicClock.now, stats: $0)
    }
    try invocation.call(connection, "clients", deadline: invocation.deadline()) { sample.take(clients: $0) }
    return sample
  }

  private func wait(_ connection: Connection, _ session: TerminalSession?, until due: UInt64) throws(Failure) {
    var list = WaitList()
    list.add(connection.descriptor, .readable)
    for descriptor in session?.descriptors ?? [] { list.add(descriptor, .readable) }
    _ = try Failure.ofSystem(try list.wait(until: due))
    guard !list.ready(connection.descriptor).isEmpty else { return }
    try invocation.attempt { () throws(ClientError) in
      try connection.fill()
      while try connection.next() != nil {}
    }
  }
}

/// The state of the daemon at one time: the results of `stats` and `clients`.
struct TopSample: Equatable {
  /// One connection.
  struct Client: Equatable {
    var connection: Int
    var name: String
    var uid: Int
    var pid: Int
    var queued: Int
    var held: Int
    var lag: Int
    var resets: Int
    var requests: Int
    /// The requests per second since the sample before, which ``TopView`` computes.
    var rate = 0
    var watches: Int
  }

  /// The time in nanoseconds of a monotonic clock.
  var time: UInt64
  /// The numeric members of `stats`.
  var numbers: [String: Int] = [:]
  var clients: [Client] = []
  /// The results as JSON: of `stats`, and the list of `clients`.
  private(set) var statsText = "{}"
  private(set) var clientsText = "[]"

  /// Parses the result of `stats`.
  init(time: UInt64, stats: JSONView) {
    self.time = time
    statsText = String(decoding: stats.compactText, as: UTF8.self)
    for member in stats.members { if let value = member.value.int { numbers[member.key.string ?? ""] = value } }
  }

  mutating func take(clients result: JSONView) {
    guard let list = result.member("clients") else { return }
    clientsText = String(decoding: list.compactText, as: UTF8.self)
    clients = list.elements.map { row in
      func number(_ name: StaticString) -> Int { row.member(name)?.int ?? 0 }
      return Client(
        connection: number("connection"), name: row.member("name")?.string ?? "", uid: number("uid"),
        pid: number("pid"), queued: number("queued"), held: number("held"), lag: number("lag"),
        resets: number("resets"), requests: number("requests"), watches: row.member("watches")?.count ?? 0)
    }
  }
}
