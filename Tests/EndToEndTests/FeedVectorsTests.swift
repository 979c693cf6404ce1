import TestSupport
import Testing

/// The vectors of feeds and of exchanges, played over the socket.
@Suite("Vectors of feeds")
struct FeedVectorsTests {
  @Test(
    "Answers, deltas of every watch and states are those of the vectors",
    arguments: ["lists", "arrays", "providers", "views", "sections"])
  func play(file: String) throws {
    let session = try FeedSession()
    for vector in try JSONValue.cases(file) {
      let player = try VectorPlayer(vector, session)
      for step in try vector.member("steps").elements { try player.play(step) }
      try player.end()
    }
  }

  @Test(
    "Results, deltas and selections of a daemon that has just started are those of the vectors",
    arguments: ["counts", "exchanges"])
  func exchange(file: String) throws {
    for vector in try JSONValue.cases(file) {
      let player = try VectorPlayer(vector, FeedSession())
      for step in try vector.member("steps").elements { try player.exchange(step) }
    }
  }
}

/// One case: its feeds are defined and watched on one connection until the case ends. The watches of an exchange are steps.
private struct VectorPlayer {
  private let vector: JSONValue
  private let session: FeedSession
  private let watcher: RawClient
  private let feeds: [String]

  init(_ vector: JSONValue, _ session: FeedSession) throws {
    self.vector = vector
    self.session = session
    let definitions = vector["definitions"].elements
    for step in vector["setup"].elements { try session.ask(step["method"].string ?? "", step["params"].text) }
    for definition in definitions { try session.ask("define", definition.text) }
    feeds = definitions.compactMap { $0["feed"].string }
    watcher = try session.daemon.connect()
    for feed in feeds { try watcher.send(Self.request("watch", "{\"feed\":\"\(feed)\"}")) }
    _ = try notifications()
  }

  func play(_ step: JSONValue) throws {
    let (method, params) = (step["method"].string ?? "", step["params"].text)
    let place = "\(vector["name"].string ?? "") \(method) \(params)"
    if step.has("error") {
      try expectEqual(session.refusal(method, params), step["error"]["code"].int, "\(place)")
      #expect(try notifications().isEmpty, "\(place)")
      return
    }
    try expectEqual(session.ask(method, params).parsedChange(), step.member("change").parsedChange(), "\(place)")
    var expected = Set(feeds.filter { step["deltas"].has($0) })
    for notification in try notifications() {
      let (params, feed) = (notification["params"], notification["params"]["feed"].string ?? "")
      #expect(expected.remove(feed) != nil, "\(place): \(notification)")
      let delta = step["deltas"][feed]
      try expectEqual(params.parsedChange(), delta.member("change").parsedChange(), "\(place) \(feed)")
      expectEqual(params["elements"].elements.map(\.text), delta["elements"].elements.map(\.text), "\(place) \(feed)")
    }
    #expect(expected.isEmpty, "\(place)")
  }

  func exchange(_ step: JSONValue) throws {
    let (method, params) = (step["method"].string ?? "", step["params"].text)
    let place = "\(vector["name"].string ?? "") \(method) \(params)"
    if step.has("error") {
      try expectEqual(session.refusal(method, params), step["error"]["code"].int, "\(place)")
    } else {
      let result = try method == "watch" ? watch(params) : session.ask(method, params)
      #expect(try result.contains(step.member("result")), "\(place): \(result)")
    }
    var count = 0
    for notification in try notifications() where notification["method"] != "\"snapshot\"" {
      let (params, feed) = (notification["params"], notification["params"]["feed"].string ?? "")
      let expected = step[notification["method"].string == "delta" ? "deltas" : "selections"][feed]
      try expectEqual(params, JSONValue("{\"feed\":\"\(feed)\",\(expected.text.dropFirst())"), "\(place)")
      count += 1
    }
    expectEqual(count, step["deltas"].memberNames.count + step["selections"].memberNames.count, "\(place)")
  }

  private func watch(_ params: String) throws -> JSONValue {
    try watcher.send(Self.request("watch", params))
    return try JSONValue(watcher.receive(having: "\"id\":1"))["result"]
  }

  /// Compares the states and removes the feeds.
  func end() throws {
    for feed in feeds where vector["after"].has(feed) {
      let sections = vector["after"][feed]
      try expectEqual(session.rows(feed), sections.elements.map { $0["elements"].elements.map(\.text) })
      try expectEqual(session.sections(feed), sections.names())
    }
    for feed in feeds.reversed() { try session.ask("undefine", "{\"feed\":\"\(feed)\"}") }
  }

  /// Returns the notifications up to the answer to `sync`, which follows all of them.
  private func notifications() throws -> [JSONValue] {
    try watcher.send(Self.request("sync", "{}", id: 2))
    var notifications: [JSONValue] = []
    while let text = try watcher.receive() {
      let frame = try JSONValue(text)
      if frame["id"].int == 2 { return notifications }
      if frame.has("method") { notifications.append(frame) }
    }
    throw TestFailure("the daemon closed the connection")
  }

  private static func request(_ method: String, _ params: String, id: Int = 1) -> String {
    "{\"jsonrpc\":\"2.0\",\"id\":\(id),\"method\":\"\(method)\",\"params\":\(params)}"
  }
}

/// The traffic of a program that shows one number.
@Suite("Status bars")
struct StatusBarTests {
  @Test("a watch of counts receives less than 150 bytes a change, whatever changes")
  func bytes() throws {
    let session = try FeedSession()
    try session.ask("define", #"{"feed":"notifications","kind":"collection","type":"$.app"}"#)
    try session.ask(
      "define",
      #"{"feed":"unread","kind":"view","of":"notifications","filter":"@.read == false","sort":[{"by":"$.at"}]}"#)
    let bar = try session.daemon.connect()
    try bar.send(#"{"jsonrpc":"2.0","id":1,"method":"watch","params":{"feed":"unread","elements":false}}"#)
    try expectEqual(JSONValue(bar.receive(having: "\"id\":1"))["result"]["sections"][0]["count"].int, 0)
    let text = String(repeating: "a long text ", count: 50)
    func push(_ ids: Range<Int>, read: Bool, at: Int) throws -> Int? {
      let elements = ids.map { #"{"id":\#($0),"app":"mail","read":\#(read),"at":\#(at),"text":"\#(text)"}"# }
      try session.ask("update", "{\"feed\":\"notifications\",\"elements\":[\(elements.joined(separator: ","))]}")
      let frame = try #require(try bar.receive())
      #expect(frame.utf8.count + 4 < 150, "\(frame)")
      let delta = try JSONValue(frame)["params"]
      for name in ["added", "deleted", "updated", "moves", "elements", "types"] { #expect(!delta.has(name)) }
      return delta["counts"][0].int
    }
    try expectEqual(push(0..<1, read: false, at: 1), 1)
    try expectEqual(push(1..<300, read: false, at: 2), 300)
    try expectEqual(push(5..<6, read: false, at: 0), 300)
    try expectEqual(push(0..<100, read: true, at: 3), 200)
  }
}
