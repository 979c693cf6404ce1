import Glibc
import TestSupport
import Testing

@Suite("feedclient's exit statuses")
struct ClientExitTests {
  @Test func noDaemonIsThree() throws {
    let directory = try TemporaryDirectory()
    let client = ClientCommand(socket: directory.file("nobody.sock"))
    for words in [["feeds"], ["watch", "f"], ["push", "f", "1"], ["push", "f"]] {
      let outcome = try ClientCommand.finish(client.start(words))
      #expect(outcome.code == 3, "\(words)")
      #expect(outcome.errors.contains("no feedd listens there"))
      #expect(outcome.errors.contains("to start one: feedd --socket \(client.socket)"))
    }
  }

  @Test func theTimeIsUpIsFour() throws {
    let daemon = try DaemonProcess()
    let client = ClientCommand(daemon)
    #expect(try client.run("define", "f").code == 0)
    let watcher = try client.run("watch", "f", "--timeout", "100ms")
    #expect(watcher.code == 4)
    #expect(watcher.lines.count == 1)
    // Input that never comes.
    for words in [["push", "f"], ["push", "f", "-"], ["set", "f"], ["set", "f", "-"], ["define", "-"]] {
      let waiting = try client.start(words + ["--timeout", "100ms"])
      #expect(try waiting.waitForExit() == 4, "\(words)")
      #expect(waiting.errors.text == "feedclient: the time was up (--timeout)\n")
    }
    // Input that never ends.
    let endless = try client.startShell("while echo '{\"id\":1}'; do :; done | $0 push f --timeout 100ms")
    #expect(try endless.waitForExit() == 4)
    // A daemon that is there and does not answer.
    daemon.process.signal(SIGSTOP)
    let stats = try client.run("--timeout", "100ms", "stats")
    #expect(stats.code == 4)
    #expect(stats.errors == "feedclient: the time was up (--timeout)\n")
    daemon.process.signal(SIGCONT)
    #expect(try client.run("stats", "--timeout=30s").code == 0)
  }

  @Test(
    arguments: [
      [], ["frobnicate"], ["watch"], ["watch", "f", "g"], ["get", "f"], ["get", "f", "1", "--at", "0,0"],
      ["get", "f", "--at", "x"], ["range", "f", "0", "0"], ["range", "f", "0", "0", "many"], ["push"],
      ["push", "f", "{"], ["define", "f", "--retain-count", "x"], ["define", "{"], ["call", "m", "[]"],
      ["watch", "f", "--count", "0"], ["watch", "f", "--snapshot-only", "--no-initial"],
      ["watch", "f", "--template", "{"], ["watch", "f", "--since-file", "/proc/version"], ["stats", "--frob"],
      ["--socket"], ["--timeout", "soon", "stats"],
    ] as [[String]])
  func wrongCommandLinesAreTwo(words: [String]) throws {
    let outcome = try ClientCommand.finish(ClientCommand(socket: "/nonexistent/socket").start(words))
    #expect(outcome.code == 2, "\(words): \(outcome.errors)")
    #expect(outcome.output == "")
    #expect(!outcome.errors.isEmpty)
  }

  @Test func refusalsAreOneAndSayWhatToChange() throws {
    let daemon = try DaemonProcess()
    let client = ClientCommand(daemon)
    let unknown = try client.run("watch", "nowhere")
    #expect(unknown.code == 1)
    #expect(unknown.errors.contains("nowhere") && unknown.errors.contains("(-32000)"))
    let filter = try client.run("define", "f", "--bin", "x=@.a >>> 3")
    #expect(filter.code == 1)
    #expect(filter.errors.contains("\nfeedclient: @.a >>> 3\nfeedclient:      ^\n"))
    #expect(try client.run("call", "nosuchmethod").code == 1)
    #expect(try client.run("call", "nosuchmethod").errors.contains("(-32601)"))
    #expect(try client.run("query", "f", "$").code == 1)
  }

  @Test func helpAndVersionsAreZero() throws {
    let client = ClientCommand(socket: "/nonexistent/socket")
    for words in [["--help"], ["help"], ["help", "push"], ["push", "--help"], ["-h"], ["watch", "f", "-h"]] {
      let outcome = try ClientCommand.finish(client.start(words))
      #expect(outcome.code == 0, "\(words)")
      #expect(outcome.output.hasPrefix("Usage: feedclient"), "\(words)")
      #expect(outcome.output.contains("Example"), "\(words)")
    }
    #expect(try client.run("--version").output.hasPrefix("feedclient "))
    #expect(try client.run("help", "psuh").errors == "feedclient: there is no command 'psuh'; did you mean push?\n")
  }

  @Test func rawCallsAndWholeDocuments() throws {
    let daemon = try DaemonProcess()
    let client = ClientCommand(daemon)
    let defined = try client.run("define", "-", input: "{\"feed\":\"f\",\n \"kind\":\"collection\"}\n")
    #expect(defined.output == "{\"revision\":1}\n")
    let called = try client.run(
      "call", "transaction", "-",
      input: "{\"ops\":[{\"method\":\"update\",\"params\":{\"feed\":\"f\",\"element\":{\"id\":1}}}]}")
    #expect(called.output.contains("\"results\":[{"))
    #expect(try client.run("clients").output.contains("\"name\":\"feedclient/clients\""))
    #expect(try client.run("verify", "f").output.contains("\"counts\":[1]"))
    #expect(try client.run("snapshot", "f").output.contains("\"elements\":[{\"id\":1}]"))
    #expect(try client.run("ping").code == 0)
    #expect(try client.run("undefine", "f").code == 0)
  }
}
