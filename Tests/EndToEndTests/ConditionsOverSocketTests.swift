import TestSupport
import Testing

/// Conditions of requests (Protocol/README.md, "Conditions") on the socket of a daemon that stores its changes.
@Suite("Conditions over the socket")
struct ConditionsOverSocketTests {
  /// A daemon with `arguments` and two clients.
  private func start(_ arguments: [String]) throws -> (DaemonProcess, [RawClient]) {
    let directory = try TemporaryDirectory()
    let daemon = try DaemonProcess(
      arguments.isEmpty ? ["--state", directory.file("state")] : arguments, directory: directory)
    return (daemon, [try daemon.connect(), try daemon.connect()])
  }

  @Test(
    "of two connections that compare and set one revision, exactly one wins each round",
    arguments: [[], ["--durability", "memory"]])
  func rounds(_ arguments: [String]) throws {
    let (daemon, clients) = try start(arguments)
    _ = try HostileTests.ask(clients[0], "define", #"{"feed":"list","kind":"array"}"#)
    var revision = 1
    var wins = [0, 0]
    for round in 0..<300 {
      // Both requests are on their way before either is answered.
      let order = round % 2 == 0 ? [0, 1] : [1, 0]
      for index in order {
        let condition = #""if":{"feed":"list","revision":\#(revision)}"#
        let insert = #""params":{"feed":"list","elements":["\#(index)"],\#(condition)}"#
        let request =
          round % 3 == 0
          ? #""method":"transaction","params":{"ops":[{"method":"insert",\#(insert)}]}"#
          : #""method":"insert",\#(insert)"#
        try clients[index].send(#"{"jsonrpc":"2.0","id":1,\#(request)}"#)
      }
      let answers = try clients.map { try $0.receiveJSON() }
      let winners = answers.indices.filter { answers[$0].has("result") }
      try require(winners.count == 1, "round \(round): \(answers)")
      let (winner, loser) = (winners[0], 1 - winners[0])
      wins[winner] += 1
      let reached = try require(answers[winner]["result"]["revision"].int)
      expectEqual(reached, revision + 1)
      let error = answers[loser]["error"]
      expectEqual(error["code"].int, -32009)
      expect(error["data"]["feed"].string == "list" && error["data"]["revision"].int == reached)
      revision = reached
    }
    let rows = try HostileTests.ask(clients[0], "snapshot", #"{"feed":"list"}"#)["result"].rows[0]
    expectEqual(rows.count, 300)
    expectEqual(wins, ["0", "1"].map { name in rows.count { $0 == "\"\(name)\"" } })
    _ = daemon
  }

  /// One program for each of several connections claims all elements, in orders of their own.
  @Test(
    "of several connections that claim elements, exactly one gets each", arguments: [[], ["--durability", "memory"]])
  func claims(_ arguments: [String]) async throws {
    let (daemon, clients) = try start(arguments)
    _ = try HostileTests.ask(clients[0], "define", #"{"feed":"todo","kind":"collection"}"#)
    let elements = (0..<300).map { #"{"id":\#($0)}"# }.joined(separator: ",")
    _ = try HostileTests.ask(clients[0], "update", #"{"feed":"todo","elements":[\#(elements)]}"#)
    let path = daemon.socketPath
    let claimed = try await withThrowingTaskGroup(of: [Int: Int].self) { group in
      for owner in 0..<4 { group.addTask { try Self.claim(300, by: owner, at: path) } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    // Each was claimed once, and its owner is the one who was told so.
    expectEqual(claimed.map(\.count).reduce(0, +), 300)
    let owners = claimed.reduce(into: [:]) { all, claims in all.merge(claims) { _, _ in -1 } }
    let stored = try HostileTests.ask(clients[1], "snapshot", #"{"feed":"todo"}"#)["result"].rows[0]
    expectEqual(stored, (0..<300).map { #"{"id":\#($0),"owner":\#(owners[$0] ?? -1)}"# })
  }

  /// Claims elements by their identities, some by a patch and others by an update or in a transaction. Returns those that it
  /// got, with their owner.
  private static func claim(_ count: Int, by owner: Int, at path: String) throws -> [Int: Int] {
    let client = try RawClient(path: path)
    var claimed: [Int: Int] = [:]
    for id in (0..<count).shuffled() {
      let condition = #""where":"!@.owner""#
      let answer =
        switch id % 3 {
        case 0:
          try HostileTests.ask(
            client, "patch", #"{"feed":"todo","id":\#(id),"patch":{"owner":\#(owner)},\#(condition)}"#)
        case 1:
          try HostileTests.ask(
            client, "update", #"{"feed":"todo","element":{"id":\#(id),"owner":\#(owner)},\#(condition)}"#)
        default:
          try HostileTests.ask(
            client, "transaction",
            #"{"ops":[{"method":"patch","params":{"feed":"todo","id":\#(id),"patch":{"owner":\#(owner)},\#(condition)}}]}"#
          )
        }
      if answer.has("result") {
        claimed[id] = owner
      } else {
        guard answer["error"]["code"].int == -32009, answer["error"]["data"]["id"].int == id else {
          throw TestFailure("\(answer)")
        }
      }
    }
    return claimed
  }

  @Test("counters that several programs increment by reading and comparing lose nothing")
  func counter() async throws {
    let (daemon, clients) = try start([])
    _ = try HostileTests.ask(clients[0], "define", #"{"feed":"count","kind":"single"}"#)
    _ = try HostileTests.ask(clients[0], "put", #"{"feed":"count","element":0}"#)
    let path = daemon.socketPath
    let refusals = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<2 { group.addTask { try Self.increment(150, at: path) } }
      return try await group.reduce(0, +)
    }
    let result = try HostileTests.ask(clients[0], "snapshot", #"{"feed":"count"}"#)["result"]
    expectEqual(result.rows, [["300"]], "\(refusals) refusals")
  }

  /// Increments the feed `count`. Returns how often another client was faster.
  private static func increment(_ times: Int, at path: String) throws -> Int {
    let client = try RawClient(path: path)
    var (done, refused) = (0, 0)
    while done < times {
      let known = try HostileTests.ask(client, "snapshot", #"{"feed":"count"}"#)["result"]
      guard let revision = known["revision"].int, let value = Int(known.rows[0][0]) else {
        throw TestFailure("no number in \(known)")
      }
      let answer = try HostileTests.ask(
        client, "put",
        #"{"feed":"count","element":\#(value + 1),"if":{"feed":"count","revision":\#(revision)}}"#)
      if answer.has("result") { done += 1 } else { refused += 1 }
      guard answer.has("result") || answer["error"]["code"].int == -32009 else { throw TestFailure("\(answer)") }
    }
    return refused
  }

  /// A request of each method that changes feeds, for the feeds of `everyMethod`; the feed that it changes, and its other
  /// parameters.
  private static let changes: [(method: String, feed: String, rest: String)] = [
    ("update", "inbox", #","element":{"id":2}"#), ("patch", "inbox", #","id":1,"patch":{"a":1}"#),
    ("delete", "inbox", #","where":"@.a == 1""#), ("set", "list", #","elements":[1,2]"#),
    ("insert", "list", #","elements":[3]"#), ("remove", "list", #","at":[0]"#),
    ("replace", "list", #","elements":[9],"at":[0]"#), ("move", "list", #","from":0,"to":1"#),
    ("put", "one", #","element":1"#), ("insertChild", "home", #","child":"one""#),
    ("activate", "home", #","child":"one""#), ("removeChild", "home", #","child":"one""#),
    ("select", "list", #","at":[0,0]"#), ("deselect", "list", #","at":[0,0]"#),
    ("define", "list", #","kind":"array","type":"$.t","replace":true"#), ("undefine", "inbox", ""),
  ]

  @Test("every method that changes feeds, alone and in a transaction, obeys its conditions")
  func everyMethod() throws {
    let (daemon, clients) = try start([])
    let client = clients[0]
    for definition in [
      #"{"feed":"inbox","kind":"collection"}"#, #"{"feed":"list","kind":"array"}"#, #"{"feed":"one","kind":"single"}"#,
      #"{"feed":"home","kind":"segmented","children":["list"]}"#,
    ] { _ = try HostileTests.ask(client, "define", definition) }
    _ = try HostileTests.ask(client, "update", #"{"feed":"inbox","element":{"id":1}}"#)
    func revision(_ feed: String) throws -> Int {
      let described = try HostileTests.ask(client, "describe", #"{"feed":"\#(feed)"}"#)
      return try require(described["result"]["revision"].int, "\(described)")
    }
    func state() throws -> [String] {
      try ["inbox", "list", "one", "home"].map { feed in
        try ["snapshot", "selected", "describe"].map { method in
          "\(try HostileTests.ask(client, method, #"{"feed":"\#(feed)"}"#)["result"])"
        }.joined()
      }
    }
    for (method, feed, rest) in Self.changes {
      let now = try revision(feed)
      func params(_ wanted: String) -> String {
        #"{"feed":"\#(feed)"\#(rest),"if":[{"feed":"list","revision":\#((try? revision("list")) ?? -1)},{"feed":"\#(feed)","revision":\#(wanted)}]}"#
      }
      let before = try state()
      for wanted in ["\(now + 1)", "null"] {
        let refused = try HostileTests.ask(client, method, params(wanted))
        expectEqual(refused["error"]["code"].int, -32009, "\(method): \(refused)")
        expectEqual(refused["error"]["data"]["revision"].int, now, "\(method): \(refused)")
        guard !["select", "deselect"].contains(method) else { continue }
        let other = #"{"method":"put","params":{"feed":"one","element":"other"}}"#
        let operation = #"{"method":"\#(method)","params":\#(params(wanted))}"#
        let undone = try HostileTests.ask(client, "transaction", #"{"ops":[\#(other),\#(operation)]}"#)
        expectEqual(undone["error"]["code"].int, -32009, "\(method): \(undone)")
        expectEqual(undone["error"]["data"]["op"].int, 1, "\(method): \(undone)")
      }
      try expectEqual(state(), before, "\(method) changed something")
      let done = try HostileTests.ask(client, method, params("\(now)"))
      expect(done.has("result"), "\(method): \(done)")
    }
    _ = daemon
  }
}
