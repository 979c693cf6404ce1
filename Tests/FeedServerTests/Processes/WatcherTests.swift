import FeedSystem
import Glibc
import TestSupport
import Testing

@Suite("Watchers on the socket")
struct WatcherTests {
  static let define =
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"define\",\"params\":{\"feed\":\"f\",\"kind\":\"collection\"}}"
  static let watch = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"watch\",\"params\":{\"feed\":\"f\"}}"

  static func update(_ number: Int) -> String {
    let element = "{\"id\":\(number % 50),\"n\":\(number),\"text\":\"\(String(repeating: "t", count: 200))\"}"
    return "{\"jsonrpc\":\"2.0\",\"method\":\"update\",\"params\":{\"feed\":\"f\",\"element\":\(element)}}"
  }

  /// Returns the revision that a delta or a snapshot leads to.
  func revision(_ frame: String) throws -> Int {
    try require(JSONValue(frame)["params"]["revision"].int, "\(frame.prefix(200))")
  }

  /// A watcher that does not read delays neither the pusher nor another watcher. When it reads again it catches up with fewer
  /// frames than the others received.
  @Test func stoppedWatcherCatchesUp() throws {
    let daemon = try DaemonProcess(["--max-queue", "64K"])
    let pusher = try daemon.connect()
    try pusher.send(Self.define)
    _ = try pusher.receive()
    let (stopped, reading) = (try daemon.connect(), try daemon.connect())
    for watcher in [stopped, reading] {
      try watcher.send(Self.watch)
      _ = try watcher.receive(having: "\"id\":2")
      _ = try watcher.receive(having: "\"method\":\"snapshot\"", "\"last\":true")
    }
    let count = 4000
    var seen = 0
    for chunk in stride(from: 0, to: count, by: 100) {
      try pusher.sendBytes((chunk..<chunk + 100).flatMap { RawClient.frame(Array(Self.update($0).utf8)) })
      try pusher.ping(3)
      while seen < chunk + 100 {
        seen = try revision(reading.receive(having: "\"method\":\"delta\"")) - 1
      }
    }
    let last = count + 1
    var (at, frames) = (0, 0)
    while at < last {
      let frame = try stopped.receive(having: "\"revision\":")
      at = try revision(frame)
      let message = try JSONValue(frame)
      if at == last && message["method"].string == "snapshot" && message["params"]["last"].bool != true { at = 0 }
      frames += 1
    }
    expect(frames < count)
    // The watch is live again: the next change arrives as a delta.
    try pusher.send(Self.update(7))
    try expectEqual(revision(stopped.receive(having: "\"method\":\"delta\"")), last + 1)
    try expectEqual(revision(reading.receive(having: "\"method\":\"delta\"")), last + 1)
  }

  /// Requests that a client sent before it disconnected are executed.
  @Test func requestsSentBeforeAHangUpAreExecuted() throws {
    let daemon = try DaemonProcess(["--max-queue", "4K"])
    let watcher = try daemon.connect()
    try watcher.send(Self.define)
    _ = try watcher.receive()
    try watcher.send(Self.watch)
    _ = try watcher.receive(having: "\"method\":\"snapshot\"")
    for round in 1...20 {
      do {
        let pusher = try daemon.connect()
        // Sends requests whose answers exceed the queue and are never read, then an update.
        for _ in 0..<300 { try pusher.send("{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"feeds\"}") }
        try pusher.send(Self.update(round))
      }
      try expectEqual(revision(watcher.receive(having: "\"method\":\"delta\"")), round + 1)
    }
  }
}
