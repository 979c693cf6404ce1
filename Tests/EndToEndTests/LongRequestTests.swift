import Glibc
import TestSupport
import Testing

/// Requests that take long are executed in slices: the daemon answers others meanwhile, from the state before.
struct LongRequestTests {
  /// The number of elements that take long on most machines.
  private static let count = 12_000
  /// Makes an element as long as most are.
  private static let text = "some text of an element"
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func start(state: String = "state") throws -> DaemonProcess {
    try DaemonProcess(["--state", directory.file(state), "--durability", "process"], directory: directory)
  }

  private static func request(_ method: String, _ params: String, id: Int = 1) -> String {
    #"{"jsonrpc":"2.0","id":\#(id),"method":"\#(method)","params":\#(params)}"#
  }

  private func ask(_ client: RawClient, _ method: String, _ params: String = "{}") throws -> JSONValue {
    try client.send(Self.request(method, params))
    return try client.receiveJSON()["result"]
  }

  /// Elements with two numbers and a text.
  private static func elements(_ numbers: some Sequence<Int>, value: Int = 0) -> String {
    "["
      + numbers.map { #"{"id":\#($0),"k":\#($0 * 7919 % 1000),"v":\#(value),"text":"\#(text)"}"# }.joined(
        separator: ",") + "]"
  }

  /// Defines the feed `c` with elements in one bin.
  private func fill(_ client: RawClient, _ count: Int = count) throws {
    try expect(ask(client, "define", #"{"feed":"c","kind":"collection"}"#).has("revision"))
    try expect(ask(client, "update", #"{"feed":"c","elements":\#(Self.elements(0..<count))}"#).has("revision"))
  }

  /// Requests that take many slices. They execute filters on all elements, or change many of them.
  enum Long: CaseIterable {
    case bins, view, set, transaction, delete

    /// The request to a feed of `count` elements.
    func request(_ count: Int = count) -> String {
      let filter = (0..<4).map { "@.k != \(1000 + $0)" }.joined(separator: " && ")
      switch self {
      case .bins:
        let bins = (0..<2).map { #"{"name":"b\#($0)","filter":"\#(filter) && @.v == \#($0)","sort":[{"by":"$.k"}]}"# }
        let list = bins.joined(separator: ",")
        return LongRequestTests.request("define", #"{"feed":"c","kind":"collection","bins":[\#(list)],"replace":true}"#)
      case .view:
        return LongRequestTests.request(
          "define", #"{"feed":"v","kind":"view","of":"c","filter":"\#(filter)","sort":[{"by":"$.k"}]}"#)
      case .set:
        let list = elements(stride(from: 0, to: 2 * count, by: 2), value: 1)
        return LongRequestTests.request("set", #"{"feed":"c","elements":\#(list)}"#)
      case .transaction:
        let operations = (0..<count).map {
          #"{"method":"update","params":{"feed":"c","element":{"id":\#($0),"k":\#($0 % 999),"v":2,"text":"\#(text)"}}}"#
        }
        return LongRequestTests.request("transaction", #"{"ops":[\#(operations.joined(separator: ","))]}"#)
      case .delete: return LongRequestTests.request("delete", #"{"feed":"c","where":"\#(filter) && @.v == 0"}"#)
      }
    }
  }

  @Test(
    "others are answered during a long request, from the state before",
    arguments: [Long.bins, .view, .set, .transaction])
  func others(_ long: Long) throws {
    // How many rounds fit depends on the machine: a fast one needs more elements, and a busy one may not run this test for
    // as long as the request takes. Without slices, none ever fits unless the request arrives in parts.
    for attempt in 0..<8 {
      let rounds = try roundsDuring(long, count: Self.count << min(attempt, 3), state: "state\(attempt)")
      if rounds > 0 { return }
      expect(attempt < 7, "\(long)")
    }
  }

  /// Reads, pings, changes and watches beside a long request to a feed of `count` elements in a new daemon. Returns how
  /// often others were answered before its end.
  private func roundsDuring(_ long: Long, count: Int, state: String) throws -> Int {
    let daemon = try start(state: state)
    let (writer, reader, other) = (try daemon.connect(), try daemon.connect(), try daemon.connect())
    let watchers = [try daemon.connect(), try daemon.connect()]
    try fill(writer, count)
    let before = try ask(reader, "verify", #"{"feed":"c"}"#)
    try expectEqual(ask(watchers[0], "watch", #"{"feed":"c"}"#)["revision"], before["revision"])
    try writer.send(long.request(count))
    let change = Self.request("update", #"{"feed":"c","element":{"id":"later","k":1,"v":0}}"#)
    var (rounds, isWatched) = (0, false)
    while true {
      try expectEqual(ask(reader, "ping").text, "{}")
      let element = try ask(reader, "get", #"{"feed":"c","id":7}"#)["element"]
      if try ask(reader, "hello", #"{"protocol":1}"#)["revision"] != before["revision"] { break }
      rounds += 1
      expect(element["k"].int == 433 && element["v"].int == 0)
      switch rounds {
      // By now the daemon has read the long request. A change of another client waits until it is executed.
      case 3: try other.send(change)
      // A watch that begins now gets the state before, and then the changes.
      case 4:
        try expect(ask(watchers[1], "watch", #"{"feed":"c"}"#).has("revision"))
        isWatched = true
      default: break
      }
    }
    if rounds < 3 { try other.send(change) }
    let answer = try writer.receiveJSON()["result"]
    expect(answer.has("revision"), "\(answer)")
    let later = try other.receiveJSON()["result"]
    let revision = try require(answer["revision"].int)
    expectEqual(later["revision"].int, revision + 1)
    for watcher in isWatched ? watchers : [watchers[0]] { try follow(watcher, to: revision + 1) }
    return rounds
  }

  /// Receives a snapshot and changes until the copy is at a revision. Each change continues the one before.
  private func follow(_ watcher: RawClient, to last: Int) throws {
    var revision = 0
    while revision < last {
      let message = try watcher.receiveJSON()
      let params = message["params"]
      if message["method"].string == "delta" { expectEqual(params["from"].int, revision) }
      revision = try require(params["revision"].int)
    }
    expectEqual(revision, last)
  }

  @Test("a kill during a long request loses nothing that was acknowledged", arguments: Long.allCases)
  func kill(_ long: Long) throws {
    var acknowledged: JSONValue = "null"
    do {
      let daemon = try start()
      let (writer, reader) = (try daemon.connect(), try daemon.connect())
      try fill(writer)
      acknowledged = try ask(reader, "verify", #"{"feed":"c"}"#)
      try writer.send(long.request())
      for _ in 0..<4 { try expectEqual(ask(reader, "ping").text, "{}") }
      try daemon.stop(signal: SIGKILL)
    }
    // The request may have been stored. Then it is executed as a whole.
    let daemon = try start()
    let client = try daemon.connect()
    let found = try ask(client, "verify", #"{"feed":"c"}"#)
    if found != acknowledged {
      expect(found["revision"].int ?? 0 > acknowledged["revision"].int ?? .max)
      return
    }
    try client.send(long.request())
    try expect(client.receiveJSON().has("result"))
  }
}
