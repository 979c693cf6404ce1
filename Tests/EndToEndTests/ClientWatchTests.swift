import FeedClient
import FeedSystem
import Glibc
import TestSupport
import Testing

@Suite("feedclient watch")
struct ClientWatchTests {
  private func feed(_ daemon: DaemonProcess, elements: Int = 0) throws -> ClientCommand {
    let client = ClientCommand(daemon)
    try client.succeed("define", "f")
    if elements > 0 {
      let input = (1...elements).map { "{\"id\":\($0),\"text\":\"number \($0)\"}\n" }.joined()
      try client.succeed("push", "f", input: input)
    }
    return client
  }

  @Test func notificationsArePrintedUnchanged() throws {
    let daemon = try DaemonProcess()
    let client = try feed(daemon, elements: 2)
    let watcher = try client.start("watch", "f", "--count", "3")
    try watcher.output.wait(lines: 1)
    try client.succeed("push", "f", "{\"id\":2}")
    try client.succeed("delete", "f", "1")
    let outcome = try ClientCommand.finish(watcher)
    expectEqual(outcome.code, 0)
    expectEqual(outcome.errors, "")
    let expected = #"""
      {"jsonrpc":"2.0","method":"snapshot","params":{"feed":"f","revision":2,"at":[0,0],\#
      "elements":[{"id":1,"text":"number 1"},{"id":2,"text":"number 2"}],"last":true}}
      {"jsonrpc":"2.0","method":"delta","params":{"feed":"f","from":2,"revision":3,\#
      "deleted":[],"added":[],"updated":[[0,1]],"elements":[{"id":2}]}}
      {"jsonrpc":"2.0","method":"delta","params":{"feed":"f","from":3,"revision":4,\#
      "deleted":[[0,0]],"added":[],"updated":[],"elements":[]}}

      """#
    expectEqual(outcome.output, expected)
  }

  @Test func verifyComparesDigestsWithTheDaemon() throws {
    let daemon = try DaemonProcess()
    let client = try feed(daemon, elements: 5000)
    let digest = try require(client.run("verify", "f").json["digest"].string)
    let outcome = try client.run("watch", "f", "--snapshot-only", "--verify")
    expectEqual(outcome.code, 0)
    expectEqual(outcome.errors, "feedclient: verified f at revision 21: digest \(digest)\n")
    expect(outcome.lines.count > 1)
    // Two watchers receive a stream of changes; each compares digests at its end.
    let watchers = try (0..<2).map { _ in try client.start("watch", "f", "--verify", "--count", "20") }
    try daemon.waitForWatcher(of: "f", client, count: 2)
    for id in 1...20 { try client.succeed("push", "f", "{\"id\":\(id)}", "{\"id\":\"new \(id)\"}") }
    for watcher in watchers {
      let outcome = try ClientCommand.finish(watcher)
      expectEqual(outcome.code, 0, "\(outcome.errors)")
      expect(outcome.errors.contains("verified f at revision"))
      expectEqual(outcome.lines.count, 20)
    }
  }

  @Test func waitOptionWaitsForTheDaemonAndTheFeed() throws {
    let directory = try TemporaryDirectory()
    let client = ClientCommand(socket: directory.file("feedd.sock"))
    let watcher = try client.start("watch", "f", "--wait", "--snapshot-only")
    try watcher.errors.wait(for: "waiting for a daemon at \(client.socket)")
    let daemon = try DaemonProcess(directory: directory)
    try watcher.errors.wait(for: "waiting for the feed f")
    // It waits for the list of feeds, and asks for nothing meanwhile.
    try daemon.waitForWatcher(of: "$feeds", client)
    try client.succeed("define", "f")
    let outcome = try ClientCommand.finish(watcher)
    expectEqual(outcome.code, 0)
    expectEqual(outcome.lines.count, 1)
    try expectEqual(daemon.stop(), 0)
  }

  @Test func reconnectOptionRestoresALostConnection() throws {
    let directory = try TemporaryDirectory()
    let first = try DaemonProcess(directory: directory)
    let client = try feed(first, elements: 1)
    let watcher = try client.start("watch", "f", "--reconnect", "--verify", "--count", "3")
    try watcher.output.wait(for: "\"last\":true")
    try expectEqual(first.stop(), 0)
    try watcher.errors.wait(for: "back; reconnecting")
    let second = try DaemonProcess(directory: directory)
    try watcher.errors.wait(for: "waiting for the feed f")
    try client.succeed("define", "f")
    try second.waitForWatcher(of: "f", client)
    try client.succeed("push", "f", "{\"id\":2}")
    let outcome = try ClientCommand.finish(watcher)
    expectEqual(outcome.code, 0)
    let parts = try outcome.lines.map { try JSONValue($0) }.filter { $0["method"].string != "bye" }
    try require(parts.count == 3)
    expect(parts[1]["method"].string == "snapshot" && parts[1]["params"]["elements"] == "[]")
    expectEqual(parts[2]["params"]["added"], "[[0,0]]")
  }

  @Test func sinceFileResumesTheNextRun() throws {
    let daemon = try DaemonProcess()
    let client = try feed(daemon, elements: 3)
    let path = daemon.directory.file("since")
    let first = try client.run("watch", "f", "--since-file", path, "--count", "1")
    expectEqual(first.lines.count, 1)
    let epoch = try require(client.run("ping").json["epoch"].string)
    let position = #"{"feed":"f","epoch":"\#(epoch)","revision":2,"sections":[{"name":"f/all","count":3,"#
    try expect(SmallFile.read(path).text.hasPrefix(position))
    for id in 10...12 { try client.succeed("push", "f", "{\"id\":\(id)}") }
    // One delta contains all missed changes; there is no snapshot.
    let second = try client.run("watch", "f", "--since-file", path, "--count", "1")
    expectEqual(second.lines.count, 1)
    let delta = try second.json
    expectEqual(delta["method"].string, "delta")
    expect(delta["params"]["from"].int == 2 && delta["params"]["revision"].int == 5)
    expectEqual(delta["params"]["elements"], #"[{"id":10},{"id":11},{"id":12}]"#)
    try expectEqual(JSONValue(SmallFile.read(path).text)["revision"].int, 5)
    // A file of another epoch resumes nothing: the watch starts with a snapshot.
    try SmallFile.replace(path, with: Array("{\"epoch\":\"other\",\"revision\":5}".utf8))
    let third = try client.run("watch", "f", "--since-file", path, "--no-initial", "--count", "1")
    try expectEqual(third.json["method"].string, "snapshot")
    // --snapshot-only prints a whole snapshot, whatever the file contains.
    try expectEqual(client.run("watch", "f", "--since-file", path, "--snapshot-only").lines.count, 1)
  }

  @Test func sinceFileKeepsThePositionsOfSeveralFeeds() throws {
    let daemon = try DaemonProcess()
    let client = try feed(daemon, elements: 1)
    try client.succeed("define", "g")
    let path = daemon.directory.file("since")
    try expectEqual(client.run("watch", "f", "g", "--since-file", path, "--snapshot-only").lines.count, 2)
    try client.succeed("push", "f", "{\"id\":5}")
    try client.succeed("push", "g", "{\"id\":6}")
    // A feed without a line starts with a snapshot, the others resume.
    try client.succeed("define", "h")
    let next = try client.run("watch", "f", "g", "h", "--since-file", path, "--count", "1")
    let events = try next.lines.map { line in try JSONValue(line) }
    expectEqual(
      Set(events.map { "\($0["method"].string ?? "") \($0["params"]["feed"].string ?? "")" }),
      ["delta f", "delta g", "snapshot h"])
    let lines = try SmallFile.read(path).text.split(separator: "\n").map { try JSONValue(String($0)) }
    expectEqual(lines.map { $0["feed"].string }, ["f", "g", "h"])
    expectEqual(lines.map { $0["revision"].int }, [4, 5, 6])
    try expectEqual(client.run("watch", "f", "--since-file", path, "--count", "1").code, 2)
  }

  @Test("--print shows the first rows of several feeds in one line") func printedRowsOfSeveralFeeds() throws {
    let daemon = try DaemonProcess()
    let client = try feed(daemon, elements: 2)
    let bar = try client.start(
      "watch", "f", "g", "--wait", "--print", "{id}", "--rows", "2", "--separator", " ", "--count", "2")
    try bar.errors.wait(for: "waiting for the feed g")
    try client.succeed("define", "g")
    // Nothing is printed before the rows of all feeds are known.
    try bar.output.wait(lines: 1)
    try client.succeed("push", "g", "{\"id\":7}")
    try bar.output.wait(lines: 2)
    try client.succeed("delete", "f", "1")
    let outcome = try ClientCommand.finish(bar)
    expectEqual(outcome.output, "1 2\n1 2 7\n2 7\n")
    let lines = try client.run("watch", "g", "f", "--print", "{id}", "--rows", "2", "--snapshot-only")
    expectEqual(lines.output, "7\n2\n")
  }

  @Test func watchEndsWhenItsReaderEnds() throws {
    let daemon = try DaemonProcess()
    let client = try feed(daemon, elements: 1)
    // The feed does not change, so no write fails: the client must notice the closed pipe by itself.
    let quiet = try client.startShell("(\"$0\" watch f; echo \"status $?\" >&2) | head -n 1")
    let outcome = try ClientCommand.finish(quiet)
    expectEqual(outcome.lines.count, 1)
    expectEqual(outcome.errors, "status 0\n")
    let list = try client.startShell("(\"$0\" range f 0 0 1; echo \"status $?\" >&2) | true")
    try expectEqual(ClientCommand.finish(list).errors, "status 0\n")
  }

  /// More is pushed than a queue holds while the watcher is stopped by SIGSTOP; after SIGCONT its copy equals the daemon's.
  @Test func stoppedWatcherCatchesUp() throws {
    let daemon = try DaemonProcess(["--max-queue", "64K"])
    let client = try feed(daemon)
    let watcher = try client.start("watch", "f")
    try watcher.output.wait(for: "\"last\":true")
    watcher.signal(SIGSTOP)
    let text = String(repeating: "t", count: 500)
    for round in 0..<5 {
      let input = (0..<2000).map { "{\"id\":\($0 % 700),\"round\":\(round),\"text\":\"\(text)\($0)\"}\n" }.joined()
      try client.succeed("push", "f", input: input)
    }
    try client.succeed("push", "f", "{\"id\":\"end\"}")
    watcher.signal(SIGCONT)
    try watcher.output.wait(for: "\"id\":\"end\"")
    let begun = watcher.output.text.filter { $0 == "\n" }.count
    if !watcher.output.text.hasSuffix("\n") { try watcher.output.wait(lines: begun + 1) }
    let copy = try LineMirror(feed: "f", sections: ["f/all"], lines: watcher.output.text)
    try expectEqual(client.run("verify", "f").json["digest"].string, copy.mirror.digest)
    expect(copy.lines < 40, "\(copy.lines) notifications of the missed changes")
  }

  @Test func exitStatusIs5AfterAGap() throws {
    let daemon = try ScriptedDaemon()
    let watcher = try ClientCommand(socket: daemon.socketPath).start("watch", "f")
    try daemon.accept()
    try daemon.answer("watch", "{\"feed\":\"f\",\"epoch\":\"e\",\"revision\":4,\"resumed\":false,\"sections\":[]}")
    try daemon.notify("snapshot", "{\"feed\":\"f\",\"revision\":4,\"at\":[0,0],\"elements\":[],\"last\":true}")
    let delta = "\"deleted\":[],\"added\":[],\"updated\":[],\"elements\":[]"
    try daemon.notify("delta", "{\"feed\":\"f\",\"from\":4,\"revision\":5,\(delta)}")
    try daemon.notify("delta", "{\"feed\":\"f\",\"from\":6,\"revision\":7,\(delta)}")
    let outcome = try ClientCommand.finish(watcher)
    expectEqual(outcome.code, 5)
    expectEqual(outcome.lines.count, 2)
    expect(outcome.errors.contains("a delta starts from revision 6, but this copy is at revision 5"))
  }

  /// Starts a watch of a feed with one row, at revision 4.
  private func watch(
    _ daemon: ScriptedDaemon, _ feed: String = "f", _ options: String..., element: String = "1"
  ) throws -> ChildProcess {
    let watcher = try ClientCommand(socket: daemon.socketPath).start(["watch", feed] + options)
    try daemon.accept()
    let sections = #"[{"name":"s","count":1}]"#
    try daemon.answer(
      "watch", #"{"feed":"\#(feed)","epoch":"e","revision":4,"resumed":false,"sections":\#(sections)}"#,
      then: ("snapshot", #"{"feed":"\#(feed)","revision":4,"at":[0,0],"elements":[\#(element)],"last":true}"#))
    return watcher
  }

  @Test func exitStatusIs5AfterADifferentDigest() throws {
    let daemon = try ScriptedDaemon()
    let watcher = try watch(daemon, "f", "--snapshot-only", "--verify")
    try daemon.answer("verify", "{\"revision\":4,\"counts\":[1],\"digest\":\"00000000\"}")
    let outcome = try ClientCommand.finish(watcher)
    expectEqual(outcome.code, 5)
    expect(outcome.errors.contains("and the daemon's is 00000000"))
  }

  /// The end of a feed may come behind the refusal to verify it, for example with a throttle.
  @Test func feedThatIsRemovedBeforeItIsVerifiedIsAwaited() throws {
    let daemon = try ScriptedDaemon()
    let watcher = try watch(daemon, "f", "--reconnect", "--verify")
    try daemon.refuse("verify", "{\"code\":-32000,\"message\":\"unknown feed\",\"data\":{\"feed\":\"f\"}}")
    try daemon.notify(
      "delta",
      "{\"feed\":\"f\",\"from\":4,\"revision\":5,\"deleted\":[],\"added\":[],\"updated\":[],\"elements\":[],"
        + "\"sections\":{\"deleted\":[0],\"added\":[]},\"ended\":true}")
    try watcher.errors.wait(for: "waiting for the feed f")
    watcher.signal(SIGKILL)
  }

  @Test("a reset is announced once, whatever rows of its first part pass a filter") func filteredReset() throws {
    let daemon = try ScriptedDaemon()
    let watcher = try watch(daemon, "$feeds", "--where", "@.p > 1", "--count", "3", element: #"{"feed":"a","p":2}"#)
    let rows = #"[{"feed":"a","p":2},{"feed":"b","p":1},{"feed":"c","p":3}]"#
    let reset = #""last":false,"reset":true,"sections":[{"name":"s","count":4}]"#
    try daemon.notify("snapshot", #"{"feed":"$feeds","revision":9,"at":[0,0],"elements":\#(rows),\#(reset)}"#)
    let rest = #""at":[0,3],"elements":[{"feed":"d","p":4}],"last":true"#
    try daemon.notify("snapshot", #"{"feed":"$feeds","revision":9,\#(rest)}"#)
    let parts = try ClientCommand.finish(watcher).lines.map { try JSONValue($0)["params"] }
    expectEqual(parts.map { $0["at"].text }, ["[0,0]", "[0,0]", "[0,2]", "[0,3]"])
    expectEqual(parts.map { $0["reset"].text }, ["null", "true", "null", "null"])
    expectEqual(parts.map { $0["sections"] == "null" }, [true, false, true, true])
  }

  @Test("a display of rows takes parts that span sections; printed parts lie within sections") func manySections()
    throws
  {
    let client = ClientCommand(try DaemonProcess())
    let definition = "{\"feed\":\"f\",\"kind\":\"collection\",\"section\":\"$.s\"}"
    try client.succeed("call", "define", definition)
    let count = 3000
    let elements = (0..<count).map { "{\"id\":\($0),\"s\":\(10_000 + $0)}" }
    try client.succeed("push", "f", input: elements.joined(separator: "\n"))
    let digest = try require(client.run("verify", "f").json["digest"].string)
    let shown = try client.run("watch", "f", "--print", "{id}", "--rows", "\(count)", "--snapshot-only", "--verify")
    expectEqual(shown.lines, (0..<count).map(String.init))
    expect(shown.errors.contains("digest \(digest)\n"))
    let printed = try client.run("watch", "f", "--snapshot-only")
    expectEqual(printed.lines.count, count)
    expectEqual(printed.lines.last?.contains("\"at\":[\(count - 1),0],\"elements\":[\(elements[count - 1])]"), true)
    let named = (0..<count).map { "f/\(10_000 + $0)" }
    let copy = try LineMirror(
      feed: "f", sections: named.map { SectionSummary(name: $0, count: 1) },
      revision: UInt64(client.revision(of: "f")), lines: printed.output)
    expectEqual(copy.mirror.digest, digest)
    try expectEqual(client.run("export", "f").lines.suffix(count), elements[...])
  }

  /// A daemon of an older version ignores `spanning`.
  @Test func partsWithinSectionsAreAccepted() throws {
    let daemon = try ScriptedDaemon()
    let watcher = try ClientCommand(socket: daemon.socketPath).start(
      "watch", "f", "--print", "{id}", "--rows", "3", "--snapshot-only")
    try daemon.accept()
    let sections = #"[{"name":"a","count":2},{"name":"b","count":0},{"name":"c","count":1}]"#
    let start = #"{"feed":"f","epoch":"e","revision":4,"resumed":false,"sections":\#(sections)}"#
    try expect(daemon.answer("watch", start).contains("\"spanning\":true"))
    try daemon.notify("snapshot", #"{"feed":"f","revision":4,"at":[0,0],"elements":[{"id":1},{"id":2}],"last":false}"#)
    try daemon.notify("snapshot", #"{"feed":"f","revision":4,"at":[2,0],"elements":[{"id":3}],"last":true}"#)
    let outcome = try ClientCommand.finish(watcher)
    expectEqual(outcome.code, 0)
    expectEqual(outcome.lines, ["1", "2", "3"])
  }

  /// The second part repeats a row, is at no row, leaves out a row, or has more rows than the section.
  @Test(
    arguments: [["watch", "f", "--print", "{id}", "--snapshot-only"], ["export", "f"]],
    [("[2,0]", "[2,3]"), ("[0,2]", "[3]"), ("[1,0]", "[3]"), ("[2,2]", "[]"), ("[2,1]", "[3,4]")])
  func exitStatusIs5AfterAMisplacedPart(arguments: [String], second: (at: String, elements: String)) throws {
    let daemon = try ScriptedDaemon()
    let client = try ClientCommand(socket: daemon.socketPath).start(arguments)
    try daemon.accept()
    if arguments[0] == "export" {
      try daemon.answer("feeds", #"{"feeds":[{"feed":"f","kind":"array","revision":1}]}"#)
      try daemon.accept()
    }
    let sections = #"[{"name":"a","count":1},{"name":"b","count":0},{"name":"c","count":2}]"#
    try daemon.answer(
      "watch", #"{"feed":"f","epoch":"e","revision":4,"resumed":false,"sections":\#(sections)}"#,
      then: ("snapshot", #"{"feed":"f","revision":4,"at":[0,0],"elements":[1,2],"last":false}"#))
    try daemon.notify(
      "snapshot", #"{"feed":"f","revision":4,"at":\#(second.at),"elements":\#(second.elements),"last":true}"#)
    let outcome = try ClientCommand.finish(client)
    expectEqual(outcome.code, 5)
    expect(outcome.errors.contains("snapshot"), "\(outcome.errors)")
  }

  @Test func watchEndsWhenItsFeedIsUndefined() throws {
    let daemon = try DaemonProcess()
    let client = try feed(daemon, elements: 1)
    let watcher = try client.start("watch", "f")
    try watcher.output.wait(lines: 1)
    try client.succeed("undefine", "f")
    let outcome = try ClientCommand.finish(watcher)
    expectEqual(outcome.code, 1)
    expect(outcome.errors.contains("was undefined"))
  }

  @Test("a watch whose last wanted change removes its feed has succeeded") func countedEnd() throws {
    let daemon = try DaemonProcess()
    let client = try feed(daemon, elements: 1)
    let watcher = try client.start("watch", "f", "--count", "2")
    try watcher.output.wait(lines: 1)
    try client.succeed("undefine", "f")
    let outcome = try ClientCommand.finish(watcher)
    expectEqual(outcome.code, 0)
    expectEqual(outcome.errors, "")
    try expectEqual(JSONValue(outcome.lines.last)["params"]["ended"].bool, true)
  }

  @Test("--print shows the first rows as text after every change") func printedRows() throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("define", "f", "--sort", "all=$.p:desc")
    let bar = try client.start("watch", "f", "--print", "{t|-}", "--rows", "2", "--separator", " | ", "--count", "3")
    try bar.output.wait(lines: 1)
    try client.succeed("push", "f", "{\"id\":1,\"p\":1,\"t\":\"one\"}", "{\"id\":2,\"p\":2}")
    try bar.output.wait(lines: 2)
    try client.succeed("push", "f", "{\"id\":3,\"p\":3,\"t\":\"three\"}")
    try expectEqual(ClientCommand.finish(bar).output, "\n- | one\nthree | -\n")
    let lines = try client.run("watch", "f", "--print", "{t|-:>6}", "--rows", "4", "--snapshot-only")
    expectEqual(lines.output, " three\n     -\n   one\n")
    try client.succeed("define", "empty")
    // A bar needs a line to become empty.
    try expectEqual(client.run("watch", "empty", "--print", "{t}", "--snapshot-only").output, "\n")
    try expectEqual(client.run("watch", "empty", "--print", "{t}", "--rows", "2", "--snapshot-only").output, "")
    try expectEqual(client.run("watch", "f", "--print", "{t}", "--snapshot-only").output, "three\n")
    try expectEqual(
      client.run("watch", "f", "--template", "{t}", "--snapshot-only").output, "  [0,0] three\n  [0,1] \n  [0,2] one\n")
    try expectEqual(
      client.run("range", "f", "all", "0", "9", "--template", "{id}={t|none}").lines,
      [
        "3=three", "2=none", "1=one",
      ])
    try expectEqual(client.run("query", "f", "$[0]", "--template", "{{{id}}}").lines, ["{3}"])
  }

  @Test("--counts prints the numbers of rows, as JSON in a pipe") func counts() throws {
    let daemon = try DaemonProcess()
    let client = try feed(daemon, elements: 2)
    for options in [["--json"], []] {
      let words = ["watch", "f", "--counts", "--snapshot-only"] + options
      let counts = try ClientCommand.finish(client.start(words))
      expectEqual(
        counts.output,
        "{\"feed\":\"f\",\"revision\":\(try client.revision(of: "f")),\"sections\":[{\"name\":\"f/all\",\"count\":2}]}\n"
      )
    }
  }

  @Test("--counts follows changes and asks for no elements") func countsFollowChanges() throws {
    let daemon = try DaemonProcess()
    let client = try feed(daemon, elements: 2)
    let counts = try client.start("watch", "f", "--counts", "--count", "3")
    try counts.output.wait(lines: 1)
    try client.succeed("push", "f", "{\"id\":\"x\"}", "{\"id\":\"y\"}")
    try counts.output.wait(lines: 2)
    try client.succeed("delete", "f", "x")
    let lines = try ClientCommand.finish(counts).lines.map { try JSONValue($0) }
    expectEqual(lines.map { $0["sections"].elements.map { $0["count"].int } }, [[2], [4], [3]])
  }

  @Test("other messages do not extend the deadline of a request") func endlessNotifications() throws {
    let daemon = try ScriptedDaemon()
    let ping = try ClientCommand(socket: daemon.socketPath).start("ping", "--timeout", "300ms")
    try daemon.accept()
    var sent = 0
    while sent < 20_000_000 {
      do { try daemon.notify("bookmark", "{\"feed\":\"f\"}") } catch { break }
      sent += 1
    }
    try expectEqual(ping.waitForExit(), 4)
  }
}
