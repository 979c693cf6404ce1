import TestSupport

extension DaemonProcess {
  /// Returns once `describe` counts `count` watchers of the feed. Each request takes a turn of the daemon.
  func waitForWatcher(of feed: String, _ client: ClientCommand, count: Int = 1) throws {
    let raw = try connect()
    for _ in 0..<100_000 {
      try raw.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"describe\",\"params\":{\"feed\":\"\(feed)\"}}")
      if try JSONValue(raw.receive(having: "\"id\":1"))["result"]["watchers"].int == count { return }
    }
    throw TestFailure("\(feed) did not get \(count) watchers")
  }
}
