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
    #expect(chmod(directory.path, 0o755) == 0)
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
    #expect(chmod(daemon.socketPath, 0o666) == 0)
    return daemon
  }

  @Test("withdrawn rights end watches of feeds that show the feed", .enabled(if: geteuid() == 0))
  func withdrawnRights() throws {
    try configure(readable: #""secret","shown","top""#)
    let daemon = try daemon("--config", configuration)
    let watchers = try ["shown", "top"].map { feed in
      let watcher = try OtherUser.connect(daemon.socketPath)
      #expect(try HostileTests.answer(watcher, "watch", #"{"feed":"\#(feed)"}"#).has("result"))
      return watcher
    }
    try configure(readable: #""shown","top""#)
    daemon.process.signal(SIGHUP)
    for watcher in watchers {
      let bye = try JSONValue(watcher.receiveToEnd().last)
      #expect(bye["method"].string == "bye")
      #expect(bye["params"]["reason"].string == "access")
    }
    let other = try OtherUser.connect(daemon.socketPath)
    for feed in ["shown", "top"] {
      for method in ["snapshot", "watch", "verify", "describe"] {
        #expect(try HostileTests.answer(other, method, #"{"feed":"\#(feed)"}"#)["error"]["code"].int == -32006)
      }
    }
    #expect(try HostileTests.ask(other, "feeds")["result"]["feeds"].elements.isEmpty)
    #expect(try HostileTests.ask(other, "quotas")["error"]["code"].int == -32006)
    #expect(try HostileTests.ask(other, "kick", #"{"connection":1}"#)["error"]["code"].int == -32006)
  }

  @Test("a FIFO in place of the configuration is refused, and the daemon serves on")
  func fifo() throws {
    try configure(readable: #""shown""#)
    let daemon = try daemon("--config", configuration)
    let client = try daemon.connect()
    #expect(unlink(configuration) == 0)
    #expect(mkfifo(configuration, 0o644) == 0)
    daemon.process.signal(SIGHUP)
    try daemon.process.errors.wait(for: "regular file")
    #expect(try HostileTests.ask(client, "describe", #"{"feed":"shown"}"#).has("result"))
  }

  @Test("connections that come and go do not fill the log")
  func log() throws {
    let daemon = try daemon()
    for _ in 0..<2000 { _ = try OtherUser.connect(daemon.socketPath) }
    let client = try daemon.connect()
    #expect(try HostileTests.waitForConnections(1, client))
    #expect(try daemon.stop() == 0)
    #expect(daemon.log.utf8.count < 20_000)
  }

  @Test("signals of a crash end the daemon without a dump of its memory", arguments: [SIGABRT, SIGQUIT, SIGSEGV])
  func crash(signal: Int32) throws {
    let daemon = try daemon()
    daemon.process.signal(signal)
    #expect(try daemon.process.waitForExit() != 0)
    #expect(!daemon.log.contains("Registers"))
    #expect(daemon.log.utf8.count < 20_000)
  }
}
