import FeedJSON
import Glibc
import TestSupport
import Testing

@Suite("feedclient's exit statuses")
struct ClientExitTests {
  @Test func exitStatusIs3WithoutADaemon() throws {
    let directory = try TemporaryDirectory()
    let client = ClientCommand(socket: directory.file("nobody.sock"))
    for words in [["feeds"], ["watch", "f"], ["push", "f", "1"], ["push", "f"]] {
      let outcome = try ClientCommand.finish(client.start(words))
      expectEqual(outcome.code, 3, "\(words)")
      expect(outcome.errors.contains("start feedd or pass its socket with --socket"))
      expect(outcome.errors.contains("start a daemon with: feedd --socket \(client.socket)"))
    }
  }

  @Test("a stopped daemon of one's own stays the one that is asked, and ping says why") func ownDaemon() throws {
    let directory = try TemporaryDirectory()
    let variables = ["XDG_RUNTIME_DIR": directory.path, "HOME": directory.path]
    let socket = directory.file("feedd.sock")
    func run(_ words: String...) throws -> ClientCommand.Outcome {
      try ClientCommand.finish(ChildProcess(BuildProducts.program("feedclient"), words, environment: variables))
    }
    let before = try run("ping")
    expectEqual(before.code, 3)
    expect(
      before.errors.contains("feedclient: socket /run/feedd/feedd.sock: it is the system's; no daemon of this user"))
    let daemon = try ChildProcess(BuildProducts.program("feedd"), ["--durability", "memory"], environment: variables)
    try daemon.errors.wait(for: "listens at \(socket)")
    let answer = try run("ping").json
    expectEqual(answer["socket"].string, socket)
    expectEqual(answer["why"].string, "it is that of this user's own daemon; it exists")
    let reason = "feedclient: socket \(socket): it is that of this user's own daemon; it exists\n"
    try expectEqual(run("-v", "feeds").errors, reason)
    daemon.signal(SIGTERM)
    try expectEqual(daemon.waitForExit(), 0)
    for words in ["ping", "feeds"] {
      let after = try run(words, "-v")
      expectEqual(after.code, 3)
      expect(
        after.errors.contains(
          "socket \(socket): it is that of this user's own daemon; \(socket).own shows that it was there"))
      expect(after.errors.contains("cannot connect to \(socket)"))
    }
  }

  @Test func exitStatusIs4AfterATimeout() throws {
    let daemon = try DaemonProcess()
    let client = ClientCommand(daemon)
    try client.succeed("define", "f")
    let watcher = try client.run("watch", "f", "--timeout", "100ms")
    expectEqual(watcher.code, 4)
    expectEqual(watcher.lines.count, 1)
    // Standard input stays open without data.
    for words in [["push", "f"], ["push", "f", "-"], ["set", "f"], ["set", "f", "-"], ["define", "-"], ["import"]] {
      let waiting = try client.start(words + ["--timeout", "100ms"])
      try expectEqual(waiting.waitForExit(), 4, "\(words)")
      expectEqual(waiting.errors.text, "feedclient: timed out after 100 ms\n")
    }
    // Standard input never ends.
    let endless = try client.startShell("while echo '{\"id\":1}'; do :; done | $0 push f --timeout 100ms")
    try expectEqual(endless.waitForExit(), 4)
    // The daemon runs but does not answer.
    daemon.process.signal(SIGSTOP)
    let stats = try client.run("--timeout", "100ms", "stats")
    expectEqual(stats.code, 4)
    expectEqual(stats.errors, "feedclient: timed out after 100 ms\n")
    daemon.process.signal(SIGCONT)
    try client.succeed("stats", "--timeout=30s")
  }

  @Test(
    arguments: [
      [], ["frobnicate"], ["watch"], ["watch", "f", "f"], ["watch", "f", "--print", "x", "--json"],
      ["get", "f"], ["get", "f", "1", "--at", "0,0"],
      ["get", "f", "--at", "x"], ["range", "f", "0", "0"], ["range", "f", "0", "0", "many"], ["push"],
      ["push", "f", "{"], ["define", "f", "--retain-count", "x"], ["define", "{"], ["call", "m", "[]"],
      ["watch", "f", "--count", "0"], ["watch", "f", "--snapshot-only", "--no-initial"],
      ["watch", "f", "--template", "{"], ["range", "f", "0", "0", "1", "--template", "{a:x}"],
      ["watch", "f", "--print", "}"], ["watch", "f", "--rows", "2"], ["watch", "f", "--print", "x", "--counts"],
      ["stats", "--json", "--prometheus"], ["watch", "f", "--since-file", "/proc/version"], ["stats", "--frob"],
      ["--socket"], ["--socket", "a", "ping", "--socket", "b"], ["--timeout", "soon", "stats"],
      ["help", "get", "extra"],
    ] as [[String]])
  func exitStatusIs2ForAWrongCommandLine(words: [String]) throws {
    let outcome = try ClientCommand.finish(ClientCommand(socket: "/nonexistent/socket").start(words))
    expectEqual(outcome.code, 2, "\(words): \(outcome.errors)")
    expectEqual(outcome.output, "")
    expect(!outcome.errors.isEmpty)
  }

  /// Without a file in their place, the connection would be standard output, and the daemon would read the results.
  @Test("closed standard streams are errors, and nothing else gets their numbers") func closedStreams() throws {
    let daemon = try DaemonProcess()
    let client = ClientCommand(daemon)
    try client.succeed("push", "f", "--define", "{\"id\":1}")
    for command in ["feeds", "export f", "watch f", "help", "--version"] {
      let outcome = try ClientCommand.finish(client.startShell("$0 \(command) >&-"))
      expectEqual(outcome.code, 2, "\(command)")
      expectEqual(outcome.errors, "feedclient: cannot write to standard output: bad file descriptor\n", "\(command)")
    }
    // Nobody will take what could not be written.
    let path = daemon.directory.file("since")
    let full = try ClientCommand.finish(client.startShell("$0 watch f --since-file \(path) > /dev/full"))
    expectEqual(full.code, 2)
    expectEqual(
      full.errors,
      """
      feedclient: the reader did not take all of the output; the next watch with \(path) repeats the rest
      feedclient: cannot write to standard output: no space left on device

      """)
    expect(access(path, F_OK) != 0)
    let version = try ClientCommand.finish(client.startShell("${0%feedclient}feedd --version > /dev/full"))
    expectEqual(version.code, 1)
    expectEqual(version.errors, "feedd: cannot write to standard output: no space left on device\n")
    for command in ["push f -", "set f -"] {
      let outcome = try ClientCommand.finish(client.startShell("$0 \(command) <&-"))
      expectEqual(outcome.code, 2, "\(command)")
      expect(outcome.errors.contains("cannot read from standard input: bad file descriptor\n"), "\(command)")
    }
    let silent = try ClientCommand.finish(client.startShell("$0 get f 1 2>&-; $0 get f 2 2>&-; echo $?"))
    expectEqual(silent.lines.last, "1")
    try daemon.stop()
    expect(!daemon.log.contains("warning"))
  }

  @Test func exitStatusIs1ForARefusedRequest() throws {
    let client = ClientCommand(try DaemonProcess())
    let unknown = try client.run("watch", "nowhere")
    expectEqual(unknown.code, 1)
    expect(unknown.errors.contains("nowhere") && !unknown.errors.contains("-32000"))
    let filter = try client.run("define", "f", "--bin", "x=@.a >>> 3")
    expectEqual(filter.code, 1)
    expect(filter.errors.contains("\nfeedclient: @.a >>> 3\nfeedclient:      ^\n"))
    try expectEqual(client.run("call", "nosuchmethod").code, 1)
    expect(!(try client.run("call", "nosuchmethod").errors.contains("-32601")))
    try expect(client.run("call", "nosuchmethod", "-v").errors.contains("(-32601)"))
    try expect(client.run("--json", "call", "nosuchmethod").errors.contains("(-32601)"))
    try expectEqual(client.run("query", "f", "$").code, 1)
  }

  @Test func exitStatusIs0ForHelpAndVersion() throws {
    let client = ClientCommand(socket: "/nonexistent/socket")
    for words in [["--help"], ["help"], ["help", "push"], ["push", "--help"], ["-h"], ["watch", "f", "-h"]] {
      let outcome = try ClientCommand.finish(client.start(words))
      expectEqual(outcome.code, 0, "\(words)")
      expect(outcome.output.hasPrefix("Usage: feedclient"), "\(words)")
      expect(outcome.output.contains("Example"), "\(words)")
    }
    try expect(client.run("--version").output.hasPrefix("feedclient "))
    try expectEqual(client.run("help", "psuh").errors, "feedclient: unknown command 'psuh'; did you mean push?\n")
  }

  @Test func requestsAndDefinitionsCanBeRawJSON() throws {
    let client = ClientCommand(try DaemonProcess())
    let defined = try client.run("define", "-", input: "{\"feed\":\"f\",\n \"kind\":\"collection\"}\n")
    expectEqual(defined.output, "{\"revision\":1}\n")
    let called = try client.run(
      "call", "transaction", "-",
      input: "{\"ops\":[{\"method\":\"update\",\"params\":{\"feed\":\"f\",\"element\":{\"id\":1}}}]}")
    try expectEqual(called.json["results"], #"[{"deleted":[],"added":[[0,0]],"updated":[]}]"#)
    let clients = try client.run("clients").lines.map { try JSONValue($0)["name"].string }
    expect(clients.contains("feedclient/clients"))
    try expectEqual(client.run("verify", "f").json["counts"], "[1]")
    try expectEqual(client.run("snapshot", "f").json["sections"][0]["elements"], #"[{"id":1}]"#)
    try client.succeed("ping")
    try client.succeed("undefine", "f")
  }

  @Test("names that resemble a feed, a bin or a section are suggested") func suggestions() throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("define", "inbox", "--bin", "urgent=@.p > 5", "--bin", "rest")
    try client.succeed("push", "inbox", "{\"id\":1,\"p\":9}", "{\"id\":2,\"p\":8}")
    try expect(client.run("watch", "inbx").errors.hasSuffix("; did you mean inbox?\n"))
    try expect(client.run("verify", "inbox/urgnt").errors.hasSuffix("; did you mean inbox/urgent?\n"))
    try expectEqual(client.run("range", "inbox", "urgent", "1", "5").lines, ["{\"id\":2,\"p\":8}"])
    try expectEqual(client.run("range", "inbox", "inbox/urgent", "1", "5").lines, ["{\"id\":2,\"p\":8}"])
    let section = try client.run("range", "inbox", "urgnt", "0", "1")
    expectEqual(section.code, 2)
    expectEqual(section.errors, "feedclient: 'inbox' has no section 'urgnt'; did you mean urgent?\n")
    try expectEqual(client.run("select", "inbox", "urgent,1").json["selected"], "[[0,1]]")
    try expectEqual(client.run("get", "inbox", "--at", "urgent,0", "--template", "{p:>3}!").output, "  9!\n")
    let again = try client.run("define", "inbox")
    expectEqual(again.code, 1)
    expect(again.errors.contains("--replace") && !again.errors.contains("\"replace\""))
  }

  @Test("get exits with 1 if there is no such element") func absentElements() throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("define", "a", "--kind", "array")
    try client.succeed("push", "a", "null")
    try client.succeed("define", "f")
    let byIdentity = try client.run("get", "f", "17")
    expectEqual(byIdentity.code, 1)
    expectEqual(byIdentity.errors, "feedclient: 'f' has no element 17\n")
    expectEqual(byIdentity.output, "{\"element\":null,\"type\":null,\"at\":[],\"found\":false,\"revision\":3}\n")
    let byPlace = try client.run("get", "a", "--at", "0,1234")
    expectEqual(byPlace.code, 1)
    expectEqual(byPlace.errors, "feedclient: 'a' has no row 1,234 in section 0\n")
    try expectEqual(client.run("get", "f", "17", "--template", "{id|none}").output, "")
    // An element whose value is null exists.
    try client.succeed("get", "a", "--at", "0,0")
  }

  @Test("results larger than a frame are written in parts") func largeResults() throws {
    let client = ClientCommand(try DaemonProcess(["--max-frame", "64K", "--max-element-bytes", "60K"]))
    try client.succeed("define", "f", "--bin", "some=@.id < 100", "--bin", "all", "--type", "$.k")
    let text = String(repeating: "x", count: 500)
    let input = (0..<400).map { "{\"id\":\($0),\"k\":\"t\",\"text\":\"\(text)\"}\n" }.joined()
    try client.succeed("push", "f", input: input)
    let range = try client.run("range", "f", "all", "10", "300")
    expectEqual(range.code, 0)
    expectEqual(range.output, input.split(separator: "\n")[10..<310].map { $0 + "\n" }.joined())
    let whole = try client.run("snapshot", "f")
    expectEqual(whole.code, 0)
    let all = input.split(separator: "\n").joined(separator: ",")
    let some = input.split(separator: "\n").prefix(100).joined(separator: ",")
    func types(_ count: Int) -> String { Array(repeating: "\"t\"", count: count).joined(separator: ",") }
    expectEqual(
      whole.output,
      """
      {"revision":2,"sections":[{"name":"f/some","count":100,"elements":[\(some)],"types":[\(types(100))]},\
      {"name":"f/all","count":400,"elements":[\(all)],"types":[\(types(400))]}]}

      """.replacing("\"revision\":2,", with: "\"revision\":\(try client.revision(of: "f")),"))
    try expectEqual(client.run("snapshot", "f", "--template", "{id}").lines.count, 500)
  }

  @Test("messages are in the words of the command line and name the next step") func words() throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("define", "inbox", "--bin", "urgent=@.p > 5", "--bin", "rest")
    try client.succeed("define", "todo", "--kind", "array")
    for (words, message) in [
      (["watch", "inbx"], "unknown feed \"inbx\"; did you mean inbox?"),
      (["watch", "zzz"], "unknown feed \"zzz\"; define it, or list the feeds with feedclient feeds"),
      (
        ["delete", "todo", "1"],
        "feed \"todo\" is of kind array; the command needs a feed of kind collection or array with \"id\""
      ),
      (["watch", "inbox", "--sinc-file", "x"], "unknown option --sinc-file; did you mean --since-file?"),
      (["define", "x", "--kind", "arry"], "define: unknown kind 'arry'; did you mean array?"),
      (
        ["define", "x", "--kind", "segmented", "--child", "inbox", "--current", "inbx"],
        "define: --current 'inbx': there is no --child 'inbx'; did you mean inbox?"
      ),
      (
        ["push", "inbox", "{\"id\":1}", "{\"x\":1}"],
        "element 2 has no identity: $.id is missing and must be a string or a number"
      ),
      (
        ["restore", "/nonexistent/copy", "--state", "/nonexistent"],
        "cannot open /nonexistent/copy: no such file or directory"
      ),
      (["--socket", "/", "feeds"], "cannot connect to /: not a socket; pass the socket of feedd with --socket"),
      (["get", "inbox", "7"], "'inbox' has no element 7"),
      (["select", "inbox", "rest,99"], "section \"inbox/rest\" has no row 99: it has 0 rows, counted from 0"),
      (["define", "x", "--bn", "a"], "unknown option --bn; did you mean --bin?"),
      (["define", "x", "--kind", "view"], "--of is missing; give the name of the feed to show"),
      (
        ["define", "x", "--kind", "single", "--retain-seconds", "5"],
        "kind \"single\" has no --retain-seconds; array and collection have it"
      ),
      (
        ["define", "x", "--id", "x"],
        "--id does not parse at byte 0: a path begins with `$`, not with `x`\nfeedclient: x\nfeedclient: ^"
      ),
      (["define", "a!b"], "FEED must be 1 to 128 of the characters A-Z a-z 0-9 . _ -"),
      (["patch", "inbox", "2"], "patch: missing argument PATCH, a JSON object"),
      (["patch", "inbox", "{\"a\":1}"], "ID is missing: give the identity of an element"),
      (
        ["undefine", "inbox/rest"],
        "feed \"inbox/rest\" is of kind bin; the command needs a feed of its own; redefine its collection to remove a bin"
      ),
      // A request on the command line has the words of the protocol.
      (["call", "watch", "{}"], "parameter feed is missing: give the name of a feed"),
      (["define", #"{"feed":"x","kind":"view"}"#], "parameter of is missing; give the name of the feed to show"),
    ] {
      let outcome = try ClientCommand.finish(client.start(words))
      expectEqual(outcome.errors, "feedclient: \(message)\n")
      expect(outcome.code != 0)
    }
    try client.succeed("range", "inbox/urgent", "urgent", "0", "5")
    try client.succeed(
      "define", "tabs", "--kind", "segmented", "--child", "todo", "--child", "inbox/rest", "--current", "inbox/rest")
    try expectEqual(client.run("describe", "tabs").json["current"].int, 1)
    try client.succeed("range", "tabs", "rest", "0", "5")
    let status = try client.run("help", "exit-status")
    expectEqual(status.code, 0)
    expect(status.output.hasPrefix("Exit status:\n  0  success\n"))
  }

  @Test("refused elements on standard input are named by line and column") func columns() throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("define", "f")
    let refused = try client.run("push", "f", input: "[{\"id\":1}, {\"x\":2},\n {\"id\":3")
    expectEqual(
      refused.errors.split(separator: "\n").sorted(),
      [
        "feedclient: line 1, column 12: the element has no identity: $.id is missing and must be a string or a number",
        "feedclient: line 2, column 9: not JSON: the text ends inside a value",
      ])
    try expect(refused.json["pushed"].int == 1 && refused.json["refused"].int == 2)
  }

  @Test("help and version texts fit 80 columns") func width() throws {
    let client = ClientCommand(socket: "/nonexistent/socket")
    let names = try client.run("--help").output.matches(of: #/\n  ([a-z][A-Za-z\-]*)  /#).map { String($0.1) }
    expect(names.count > 30)
    for name in names + ["exit-status"] {
      let help = try client.run("help", name)
      expectEqual(help.code, 0)
      expect(help.output.split(separator: "\n").allSatisfy { $0.count <= 80 }, "\(name)")
    }
    try expect(client.run("--help").output.split(separator: "\n").allSatisfy { $0.count <= 80 })
    let daemon = try ChildProcess(BuildProducts.program("feedd"), ["--help"])
    let text = try ClientCommand.finish(daemon).output
    expect(text.split(separator: "\n").allSatisfy { $0.count <= 80 })
  }
}
