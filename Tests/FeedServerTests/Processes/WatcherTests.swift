import FeedSystem
import Glibc
import TestSupport
import Testing

@Suite("Watchers at the socket")
struct WatcherTests {
  static let define =
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"define\",\"params\":{\"feed\":\"f\",\"kind\":\"collection\"}}"
  static let watch = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"watch\",\"params\":{\"feed\":\"f\"}}"

  static func update(_ number: Int) -> String {
    let element = "{\"id\":\(number % 50),\"n\":\(number),\"text\":\"\(String(repeating: "t", count: 200))\"}"
    return "{\"jsonrpc\":\"2.0\",\"method\":\"update\",\"params\":{\"feed\":\"f\",\"element\":\(element)}}"
  }

  /// The value of the revision that a delta or a snapshot leads to.
  func revision(_ frame: String) throws -> Int {
    let found = try #require(frame.firstMatch(of: /"revision":(\d+)/), "\(frame.prefix(200))")
    return try #require(Int(found.1))
  }

  /// A watcher that does not read holds up neither the pusher nor another watcher; when it reads again it is brought to where
  /// the others are, with less than what they got.
  @Test func oneThatStopsCatchesUp() throws {
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
      if at == last && frame.contains("\"method\":\"snapshot\"") && !frame.contains("\"last\":true") { at = 0 }
      frames += 1
    }
    #expect(frames < count)
    // It is live again: the next change arrives as for the others.
    try pusher.send(Self.update(7))
    #expect(try revision(stopped.receive(having: "\"method\":\"delta\"")) == last + 1)
    #expect(try revision(reading.receive(having: "\"method\":\"delta\"")) == last + 1)
  }

  /// What a client sent before it went away is done, although nobody waits for the answers.
  @Test func whatWasSentBeforeAHangUpIsDone() throws {
    let daemon = try DaemonProcess(["--max-queue", "4K"])
    let watcher = try daemon.connect()
    try watcher.send(Self.define)
    _ = try watcher.receive()
    try watcher.send(Self.watch)
    _ = try watcher.receive(having: "\"method\":\"snapshot\"")
    for round in 1...20 {
      do {
        let pusher = try daemon.connect()
        // Answers that are never read, beyond what the daemon lets wait, then an update.
        for _ in 0..<300 { try pusher.send("{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"feeds\"}") }
        try pusher.send(Self.update(round))
      }
      #expect(try revision(watcher.receive(having: "\"method\":\"delta\"")) == round + 1)
    }
  }
}
