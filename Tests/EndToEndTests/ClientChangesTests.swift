import FeedSystem
import Glibc
import TestSupport
import Testing

/// What `feedclient watch` prints of changes: signs, filters, resets, and the positions that it saves.
@Suite("feedclient watch: changes") struct ClientChangesTests {
  private func list(_ daemon: DaemonProcess, _ definition: String..., ids: [String] = ["a", "b", "c"]) throws
    -> ClientCommand
  {
    let client = ClientCommand(daemon)
    let define = try ClientCommand.finish(client.start(["define", "f"] + definition))
    expectEqual(define.code, 0, "\(define.errors)")
    for id in ids { try client.succeed("push", "f", "{\"id\":\"\(id)\",\"p\":1}") }
    return client
  }

  /// Starts a watch, waits until it follows the feed, makes changes, and returns the lines of `count` of them.
  private func lines(
    _ client: ClientCommand, _ daemon: DaemonProcess, _ options: String..., count: Int, _ changes: [[String]]
  ) throws -> [String] {
    let watcher = try client.start(["watch", "f", "--count", "\(count)"] + options)
    try daemon.waitForWatcher(of: "f", client)
    for words in changes { try expectEqual(ClientCommand.finish(client.start(words)).code, 0, "\(words)") }
    let outcome = try ClientCommand.finish(watcher)
    expectEqual(outcome.code, 0, "\(outcome.errors)")
    return outcome.lines
  }

  @Test("a moved row has a sign of its own and says from where", arguments: [[], ["--no-initial"]])
  func moves(options: [String]) throws {
    let daemon = try DaemonProcess()
    let client = try list(daemon, "--kind", "array", "--id", "$.id")
    let watcher = try client.start(
      ["watch", "f", "--template", "{id} {p|gone}", "--count", options.isEmpty ? "5" : "4"] + options)
    try daemon.waitForWatcher(of: "f", client)
    for words in [
      ["move", "f", "2", "0"], ["push", "f", "{\"id\":\"b\",\"p\":2}"], ["delete", "f", "a"],
      ["insert", "f", "--at", "1", "{\"id\":\"d\",\"p\":3}"],
    ] { try expectEqual(ClientCommand.finish(client.start(words)).code, 0) }
    let lines = try ClientCommand.finish(watcher).lines
    let initial = options.isEmpty ? ["  [0,0] a 1", "  [0,1] b 1", "  [0,2] c 1"] : []
    expectEqual(lines, initial + ["> [0,2]->[0,0] c 1", "~ [0,2] b 2", "- [0,1] a gone", "+ [0,1] d 3"])
  }

  @Test("a row that moves because its element changed has the sign of both") func movedAndUpdated() throws {
    let daemon = try DaemonProcess()
    let client = try list(
      daemon, "--bin", "hi=@.p > 5", "--bin", "rest", "--exclusive", "--sort", "hi=$.p:desc", "--sort", "rest=$.p:desc")
    let shown = try lines(
      client, daemon, "--template", "{id} {p}", "--no-initial", count: 3,
      [
        ["push", "f", "{\"id\":\"c\",\"p\":2}"], ["push", "f", "{\"id\":\"b\",\"p\":9}"],
        ["patch", "f", "b", "{\"p\":8}"],
      ])
    expectEqual(shown, [">~ [1,2]->[1,0] c 2", ">~ [1,2]->[0,0] b 9", "~ [0,0] b 8"])
  }

  /// Such a row is not paired in the protocol, and its section is not in `deleted`.
  @Test("a row that leaves a section that ends with it is not deleted and added") func movesOutOfEndingSections() throws
  {
    let daemon = try DaemonProcess()
    let client = ClientCommand(daemon)
    try client.succeed("define", #"{"feed":"f","kind":"collection","section":"$.s"}"#)
    try client.succeed("push", "f", #"{"id":1,"s":"a"}"#, #"{"id":2,"s":"b"}"#)
    let shown = try lines(
      client, daemon, "--template", "{id}{s|}", count: 3,
      [["push", "f", #"{"id":1,"s":"b"}"#], ["delete", "f", "1", "2"]])
    expectEqual(shown, ["  [0,0] 1a", "  [1,0] 2b", ">~ [0,0]->[0,1] 1b", "- [0,0] 2", "- [0,1] 1"])
  }

  @Test("--only and --where let through what a script wants, at its true place") func filters() throws {
    let changes = [
      ["push", "f", "{\"id\":\"x\",\"p\":9}", "{\"id\":\"y\",\"p\":1}", "{\"id\":\"z\",\"p\":8}"],
      ["push", "f", "{\"id\":\"a\",\"p\":7}", "{\"id\":\"y\",\"p\":2}"], ["move", "f", "4", "0"],
      ["delete", "f", "z"], ["delete", "f", "y"],
    ]
    func shown(_ options: String..., count: Int) throws -> [String] {
      let daemon = try DaemonProcess()
      let client = try list(daemon, "--kind", "array", "--id", "$.id")
      let watcher = try client.start(["watch", "f", "--count", "\(count)"] + options)
      try daemon.waitForWatcher(of: "f", client)
      for words in changes { try expectEqual(ClientCommand.finish(client.start(words)).code, 0, "\(words)") }
      // The end of the changes, if the count is not reached.
      try client.succeed("undefine", "f")
      return try ClientCommand.finish(watcher).lines
    }
    let template = "{id} {p|}"
    try expectEqual(
      shown("--template", template, "--only", "added", "--where", "@.p > 5", count: 1), ["+ [0,3] x 9", "+ [0,5] z 8"])
    try expectEqual(shown("--template", template, "--only", "moved", count: 1), ["> [0,4]->[0,0] y 2"])
    try expectEqual(
      shown("--template", template, "--only", "updated,deleted", "--where", "@.p > 5", count: 2),
      ["~ [0,0] a 7", "- [0,5] z "])
    let added = #"[{"id":"x","p":9},{"id":"z","p":8}]"#
    let json = try shown("--where", "@.p > 5", count: 4).map { try JSONValue($0)["params"] }
    try require(json.count == 4)
    expect(json[0]["elements"] == "[]" && json[0]["last"] == "true")
    expect(json[1]["added"] == "[[0,3],[0,5]]" && json[1]["elements"].text == added)
    expect(json[2]["updated"] == "[[0,0]]" && json[2]["elements"] == #"[{"id":"a","p":7}]"#)
    expect(json[3]["deleted"] == "[[0,5]]" && json[3]["elements"] == "[]" && !json[3].has("moves"))
    let moves = try shown("--only", "moved,deleted", count: 3).map { try JSONValue($0)["params"] }
    try require(moves.count == 3)
    expect(moves[0]["deleted"] == "[[0,4]]" && moves[0]["added"] == "[[0,0]]" && moves[0]["moves"] == "[[0,0]]")
    expect(moves[1]["deleted"] == "[[0,5]]" && moves[1]["from"].int == moves[0]["revision"].int)
  }

  @Test("a snapshot with --where has a part for each run of rows") func filteredSnapshot() throws {
    let daemon = try DaemonProcess()
    let client = try list(daemon, "--kind", "array", "--id", "$.id", ids: [])
    let elements = [1, 7, 8, 2, 9, 3].map { "{\"id\":\($0),\"p\":\($0)}" }
    try expectEqual(ClientCommand.finish(client.start(["push", "f"] + elements)).code, 0)
    let parts = try client.run("watch", "f", "--where", "@.p > 5", "--snapshot-only").lines.map {
      try JSONValue($0)["params"]
    }
    expectEqual(parts.map { "\($0["at"].text)\($0["last"].text)" }, ["[0,1]false", "[0,4]true"])
    expectEqual(parts.map(\.["elements"].text), [#"[{"id":7,"p":7},{"id":8,"p":8}]"#, #"[{"id":9,"p":9}]"#])
  }

  /// A feed with sections by value, `s/1` of the number and `s/"1"` of the text, and what happens there.
  private func sections(_ daemon: DaemonProcess) throws -> ClientCommand {
    let client = ClientCommand(daemon)
    try client.succeed("define", #"{"feed":"s","kind":"collection","section":"$.k"}"#)
    try client.succeed("push", "s", #"{"id":1,"k":1}"#, #"{"id":2,"k":"1"}"#, #"{"id":3,"k":"1"}"#)
    return client
  }

  private static let passages = [
    ["push", "s", #"{"id":4,"k":"1"}"#, #"{"id":5,"k":1}"#], ["push", "s", #"{"id":1,"k":"1"}"#],
    ["patch", "s", "2", #"{"n":1}"#], ["push", "s", #"{"id":3,"k":1}"#], ["delete", "s", "4", "5"],
  ]

  @Test("a section alone: what comes into it is added, what leaves it is deleted", arguments: [#""1""#, #"s/"1""#])
  func oneSection(word: String) throws {
    let daemon = try DaemonProcess()
    let client = try sections(daemon)
    let lines = try client.start(["watch", "s", "--section", word, "--template", "{id}", "--count", "6"])
    let json = try client.start(["watch", "s", "--section", word, "--no-initial", "--count", "5"])
    try daemon.waitForWatcher(of: "s", client, count: 2)
    for words in Self.passages { try expectEqual(ClientCommand.finish(client.start(words)).code, 0, "\(words)") }
    try expectEqual(
      ClientCommand.finish(lines).lines,
      [
        "  [1,0] 2", "  [1,1] 3", "+ [1,2] 4", "+ [1,3] 1", "~ [1,0] 2", "- [1,1] 3", "- [1,1] 4",
      ])
    let deltas = try ClientCommand.finish(json).lines.map { try JSONValue($0)["params"] }
    try require(deltas.count == 5)
    func lists(_ names: String...) -> [String] {
      deltas.map { delta in names.map { delta[$0].text }.joined(separator: " ") }
    }
    expectEqual(lists("deleted", "deletedIDs"), ["[] []", "[] []", "[] []", "[[1,1]] [3]", "[[1,1]] [4]"])
    expectEqual(lists("added", "updated"), ["[[1,2]] []", "[[1,3]] []", "[] [[1,0]]", "[] []", "[] []"])
    expectEqual(
      lists("elements"), [#"[{"id":4,"k":"1"}]"#, #"[{"id":1,"k":"1"}]"#, #"[{"id":2,"k":"1","n":1}]"#, "[]", "[]"])
    expect(deltas.allSatisfy { !$0.has("moves") })
  }

  @Test("--section with other filters, and words that mean no section or several") func sectionFilters() throws {
    let daemon = try DaemonProcess()
    let client = try sections(daemon)
    let left = try client.start(
      [
        "watch", "s", "--section", #""1""#, "--only", "deleted", "--where", "@.id < 4", "--template", "{id}", "--count",
        "1",
      ])
    try daemon.waitForWatcher(of: "s", client)
    for words in Self.passages { try expectEqual(ClientCommand.finish(client.start(words)).code, 0, "\(words)") }
    try expectEqual(ClientCommand.finish(left).lines, ["- [1,1] 3"])
    try client.succeed("define", "t", "--bin", "x", "--bin", "y")
    try client.succeed("define", "u", "--bin", "x")
    try client.succeed("define", "both", "--kind", "composed", "--child", "t", "--child", "u")
    let ambiguous = try client.run("watch", "both", "--section", "x", "--template", "{id}")
    expectEqual(ambiguous.code, 2)
    expect(ambiguous.errors.contains("section 'x' of 'both' is ambiguous: t/x, u/x; give the whole name"))
    let whole = try client.run("watch", "both", "--section", "t/x", "--snapshot-only")
    expect(whole.code == 0 && whole.errors == "")
    let none = try client.run("watch", "t", "--section", "z", "--snapshot-only")
    expect(none.code == 0 && none.errors == "feedclient: 't' has no section 'z' now\n")
  }

  @Test("sections by value have their key wherever they are listed") func keys() throws {
    let daemon = try DaemonProcess(["--max-frame", "4096", "--max-element-bytes", "1024"])
    let client = try sections(daemon)
    let expected = #"[{"name":"s/1","key":1,"count":1},{"name":"s/\"1\"","key":"1","count":2}]"#
    try expectEqual(client.run("watch", "s", "--counts", "--count", "1").json["sections"].text, expected)
    try expectEqual(
      client.run("watch", "s", "--counts", "--verify", "--count", "1").lines.first.map {
        try JSONValue($0)["sections"].text
      }, expected)
    let state = daemon.directory.file("state")
    let trigger = try client.start(["trigger", "s", "--state", state, "--section", #""1""#, "--initial", "--", "cat"])
    try trigger.output.wait(lines: 2)
    trigger.signal(SIGTERM)
    let changes = try ClientCommand.finish(trigger).lines.map { try JSONValue($0) }
    expectEqual(
      changes.map { "\($0["id"].text) \($0["section"].text) \($0["key"].text)" },
      [
        #"2 "s/\"1\"" "1""#, #"3 "s/\"1\"" "1""#,
      ])
    // A reset lists them as well.
    let path = daemon.directory.file("seen")
    try SmallFile.replace(path, with: Array(#"{"epoch":"other","revision":5}"#.utf8))
    try expectEqual(
      ClientCommand.finish(client.start(["watch", "s", "--since-file", path, "--count", "1"])).lines.first.map {
        try JSONValue($0)["params"]["sections"].text
      }, expected)
    // A feed that does not fit a frame is put together by the client.
    let text = String(repeating: "x", count: 900)
    for id in 1...6 {
      try client.succeed("push", "s", #"{"id":\#(id),"k":\#(id < 3 ? "1" : #""1""#),"t":"\#(text)"}"#)
    }
    try expectEqual(client.run("snapshot", "s").json["sections"].elements.map(\.["key"].text), ["1", #""1""#])
  }

  @Test(
    arguments: [
      (["--only", "added,moves"], "--only 'added,moves': unknown kind 'moves'; did you mean moved?"),
      (["--where", "@.p >"], "--where '@.p >': "),
      (["--counts", "--only", "added"], "exclude --only, --where, --section and --ids"),
      (["--section", "x", "g"], "--section is that of one feed"),
      (["--snapshot-only", "--only", "added"], "--snapshot-only shows no changes"),
    ])
  func wrongFilters(options: [String], error: String) throws {
    let outcome = try ClientCommand.finish(ClientCommand(socket: "/nowhere").start(["watch", "f"] + options))
    expectEqual(outcome.code, 2)
    expect(outcome.errors.contains(error), "\(outcome.errors)")
  }
}

extension ClientChangesTests {
  /// Restarts a daemon without a log, so that it begins a new epoch with other elements.
  private func withNewEpoch(
    _ options: [String], _ elements: [String], _ check: (ClientCommand, DaemonProcess, String) throws -> Void
  ) throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("seen")
    do {
      let daemon = try DaemonProcess(directory: directory)
      let client = try list(daemon, "--bin", "all")
      let first = try ClientCommand.finish(
        client.start(["watch", "f", "--since-file", path, "--count", "1"] + options))
      expectEqual(first.code, 0)
      try expectEqual(daemon.stop(), 0)
    }
    let daemon = try DaemonProcess(directory: directory)
    let client = try list(daemon, "--bin", "all", ids: [])
    try expectEqual(ClientCommand.finish(client.start(["push", "f"] + elements)).code, 0)
    try check(client, daemon, path)
  }

  private static let after = [#"{"id":"b","p":1}"#, #"{"id":"n","p":1}"#, #"{"id":"c","p":2}"#]

  @Test("after a new epoch, lines say so and tell what is new", arguments: [[], ["--no-initial"]])
  func lineReset(options: [String]) throws {
    let template = ["--template", "{id} {p|}"]
    try withNewEpoch(template, Self.after) { client, _, path in
      let words = ["watch", "f", "--since-file", path, "--count", "1"] + template + options
      let outcome = try ClientCommand.finish(client.start(words))
      let lines = outcome.lines
      let old = options.isEmpty ? ["  [0,0] b 1"] : []
      expectEqual(
        lines,
        ["! reset: the daemon began a new history; signs compare with the rows shown before"] + old
          + ["+ [0,1] n 1", "~ [0,2] c 2", "- [0,0] a "])
      // The next run resumes.
      try client.succeed("push", "f", "{\"id\":\"m\",\"p\":1}")
      try expectEqual(ClientCommand.finish(client.start(words)).lines, ["+ [0,3] m 1"])
    }
  }

  @Test("after a new epoch, JSON says so and tells what is new", arguments: [[], ["--only", "added"]])
  func jsonReset(options: [String]) throws {
    try withNewEpoch([], Self.after) { client, _, path in
      let words = ["watch", "f", "--since-file", path, "--count", "1"] + options
      let outcome = try ClientCommand.finish(client.start(words))
      let part = try outcome.json["params"]
      expect(part["reset"] == "true" && part["last"] == "true")
      expectEqual(part["sections"], #"[{"name":"f/all","count":3}]"#)
      expectEqual(part["added"], "[[0,1]]")
      if options.isEmpty {
        expect(part["at"] == "[0,0]" && part["elements"].text == "[\(Self.after.joined(separator: ","))]")
        expectEqual(part["updated"], "[[0,2]]")
        expect(part["deleted"] == "[[0,0]]" && part["deletedIDs"] == #"["a"]"#)
      } else {
        expect(part["at"] == "[0,1]" && part["elements"].text == "[\(Self.after[1])]")
        expect(part["updated"] == "[]" && part["deleted"] == "[]")
      }
    }
  }

  @Test("after a new epoch, a row that another section has now is deleted, whichever part has it")
  func resetOfSection() throws {
    let directory = try TemporaryDirectory()
    let words = ["watch", "f", "--section", "x", "--since-file", directory.file("seen"), "--count", "2"]
    var lines: [String] = []
    for section in ["x", "y"] {
      let daemon = try DaemonProcess(directory: directory)
      let client = ClientCommand(daemon)
      try client.succeed("define", "f", "--section", "$.s")
      let elements = [#"{"id":1,"s":"x"}"#, "{\"id\":2,\"s\":\"\(section)\"}", #"{"id":3,"s":"z"}"#]
      try expectEqual(ClientCommand.finish(client.start(["push", "f"] + elements)).code, 0)
      lines = try ClientCommand.finish(client.start(words)).lines
      try expectEqual(daemon.stop(), 0)
    }
    // The row is in the part of section y, which is not the last one.
    let parts = try lines.map { try JSONValue($0)["params"] }
    try require(parts.count == 2)
    expect(parts[0]["reset"] == "true" && parts[0]["elements"].text == #"[{"id":1,"s":"x"}]"#)
    expect(parts[1]["last"] == "true" && parts[1]["deleted"] == "[[0,1]]" && parts[1]["deletedIDs"] == "[2]")
  }

  @Test("a file without rows cannot tell what is new, and the lines say so") func unknownReset() throws {
    try withNewEpoch([], Self.after) { client, _, path in
      try SmallFile.replace(path, with: Array("{\"epoch\":\"other\",\"revision\":5}".utf8))
      let words = ["watch", "f", "--since-file", path, "--count", "1"]
      let lines = try ClientCommand.finish(client.start(words + ["--no-initial", "--template", "{id}"])).lines
      expectEqual(
        lines,
        [
          "! reset: the daemon began a new history; the rows from before are not known, so ? marks each row",
          "? [0,0] b", "? [0,1] n", "? [0,2] c",
        ])
      try SmallFile.replace(path, with: Array("{\"epoch\":\"other\",\"revision\":5}".utf8))
      let part = try ClientCommand.finish(client.start(words)).json["params"]
      expect(part["reset"] == "true" && part["added"] == "null" && part["updated"] == "null" && !part.has("deleted"))
    }
  }

  @Test("a reconnected watch announces a reset and compares with what it showed") func resetWhileWatching() throws {
    let directory = try TemporaryDirectory()
    let first = try DaemonProcess(directory: directory)
    let client = try list(first, "--bin", "all")
    let watcher = try client.start("watch", "f", "--reconnect", "--template", "{id}", "--count", "3")
    try watcher.output.wait(lines: 3)
    try client.succeed("push", "f", "{\"id\":\"d\",\"p\":1}")
    try watcher.output.wait(lines: 4)
    try expectEqual(first.stop(), 0)
    let second = try DaemonProcess(directory: directory)
    try watcher.errors.wait(for: "waiting for the feed f")
    try client.succeed("define", #"{"feed":"f","kind":"collection","bins":[{"name":"all"}]}"#)
    let lines = try ClientCommand.finish(watcher).lines
    expectEqual(
      lines.dropFirst(4),
      [
        "! reset: the daemon began a new history; signs compare with the rows shown before", "- [0,0] a", "- [0,1] b",
        "- [0,2] c", "- [0,3] d",
      ])
    _ = second
  }

  @Test("the position goes forward when the reader has taken the bytes") func positionsOfAPipe() throws {
    let daemon = try DaemonProcess()
    let client = try list(daemon, "--bin", "all", ids: [])
    let path = daemon.directory.file("seen")
    func revision() throws -> Int? { try JSONValue(SmallFile.read(path).text)["revision"].int }
    // The reader takes the snapshot, then one line of ten, and ends.
    let script = """
      exec 3<&0
      "$0" watch f --since-file \(path) | { read -r line; echo "$line"; read -r go <&3; read -r line; echo "$line"; }
      """
    let pipeline = try client.startShell(script)
    try pipeline.output.wait(lines: 1)
    let start = try client.revision(of: "f")
    for id in 1...10 { try client.succeed("push", "f", "{\"id\":\(id)}") }
    try pipeline.write("go\n")
    let outcome = try ClientCommand.finish(pipeline)
    expectEqual(outcome.lines.count, 2)
    try expectEqual(revision(), start + 1)
    let rest = try client.run("watch", "f", "--since-file", path, "--count", "1").json["params"]
    expect(rest["from"].int == start + 1 && rest["elements"].elements.count == 9)
    try expectEqual(revision(), start + 10)
  }

  /// The reader is a socket whose peer closes with unread bytes in its queue, which the kernel then discards.
  @Test("bytes that a closing socket discards are not taken") func positionsOfASocket() throws {
    let daemon = try DaemonProcess()
    let client = try list(daemon, "--bin", "all", ids: ["a"])
    let path = daemon.directory.file("seen")
    let script = """
      import socket, subprocess, sys
      ours, theirs = socket.socketpair()
      client = subprocess.Popen(sys.argv[1:], stdout=theirs)
      theirs.close()
      taken = ours.makefile().readline()
      print(taken, end="", flush=True)
      sys.stdin.readline()
      # Wait until the next line is in the queue, and discard it.
      ours.recv(1, socket.MSG_PEEK)
      ours.close()
      client.wait()
      """
    let reader = try ChildProcess(
      "python3", ["-c", script, BuildProducts.program("feedclient"), "watch", "f", "--since-file", path],
      environment: ["FEEDD_SOCKET": client.socket])
    try reader.output.wait(lines: 1)
    // The client looks again and again whether the line was taken, and saves its position then.
    try reader.wait(forFile: path)
    let start = try client.revision(of: "f")
    try client.succeed("push", "f", "{\"id\":\"b\"}")
    try reader.write("go\n")
    try expectEqual(ClientCommand.finish(reader).code, 0)
    try expectEqual(JSONValue(SmallFile.read(path).text)["revision"].int, start)
  }
}
