import TestSupport

/// A daemon of its own with a program that changes its feeds, for the examples that the project starts from.
final class SeedSession {
  let daemon: DaemonProcess
  private let client: RawClient

  init() throws {
    daemon = try DaemonProcess()
    client = try daemon.connect()
  }

  /// The result of a request.
  @discardableResult
  func ask(_ method: String, _ params: String) throws -> SeedValue {
    let answer = try answer(method, params)
    guard answer.has("result") else { throw TestFailure("\(method) \(params): \(answer)") }
    return answer["result"]
  }

  /// The code of the error that a request is refused with; 0 when it is not.
  func refusal(_ method: String, _ params: String) throws -> Int {
    let answer = try answer(method, params)
    return answer.has("error") ? answer["error"]["code"].int : 0
  }

  private func answer(_ method: String, _ params: String) throws -> SeedValue {
    try client.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\(method)\",\"params\":\(params)}")
    return try SeedValue(client.receive(having: "\"id\":1"))
  }

  /// The rows of every section of a feed.
  func rows(_ feed: String) throws -> [[String]] {
    try ask("snapshot", "{\"feed\":\"\(feed)\"}").rows
  }

  /// The names of the sections of a feed.
  func sections(_ feed: String) throws -> [String] {
    try ask("describe", "{\"feed\":\"\(feed)\"}")["sections"].elements.compactMap { $0["name"].string }
  }

  func watch(_ feed: String) throws -> SeedWatcher {
    try SeedWatcher(daemon.connect(), of: feed)
  }
}

/// Somebody else who watches one feed.
final class SeedWatcher {
  private let client: RawClient
  /// The rows that the snapshot had.
  let initial: [String]

  fileprivate init(_ client: RawClient, of feed: String) throws {
    self.client = client
    try client.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"watch\",\"params\":{\"feed\":\"\(feed)\"}}")
    _ = try client.receive(having: "\"id\":1")
    initial = try SeedValue(client.receive(having: "\"last\":true"))["params"]["elements"].elements.map(\.text)
  }

  /// Every notification up to now: `sync` is answered behind all of them.
  func notifications() throws -> [SeedValue] {
    try client.send("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"sync\",\"params\":{}}")
    var notifications: [SeedValue] = []
    while let text = try client.receive() {
      let frame = try SeedValue(text)
      if frame["id"].int == 2 { return notifications }
      notifications.append(frame)
    }
    throw TestFailure("the daemon closed the connection")
  }

  /// The only notification up to now, a delta.
  func delta() throws -> SeedValue {
    let all = try notifications()
    guard all.count == 1, all[0]["method"].string == "delta" else { throw TestFailure("no single delta: \(all)") }
    return all[0]["params"]
  }
}
