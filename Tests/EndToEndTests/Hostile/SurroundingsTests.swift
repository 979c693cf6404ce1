import FeedSystem
import Glibc
import TestSupport
import Testing

/// Attacks through what surrounds the daemon: access rules, files, signals and the log.
@Suite("Attacks on the surroundings")
struct SurroundingsTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    expectEqual(chmod(directory.path, 0o755), 0)
  }

  private var configuration: String { directory.file("feedd.json") }

  /// Writes a configuration in which another user may read the feeds with these names.
  private func configure(readable: String) throws {
    let text = #"""
      {"feeds":[{"feed":"secret","kind":"array"},{"feed":"shown","kind":"composed","children":["secret"]},
      {"feed":"top","kind":"view","of":"shown"}],
      "access":[{"uid":\#(OtherUser.uid),"feeds":[\#(readable)],"allow":"read"}]}
      """#
    try SmallFile.replace(configuration, with: Array(text.utf8))
  }

  private func daemon(_ arguments: String...) throws -> DaemonProcess {
    let daemon = try DaemonProcess(arguments, directory: directory)
    expectEqual(chmod(daemon.socketPath, 0o666), 0)
    return daemon
  }

  @Test("withdrawn rights end watches of feeds that show the feed", .enabled(if: geteuid() == 0))
  func withdrawnRights() throws {
    try configure(readable: #""secret","shown","top""#)
    let daemon = try daemon("--config", configuration)
    let watchers = try ["shown", "top"].map { feed in
      let watcher = try OtherUser.connect(daemon.socketPath)
      try expect(HostileTests.answer(watcher, "watch", #"{"feed":"\#(feed)"}"#).has("result"))
      return watcher
    }
    try configure(readable: #""shown","top""#)
    daemon.process.signal(SIGHUP)
    for watcher in watchers {
      let bye = try JSONValue(watcher.receiveToEnd().last)
      expectEqual(bye["method"].string, "bye")
      expectEqual(bye["params"]["reason"].string, "access")
    }
    let other = try OtherUser.connect(daemon.socketPath)
    for feed in ["shown", "top"] {
      for method in ["snapshot", "watch", "verify", "describe"] {
        try expectEqual(HostileTests.answer(other, method, #"{"feed":"\#(feed)"}"#)["error"]["code"].int, -32006)
      }
    }
    try expect(HostileTests.ask(other, "feeds")["result"]["feeds"].elements.isEmpty)
    try expectEqual(HostileTests.ask(other, "quotas")["error"]["code"].int, -32006)
    try expectEqual(HostileTests.ask(other, "kick", #"{"connection":1}"#)["error"]["code"].int, -32006)
  }

  @Test(
    "a composed feed tells another user nothing of a hidden child, whatever the rules were",
    .enabled(if: geteuid() == 0))
  func hiddenChild() throws {
    try configure(readable: #""secret","shown","top""#)
    let daemon = try daemon("--config", configuration)
    let root = try daemon.connect()
    let watcher = try OtherUser.connect(daemon.socketPath)
    let watch = try HostileTests.answer(watcher, "watch", #"{"feed":"top"}"#)["result"]
    let epoch = try require(watch["epoch"].string)
    let revision = try require(watch["revision"].int)
    func reload(_ readable: String) throws {
      try configure(readable: readable)
      daemon.process.signal(SIGHUP)
      try daemon.notify.wait(for: "RELOADING=1", orEndOf: daemon.process)
      try daemon.notify.wait(for: "READY=1", orEndOf: daemon.process)
    }
    try reload(#""shown","top""#)
    let told = try watcher.receiveToEnd()
    try expectEqual(JSONValue(told.last)["params"]["reason"].string, "access")
    expect(!told.joined().contains("secret"))
    // The history holds the names of the sections that come and go.
    for _ in 0..<2 {
      for (method, params) in [
        ("insert", #"{"feed":"secret","elements":["secret-row"]}"#),
        ("removeChild", #"{"feed":"shown","child":"secret"}"#), ("insertChild", #"{"feed":"shown","child":"secret"}"#),
      ] { try expect(HostileTests.ask(root, method, params).has("result")) }
    }
    let other = try OtherUser.connect(daemon.socketPath)
    let since = #"{"epoch":"\#(epoch)","revision":\#(revision)}"#
    for feed in ["shown", "top"] {
      let refused = try HostileTests.answer(other, "watch", #"{"feed":"\#(feed)","since":\#(since)}"#)
      expectEqual(refused["error"]["code"].int, -32006)
      expectEqual(refused["error"]["message"].string?.contains("secret"), false)
    }
    try expect(HostileTests.ask(root, "removeChild", #"{"feed":"shown","child":"secret"}"#).has("result"))
    for feed in ["shown", "top"] {
      _ = try HostileTests.answer(other, "watch", #"{"feed":"\#(feed)","since":\#(since)}"#)
    }
    try expect(HostileTests.ask(root, "define", #"{"feed":"last","kind":"array"}"#).has("result"))
    try expect(HostileTests.ask(root, "insertChild", #"{"feed":"shown","child":"secret"}"#).has("result"))
    let rest = try other.receiveToEnd()
    try expectEqual(JSONValue(rest.last)["params"]["reason"].string, "access")
    expect(!rest.joined().contains("secret"), "\(rest)")
  }

  @Test("a FIFO in place of the configuration is refused, and the daemon serves on")
  func fifo() throws {
    try configure(readable: #""shown""#)
    let daemon = try daemon("--config", configuration)
    let client = try daemon.connect()
    expectEqual(unlink(configuration), 0)
    expectEqual(mkfifo(configuration, 0o644), 0)
    daemon.process.signal(SIGHUP)
    try daemon.process.errors.wait(for: "regular file")
    try expect(HostileTests.ask(client, "describe", #"{"feed":"shown"}"#).has("result"))
  }

  @Test("connections that come and go do not fill the log")
  func log() throws {
    let daemon = try daemon()
    for _ in 0..<2000 { _ = try OtherUser.connect(daemon.socketPath) }
    let client = try daemon.connect()
    try expect(HostileTests.waitForConnections(1, client))
    try expectEqual(daemon.stop(), 0)
    expect(daemon.log.utf8.count < 20_000)
  }

  @Test("signals of a crash end the daemon without a dump of its memory", arguments: [SIGABRT, SIGQUIT, SIGSEGV])
  func crash(signal: Int32) throws {
    let daemon = try daemon()
    daemon.process.signal(signal)
    try expect(daemon.process.waitForExit() != 0)
    expect(!daemon.log.contains("Registers"))
    expect(daemon.log.utf8.count < 20_000)
  }
}
