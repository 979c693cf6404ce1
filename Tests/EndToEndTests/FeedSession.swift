import TestSupport

/// A daemon with one client that changes its feeds.
final class FeedSession {
  let daemon: DaemonProcess
  private let client: RawClient

  init() throws {
    daemon = try DaemonProcess()
    client = try daemon.connect()
  }

  /// Sends a request and returns its result.
  @discardableResult
  func ask(_ method: String, _ params: String) throws -> JSONValue {
    let answer = try answer(method, params)
    guard answer.has("result") else { throw TestFailure("\(method) \(params): \(answer)") }
    return answer["result"]
  }

  /// Sends a request and returns the code of its error; 0 if it succeeds.
  func refusal(_ method: String, _ params: String) throws -> Int {
    let answer = try answer(method, params)
    return answer.has("error") ? answer["error"]["code"].int ?? 0 : 0
  }

  private func answer(_ method: String, _ params: String) throws -> JSONValue {
    try client.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\(method)\",\"params\":\(params)}")
    return try JSONValue(client.receive(having: "\"id\":1"))
  }

  /// Returns the rows of each section of a feed.
  func rows(_ feed: String) throws -> [[String]] {
    try ask("snapshot", "{\"feed\":\"\(feed)\"}").rows
  }

  /// Returns the names of the sections of a feed.
  func sections(_ feed: String) throws -> [String] {
    try ask("describe", "{\"feed\":\"\(feed)\"}")["sections"].elements.compactMap { $0["name"].string }
  }
}
