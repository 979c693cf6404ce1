import TestSupport

extension DaemonProcess {
  /// Returns once somebody watches the feed: `describe` counts watchers, and asking takes a turn of the daemon each
  /// time.
  func waitForWatcher(of feed: String, _ client: ClientCommand, count: Int = 1) throws {
    let raw = try connect()
    for _ in 0..<100_000 {
      try raw.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"describe\",\"params\":{\"feed\":\"\(feed)\"}}")
      if try raw.receive(having: "\"id\":1").contains("\"watchers\":\(count)") { return }
    }
    throw TestFailure("nobody watches \(feed)")
  }
}
