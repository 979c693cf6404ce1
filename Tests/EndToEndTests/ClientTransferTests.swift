import FeedSystem
import TestSupport
import Testing

@Suite("feedclient export, import and restore")
struct ClientTransferTests {
  private func fill(_ client: ClientCommand) throws {
    try client.succeed("define", "inbox", "--bin", "urgent=@.p > 5", "--sort", "urgent=$.p:desc", "--bin", "all")
    try client.succeed("define", "list", "--kind", "array")
    try client.succeed("define", "a", "--kind", "composed", "--child", "inbox/urgent", "--child", "list")
    let elements = ["{\"id\":1,\"p\":9}", "{\"id\":2,\"p\":1}", "{\"id\":3,\"p\":9}", "{\"id\":0,\"p\":7}"]
    try expectEqual(ClientCommand.finish(client.start(["push", "inbox"] + elements)).code, 0)
    try client.succeed("push", "list", "[1,2]", "null", "\"x\"")
  }

  @Test("export writes children before their providers, and import restores all feeds") func roundTrip() throws {
    let client = ClientCommand(try DaemonProcess())
    try fill(client)
    let all = try client.run("export", "a")
    expectEqual(all.code, 0)
    expectEqual(
      all.lines,
      [
        """
        {"feed":"inbox","kind":"collection","id":"$.id","exclusive":false,"bins":[{"name":"urgent","filter":"@.p > 5",\
        "sort":[{"by":"$.p","order":"descending"}]},{"name":"all"}],"count":4,"following":2}
        """,
        "{\"id\":1,\"p\":9}", "{\"id\":2,\"p\":1}", "{\"id\":3,\"p\":9}", "{\"id\":0,\"p\":7}",
        "{\"feed\":\"list\",\"kind\":\"array\",\"count\":3,\"following\":1}", "[1,2]", "null", "\"x\"",
        "{\"feed\":\"a\",\"kind\":\"composed\",\"children\":[\"inbox/urgent\",\"list\"]}",
      ])
    let other = ClientCommand(try DaemonProcess())
    let imported = try other.run("import", input: all.output)
    expectEqual(imported.output, "{\"feeds\":3,\"elements\":7,\"refused\":0}\n")
    try expectEqual(other.run("export", "--all").output, client.run("export", "--all").output)
    try expectEqual(other.run("range", "a", "0", "0", "9").output, client.run("range", "a", "0", "0", "9").output)
  }

  @Test(
    "an export from a hostile daemon fails with an error",
    arguments: [
      (#""sections":[{"name":"a","count":9223372036854775807},{"name":"b","count":9223372036854775807}]"#, "[0,0]"),
      (#""sections":[{"name":"a","count":1}]"#, "[-1,0]"), (#""sections":[{"name":"a","count":1}]"#, "[0,-1]"),
      (#""sections":[{"name":"a","count":1}]"#, "[0,9223372036854775807]"),
    ]) func hostileDaemon(sections: String, at: String) throws
  {
    let daemon = try ScriptedDaemon()
    let export = try ClientCommand(socket: daemon.socketPath).start("export", "f")
    try daemon.accept()
    try daemon.answer("feeds", #"{"feeds":[{"feed":"f","kind":"array","revision":1}]}"#)
    // The elements are read over another connection.
    try daemon.accept()
    try daemon.answer(
      "watch", #"{"feed":"f","epoch":"e","revision":4,"resumed":false,\#(sections)}"#,
      then: ("snapshot", #"{"feed":"f","revision":4,"at":\#(at),"elements":[1],"last":true}"#))
    let outcome = try ClientCommand.finish(export)
    expectEqual(outcome.code, 3)
    expect(outcome.errors.hasPrefix("feedclient: the daemon does not speak this protocol: "))
  }

  /// Begins an export of two feeds, whose copies have revision 4, with a time limit.
  private func export(from daemon: ScriptedDaemon) throws -> ChildProcess {
    let export = try ClientCommand(socket: daemon.socketPath).start("export", "--timeout", "0.5", "--all")
    try daemon.accept()
    let feeds = ["f", "g"].map { #"{"feed":"\#($0)","kind":"array","revision":1}"# }.joined(separator: ",")
    try daemon.answer("feeds", "{\"feeds\":[\(feeds)]}")
    for feed in ["f", "g"] {
      try daemon.answer(
        "watch",
        #"{"feed":"\#(feed)","epoch":"e","revision":4,"resumed":false,"sections":[{"name":"\#(feed)","count":1}]}"#,
        then: ("snapshot", #"{"feed":"\#(feed)","revision":4,"at":[0,0],"elements":[1],"last":true}"#))
    }
    return export
  }

  private func expectTimeout(_ export: ChildProcess) throws {
    let outcome = try ClientCommand.finish(export)
    expectEqual(outcome.code, 4)
    expect(outcome.output.isEmpty)
    expectEqual(outcome.errors, "feedclient: timed out after 500 ms; give a longer --timeout, or export fewer feeds\n")
  }

  @Test("an export ends if the daemon's revision stays behind its feeds") func revisionThatStaysBehind() throws {
    let daemon = try ScriptedDaemon()
    let export = try export(from: daemon)
    // The export asks again and again until its time is over.
    while (try? daemon.answer("sync", #"{"revision":3}"#)) != nil {}
    try expectTimeout(export)
  }

  @Test("an export ends if the daemon sends much and does not answer") func syncWithoutAnswer() throws {
    let daemon = try ScriptedDaemon()
    let export = try export(from: daemon)
    while (try? daemon.notify("bookmark", #"{"feed":"h"}"#)) != nil {}
    try expectTimeout(export)
  }

  @Test("an array with identity is changed, exported and imported by identity") func identities() throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("define", "queue", "--kind", "array", "--id", "$.id", "--retain-until", "$.x")
    try client.succeed("define", "top", "--kind", "view", "--of", "queue", "--limit", "2")
    try client.succeed("push", "queue", "{\"id\":1}", "{\"id\":\"b\"}", "{\"id\":3,\"v\":1}")
    try client.succeed("push", "queue", input: "{\"id\":1,\"v\":2}\n")
    try client.succeed("move", "queue", "--id", "b", "0")
    try client.succeed("patch", "queue", "3", "{\"v\":7}")
    try client.succeed("delete", "queue", "1", "nobody")
    try expectEqual(client.run("insert", "queue", "{\"id\":3}").code, 1)
    try expectEqual(client.run("move", "queue", "--id", "9", "0").code, 1)
    try expectEqual(client.run("move", "queue", "1").code, 2)
    let export = try client.run("export", "top").lines
    expectEqual(
      export,
      [
        #"{"feed":"queue","kind":"array","id":"$.id","retain":{"until":"$.x"},"count":2,"following":1}"#,
        #"{"id":"b"}"#,
        #"{"id":3,"v":7}"#, #"{"feed":"top","kind":"view","of":"queue","limit":2}"#,
      ])
    let other = ClientCommand(try DaemonProcess())
    let text = export.joined(separator: "\n")
    try other.succeed("import", input: text)
    try other.succeed("import", "--merge", input: text)
    try expectEqual(other.run("export", "--all").lines, export)
  }

  @Test("a feed with elements is replaced or merged only if asked") func existingFeeds() throws {
    let daemon = try DaemonProcess()
    let client = ClientCommand(daemon)
    try client.succeed("push", "f", "--define", "{\"id\":1}")
    let export = try client.run("export", "f").output
    try client.succeed("push", "f", "{\"id\":2}")
    let refused = try client.run("import", "-", input: export)
    expectEqual(refused.code, 1)
    expectEqual(refused.errors, "feedclient: 'f' has 2 elements; give --replace to remove or --merge to keep them\n")
    try client.succeed("import", "--merge", input: export)
    try expectEqual(client.run("range", "f", "0", "0", "9").lines, ["{\"id\":1}", "{\"id\":2}"])
    let watcher = try client.start("watch", "f", "--no-initial", "--count", "1")
    try daemon.waitForWatcher(of: "f", client)
    try client.succeed("import", "--replace", "--animation", "fade", input: export)
    try expectEqual(ClientCommand.finish(watcher).json["params"]["animation"].string, "fade")
    try expectEqual(client.run("range", "f", "0", "0", "9").lines, ["{\"id\":1}"])
  }

  @Test("a feed whose removed rows do not fit a frame is emptied in several requests") func largeReplacement() throws {
    let client = ClientCommand(try DaemonProcess(["--max-frame", "4096", "--max-element-bytes", "1024"]))
    let input = (0..<600).map { "{\"k\":{\"id\":\($0)}}\n" }.joined()
    try client.succeed("define", "c", "--id", "$['k'].id", "--bin", "b=@.k.id != 7")
    try client.succeed("define", "a", "--kind", "array")
    for feed in ["c", "a"] {
      try client.succeed("push", feed, input: input)
      let heading = try client.run("export", feed).lines[0].split(separator: ",\"count\":")[0]
      let replaced = try client.run("import", "--replace", input: "\(heading),\"count\":1}\n{\"k\":{\"id\":8}}\n")
      expectEqual(replaced.code, 0, "\(replaced.errors)")
      try expectEqual(client.run("snapshot", feed, "--template", "{}").lines, ["{\"k\": {\"id\": 8}}"])
    }
    try expectEqual(client.run("stats").json["elements"].int, 2)
  }

  @Test(
    "an export that is not whole is refused before the first change",
    arguments: [
      ("", "the file is empty; feedclient export writes a line for each feed"),
      (#"{"id":1}"#, "line 1: expected the definition of a feed, as feedclient export writes it"),
      (
        #"{"feed":"f","kind":"array","count":2,"following":1}"# + "\n1",
        "the file ends early: 'f', defined in line 1, lacks 1 element"
      ),
      (
        #"{"feed":"f","kind":"array","count":1,"following":2}"# + "\n1",
        "the file ends early: 2 feeds should follow 'f', defined in line 1"
      ),
      (
        #"{"feed":"f","kind":"array","count":0,"following":2}"# + "\n" + #"{"feed":"g","kind":"array","count":0}"#,
        "line 2: \"following\" is 0, not 1: a part of the file is missing"
      ),
      (#"{"feed":"f","kind":"array","count":-1}"#, "line 1: \"count\" must be a number from 0"),
      (#"{"feed":"f","kind":"array","count":1}"# + "\n1]", "line 2, column 2: not JSON: expected a value"),
      (
        #"{"feed":"f","kind":"array","count":1}"# + "\n[\(String(repeating: "1,", count: 2000))1]",
        "line 2, column 1: the element is longer than the daemon's frames allow"
      ),
      (
        #"{"feed":"f","kind":"array","count":2}"#
          + "\n1\n\(String(repeating: "[", count: 510))\(String(repeating: "]", count: 510))",
        "line 3, column 1: the element nests deeper than 509 levels"
      ),
    ])
  func malformedExports(text: String, message: String) throws {
    let client = ClientCommand(try DaemonProcess(["--max-frame", "4096", "--max-element-bytes", "1024"]))
    let directory = try TemporaryDirectory()
    let file = directory.file("export")
    try SmallFile.replace(file, with: Array(text.utf8))
    // From a pipe and from a file.
    for refused in [try client.run("import", input: text), try client.run("import", file)] {
      expectEqual(refused.code, 2)
      expectEqual(refused.errors, "feedclient: import: \(message)\n")
    }
    try expectEqual(client.run("feeds").lines, [])
  }

  @Test("a directory and a missing place for the copy are errors that name them") func unreadableInputs() throws {
    let directory = try TemporaryDirectory()
    var client = ClientCommand(try DaemonProcess())
    let folder = try client.run("import", directory.path)
    expectEqual(folder.code, 2)
    expectEqual(folder.errors, "feedclient: cannot read \(directory.path): is a directory; pass a file\n")
    let input = try ClientCommand.finish(client.startShell("$0 import < \(directory.path)"))
    expectEqual(input.code, 2)
    expectEqual(input.errors, "feedclient: cannot read standard input: is a directory; pass a file\n")
    client.environment["TMPDIR"] = directory.file("absent")
    let pipe = try client.run("import", input: "{}")
    expectEqual(pipe.code, 2)
    expectEqual(
      pipe.errors, "feedclient: cannot create a file in \(directory.file("absent")): no such file or directory\n")
  }

  @Test("a feed with elements is found before the first change") func fullFeedChangesNothing() throws {
    let client = ClientCommand(try DaemonProcess())
    try client.succeed("push", "g", "--define", "{\"id\":1}")
    let text =
      #"{"feed":"f","kind":"array","count":1,"following":1}"# + "\n1\n" + #"{"feed":"g","kind":"collection","count":0}"#
    let refused = try client.run("import", input: text)
    expectEqual(refused.code, 1)
    expectEqual(refused.errors, "feedclient: 'g' has 1 element; give --replace to remove or --merge to keep them\n")
    try expectEqual(client.run("describe", "f").code, 1)
    try client.succeed("import", "--merge", input: text + "\n" + text)
    try expectEqual(client.run("range", "f", "0", "0", "9").lines, ["1", "1"])
  }

  @Test("a refused definition changes nothing") func refusedDefinitionChangesNothing() throws {
    let client = ClientCommand(try DaemonProcess())
    let text =
      #"{"feed":"f","kind":"array","count":1,"following":1}"# + "\n1\n"
      + #"{"feed":"v","kind":"view","of":"f","filtre":1}"#
    let refused = try client.run("import", input: text)
    expectEqual(refused.code, 1)
    expect(refused.errors.hasPrefix("feedclient: line 3: filtre is an unknown member"), "\(refused.errors)")
    try expectEqual(client.run("feeds").output, "")
    let list = try client.run("export", "$feeds")
    expect(list.code == 2 && list.errors.contains("'$feeds' cannot be exported"), "\(list.errors)")
  }

  @Test("feeds are exported although the list of all sections does not fit a frame") func manySections() throws {
    let client = ClientCommand(try DaemonProcess(["--max-frame", "4096", "--max-element-bytes", "1024"]))
    for feed in ["a", "b"] {
      try client.succeed("define", feed, "--section", "$.id")
      let rows = (100..<140).map { "{\"id\":\($0)}" }
      try client.succeed("push", feed, input: rows.joined(separator: "\n"))
    }
    try client.succeed("define", "home", "--kind", "composed", "--child", "b")
    try expectEqual(client.run("feeds").code, 1)
    let home = try client.run("export", "home")
    expectEqual(home.lines.count, 42)
    let all = try client.run("export", "--all")
    expectEqual([all.lines.count, Int(all.code)], [83, 0])
    let copy = ClientCommand(try DaemonProcess())
    try copy.succeed("import", input: all.output)
    try expectEqual(copy.run("export", "--all").output, all.output)
  }

  @Test("definitions that are too long for one request are sent one after another") func longDefinitions() throws {
    let client = ClientCommand(try DaemonProcess(["--max-frame", "4096", "--max-element-bytes", "1024"]))
    let filter = Array(repeating: "@.a", count: 100).joined(separator: " || ")
    let names = (0..<10).map { "f\($0)" }
    let lines = names.enumerated().flatMap { number, name in
      let bins = "\"bins\":[{\"name\":\"all\",\"filter\":\"\(filter)\"}]"
      let following = number < 9 ? ",\"following\":\(9 - number)" : ""
      return ["{\"feed\":\"\(name)\",\"kind\":\"collection\",\(bins),\"count\":1\(following)}", "{\"id\":1,\"a\":1}"]
    }
    let imported = try client.run("import", input: lines.joined(separator: "\n"))
    expectEqual(imported.output, "{\"feeds\":10,\"elements\":10,\"refused\":0}\n")
    for name in names { try expectEqual(client.run("describe", name).json["count"].int, 1) }
  }

  @Test("a large single is queried like a small one") func largeSingle() throws {
    let client = ClientCommand(try DaemonProcess(["--max-query-bytes", "4K"]))
    try client.succeed("define", "one", "--kind", "single")
    for length in [10, 5000] {
      let text = String(repeating: "x", count: length)
      try client.succeed("push", "one", "{\"n\":1,\"text\":\"\(text)\"}")
      try expectEqual(client.run("query", "one", "$.n").lines, ["1"], "\(length)")
      try expectEqual(client.run("query", "one", "$.n", "--places").lines, [#"{"at":[0,0],"node":1}"#], "\(length)")
      try expect(client.run("query", "one", "$[0].n").lines.isEmpty, "\(length)")
    }
    try expectEqual(client.run("query", "one", "$", "--places", "--template", "{n}").code, 2)
    try expectEqual(client.run("patch", "one", "[1]").code, 2)
  }

  @Test("an array that only set changes is imported, and is the same after that") func protectedArray() throws {
    let (source, target) = (ClientCommand(try DaemonProcess()), ClientCommand(try DaemonProcess()))
    try source.succeed("define", "l", "--kind", "array", "--no-edit")
    try source.succeed("set", "l", "1", "2")
    let export = try source.run("export", "l").output
    let directory = try TemporaryDirectory()
    try SmallFile.replace(directory.file("export"), with: Array(export.utf8))
    for (options, rows) in [([], ["1", "2"]), (["--replace"], ["1", "2"]), (["--merge"], ["1", "2", "1", "2"])] {
      let imported = try ClientCommand.finish(target.start(["import", directory.file("export")] + options))
      expectEqual(imported.errors, "")
      expectEqual(imported.output, "{\"feeds\":1,\"elements\":2,\"refused\":0}\n")
      try expectEqual(target.run("query", "l", "$[*]").lines, rows)
      try expectEqual(target.run("push", "l", "3").code, 1)
    }
    try target.succeed("import", "--replace", directory.file("export"))
    try expectEqual(target.run("export", "l").output, export)
  }

  @Test("an import that loses its daemon says what was acknowledged") func interruptedImport() throws {
    let directory = try TemporaryDirectory()
    let heading = #"{"feed":"f","kind":"array","count":1}"#
    try SmallFile.replace(directory.file("export"), with: Array("\(heading)\n1\n".utf8))
    let daemon = try ScriptedDaemon()
    let importing = try ClientCommand(socket: daemon.socketPath).start("import", directory.file("export"))
    try daemon.accept()
    let empty = #"{"feed":"f","kind":"array","count":0}"#
    try daemon.answer("describe", empty)
    try daemon.answer("transaction", #"{"revision":1,"results":[]}"#)
    try daemon.answer("describe", empty)
    daemon.hangUp()
    let outcome = try ClientCommand.finish(importing)
    expectEqual(outcome.code, 3)
    expectEqual(
      outcome.errors.split(separator: "\n").first,
      "feedclient: the import is not complete: 0 elements acknowledged; repeat it with --replace")
  }

  @Test("a managed feed that is named cannot be exported") func namedManagedFeed() throws {
    let daemon = try ScriptedDaemon()
    let export = try ClientCommand(socket: daemon.socketPath).start("export", "m")
    try daemon.accept()
    try daemon.answer("feeds", #"{"feeds":[{"feed":"m","kind":"managed","revision":1}]}"#)
    let outcome = try ClientCommand.finish(export)
    expectEqual(outcome.code, 2)
    expectEqual(
      outcome.errors,
      "feedclient: export: 'm' cannot be exported: only the daemon's configuration can define a managed feed\n")
  }

  @Test("an export that cannot be written ends with 2") func unwritableOutput() throws {
    let client = ClientCommand(try DaemonProcess())
    let lines = (0..<20_000).map { "{\"id\":\($0),\"text\":\"some text of an element\"}" }
    try client.succeed("push", "f", "--define", input: lines.joined(separator: "\n"))
    try expectEqual(client.run("export").code, 2)
    try expectEqual(client.run("export", "nowhere").code, 1)
    let shell = { (command: String) in
      try ClientCommand.finish(
        ChildProcess(
          "/bin/sh",
          ["-c", "\(command)", "sh", BuildProducts.program("feedclient"), client.socket]))
    }
    let full = try shell("\"$1\" --socket \"$2\" export f > /dev/full")
    expectEqual(full.code, 2)
    expectEqual(full.errors, "feedclient: cannot write to standard output: no space left on device\n")
    let closed = try shell("{ \"$1\" --socket \"$2\" export f; echo $? >&2; } | head -n 1 > /dev/null")
    expectEqual(closed.errors, "feedclient: the export is not complete: its reader has closed the pipe\n2\n")
  }

  @Test("feeds larger than a frame are exported, imported and queried") func largeFeeds() throws {
    let options = ["--max-frame", "64K", "--max-element-bytes", "60K"]
    let client = ClientCommand(try DaemonProcess(options))
    let text = String(repeating: "x", count: 500)
    let lines = (0..<400).map { "{\"id\":\($0),\"text\":\"\(text)\"}" }
    try client.succeed("push", "--define", "f", input: lines.joined(separator: "\n"))
    let export = try client.run("export", "f")
    expectEqual(Array(export.lines.dropFirst()), lines)
    let other = ClientCommand(try DaemonProcess(options))
    try other.succeed("import", input: export.output)
    try expectEqual(other.run("export", "f").output, export.output)
    try expectEqual(client.run("query", "f", "$[?@.id >= 200]").lines, Array(lines[200...]))
    try expectEqual(client.run("query", "f", "$[::-2]").lines, stride(from: 399, to: 0, by: -2).map { lines[$0] })
    try expectEqual(client.run("query", "f", "$[0:399, 0]").lines, Array(lines.prefix(399)) + [lines[0]])
    func placed(_ rows: [Int]) -> [String] { rows.map { "{\"at\":[0,\($0)],\"node\":\(lines[$0])}" } }
    try expectEqual(client.run("query", "f", "$[?@.id >= 200]", "--places").lines, placed(Array(200..<400)))
    try expectEqual(
      client.run("query", "f", "$[::-2]", "--places").lines, placed(Array(stride(from: 399, to: 0, by: -2))))
    try expectEqual(client.run("query", "f", "$[0:399, 0]", "--places").lines, placed(Array(0..<399) + [0]))
    let whole = try client.run("query", "f", "$", "--places").lines
    expectEqual(whole, ["{\"at\":null,\"node\":[\(lines.joined(separator: ","))]}"])
  }

  @Test("a backup is restored into the directory of a stopped daemon") func restore() throws {
    let directory = try TemporaryDirectory()
    let (state, file) = (directory.file("state"), directory.file("backup"))
    let daemon = try DaemonProcess(["--state", state], directory: directory)
    let client = ClientCommand(daemon)
    try client.succeed("push", "f", "--define", "{\"id\":1}")
    try client.succeed("backup", file)
    try client.succeed("push", "f", "{\"id\":2}")
    let running = try client.run("restore", file, "--state", state, "--replace")
    expectEqual(running.code, 2)
    expect(running.errors.hasSuffix("; stop the daemon first\n"))
    try daemon.stop()
    try expect(client.run("restore", file, "--state", state).errors.hasSuffix("; give --replace to replace it\n"))
    try client.succeed("restore", file, "--state", state, "--replace")
    let again = ClientCommand(try DaemonProcess(["--state", state], directory: directory))
    try expectEqual(again.run("range", "f", "0", "0", "9").lines, ["{\"id\":1}"])
    try expectEqual(client.run("restore", "/proc/version", "--state", directory.file("other")).code, 2)
  }
}
