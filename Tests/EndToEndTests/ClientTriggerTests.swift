import FeedSystem
import Glibc
import TestSupport
import Testing

@Suite("feedclient trigger") struct ClientTriggerTests {
  /// A trigger on the feed `f`, whose command prints what it reads.
  private struct Run {
    let daemon: DaemonProcess
    let client: ClientCommand
    var state: String { daemon.directory.file("state.json") }

    init(_ definition: String..., directory: TemporaryDirectory? = nil, elements: [String] = []) throws {
      daemon = try DaemonProcess(directory: directory)
      client = ClientCommand(daemon)
      let define = try ClientCommand.finish(client.start(["define", "f"] + definition))
      expectEqual(define.code, 0, "\(define.errors)")
      if !elements.isEmpty { try expectEqual(push(elements), 0) }
    }

    func push(_ elements: [String]) throws -> Int32 {
      try ClientCommand.finish(client.start(["push", "f"] + elements)).code
    }

    func start(_ options: String..., command: [String] = ["cat"]) throws -> ChildProcess {
      try client.start(["trigger", "f", "--state", state] + options + ["--"] + command)
    }

    /// Starts a trigger that knows the present state.
    func startAndSave(_ options: String..., command: [String] = ["cat"]) throws -> ChildProcess {
      let trigger = try client.start(["trigger", "f", "--state", state] + options + ["--"] + command)
      try trigger.wait(forFile: state)
      return trigger
    }
  }

  /// Ends a trigger by a signal. Returns the JSON objects that its commands printed.
  private func end(_ trigger: ChildProcess) throws -> [JSONValue] {
    trigger.signal(SIGTERM)
    let outcome = try ClientCommand.finish(trigger)
    expectEqual(outcome.code, 128 + SIGTERM, "\(outcome.errors)")
    return try outcome.lines.map { try JSONValue($0) }
  }

  @Test("a command reads each change, and its environment names it") func each() throws {
    let run = try Run("--kind", "array", "--id", "$.id", elements: [#"{"id":1}"#, #"{"id":2}"#])
    let script = "IFS= read -r line; printf '%s\\n' \"$FEEDD_FEED $FEEDD_REVISION $FEEDD_KIND $line\""
    let trigger = try run.startAndSave(command: ["sh", "-c", script])
    let revision = try run.client.revision(of: "f")
    try expectEqual(run.push([#"{"id":3,"t":"ü \" \n"}"#, #"{"id":1,"t":[1]}"#]), 0)
    try run.client.succeed("move", "f", "2", "0")
    try run.client.succeed("delete", "f", "2")
    try trigger.output.wait(lines: 3)
    trigger.signal(SIGTERM)
    let lines = try ClientCommand.finish(trigger).lines
    let epoch = try require(run.client.run("ping").json["epoch"].string)
    func expected(_ step: Int, _ kind: String, _ rest: String) -> String {
      "f \(revision + step) \(kind) {\"feed\":\"f\",\"epoch\":\"\(epoch)\",\"revision\":\(revision + step),\"kind\":\"\(kind)\","
        + "\"section\":\"f\",\(rest)}"
    }
    // Arrays and singles have one section of their own name. The move is not wanted.
    expectEqual(
      lines,
      [
        expected(1, "added", #""at":[0,2],"id":3,"element":{"id":3,"t":"ü \" \n"}"#),
        expected(1, "updated", #""at":[0,0],"id":1,"element":{"id":1,"t":[1]}"#),
        expected(3, "deleted", #""was":[0,2],"id":2"#),
      ])
  }

  @Test("--initial hands over the present rows once") func initial() throws {
    let run = try Run("--bin", "all", elements: [#"{"id":1}"#, #"{"id":2}"#])
    let first = try run.start("--initial")
    try first.output.wait(lines: 2)
    try expectEqual(end(first).map { "\($0["kind"].text)\($0["id"].text)" }, ["\"added\"1", "\"added\"2"])
    let second = try run.start("--initial")
    try expectEqual(run.push([#"{"id":3}"#]), 0)
    try second.output.wait(lines: 1)
    try expectEqual(end(second).map(\.["id"].int), [3])
  }

  @Test("changes while nobody watches are handed over by the next run") func absence() throws {
    let run = try Run("--bin", "all", elements: [#"{"id":1}"#, #"{"id":2}"#])
    try expect(end(run.startAndSave()).isEmpty)
    try expectEqual(run.push([#"{"id":3}"#, #"{"id":1,"n":1}"#]), 0)
    try run.client.succeed("delete", "f", "2")
    let next = try run.start()
    try next.output.wait(lines: 3)
    try expectEqual(
      end(next).map { "\($0["kind"].string ?? "") \($0["id"].text)" }, ["deleted 2", "added 3", "updated 1"])
  }

  @Test("what a full disk cut off does not spoil the state") func fullDisk() throws {
    let run = try Run("--bin", "all")
    let gate = run.daemon.directory.file("gate")
    expectEqual(mkfifo(gate, 0o600), 0)
    // Each change of 9 kB is a line of the state. A file that may have 20 kB is full like a disk. The thread sanitizer would begin with
    // a longer one in TMPDIR.
    let trigger = try run.client.startShell(
      """
      ulimit -f 40
      export TMPDIR=/nonexistent
      exec "$0" trigger f --state \(run.state) -- sh -c 'echo begun; cat > /dev/null; read -r go < \(gate)'
      """)
    try trigger.wait(forFile: run.state)
    try expectEqual(run.push([#"{"id":1}"#]), 0)
    try trigger.output.wait(lines: 1)
    let text = String(repeating: "x", count: 9000)
    for id in 2...7 { try expectEqual(run.push([#"{"id":\#(id),"x":"\#(text)"}"#]), 0) }
    try run.daemon.waitUntilRead(by: "feedclient/trigger")
    try SmallFile.open(gate) { try StandardStreams.writeAll("go\n", to: $0) }
    let outcome = try ClientCommand.finish(trigger)
    expect(outcome.code != 0 && outcome.errors.contains(run.state), "\(outcome.errors)")
    let next = try run.start(command: ["sh", "-c", "cat > /dev/null; echo done"])
    try next.output.wait(lines: 6)
    next.signal(SIGTERM)
    try expectEqual(ClientCommand.finish(next).code, 128 + SIGTERM)
  }

  @Test("commands are awaited also if SIGCHLD was ignored") func ignoredChildEnds() throws {
    let run = try Run("--bin", "all", elements: [#"{"id":1}"#, #"{"id":2}"#, #"{"id":3}"#])
    let trigger = try run.client.startShell(
      """
      exec python3 -c '
      import os, signal, sys
      signal.signal(signal.SIGCHLD, signal.SIG_IGN)
      os.execv(sys.argv[1], sys.argv[1:])
      ' "$0" trigger f --state \(run.state) --initial -- sh -c 'cat > /dev/null; echo done'
      """)
    try trigger.output.wait(lines: 3)
    trigger.signal(SIGTERM)
    try expectEqual(ClientCommand.finish(trigger).code, 128 + SIGTERM)
  }

  @Test("a batch has what came meanwhile, coalesced") func batch() throws {
    let run = try Run("--bin", "all", elements: [#"{"id":1}"#, #"{"id":2}"#])
    let gate = run.daemon.directory.file("gate")
    expectEqual(mkfifo(gate, 0o600), 0)
    let script = "cat; echo \"$FEEDD_KIND\"; read -r go < \(gate)"
    let trigger = try run.startAndSave("--batch", command: ["sh", "-c", script])
    try expectEqual(run.push([#"{"id":"first"}"#]), 0)
    // The command now runs until the gate is opened.
    try trigger.output.wait(lines: 2)
    for words in [
      ["push", "f", #"{"id":3,"n":1}"#], ["push", "f", #"{"id":3,"n":2}"#], ["push", "f", #"{"id":4}"#],
      ["delete", "f", "4"], ["delete", "f", "1"], ["push", "f", #"{"id":2,"n":9}"#], ["delete", "f", "first"],
      ["push", "f", #"{"id":"first","n":1}"#],
    ] { try expectEqual(ClientCommand.finish(run.client.start(words)).code, 0) }
    let revision = try run.client.revision(of: "f")
    try run.daemon.waitUntilRead(by: "feedclient/trigger")
    try SmallFile.open(gate) { try StandardStreams.writeAll("go\n", to: $0) }
    try trigger.output.wait(lines: 4)
    try SmallFile.open(gate) { try StandardStreams.writeAll("go\n", to: $0) }
    trigger.signal(SIGTERM)
    let lines = try ClientCommand.finish(trigger).lines
    try require(lines.count == 4)
    expect(lines[1] == "added" && lines[3] == "added,updated,deleted")
    let batch = try JSONValue(lines[2])
    expect(batch["from"].int == revision - 8 && batch["revision"].int == revision)
    expectEqual(
      batch["changes"].elements.map { "\($0["kind"].string ?? "") \($0["id"].text)\($0["element"]["n"].text)" },
      [
        "deleted 1null", "updated 29", "added 32", "updated \"first\"1",
      ])
  }

  @Test("a row that enters the section is added, and one that leaves it is deleted") func section() throws {
    let run = try Run("--bin", "hi=@.p > 5", "--bin", "lo", "--exclusive")
    let trigger = try run.startAndSave("--section", "hi", "--where", "@.p != 7")
    for p in [1, 7, 8, 9, 2] { try expectEqual(run.push(["{\"id\":1,\"p\":\(p)}"]), 0) }
    try expectEqual(run.push([#"{"id":2,"p":6}"#]), 0)
    try trigger.output.wait(lines: 4)
    // The filter refuses the element with 7, but not the one with 8, which is an update.
    try expectEqual(
      end(trigger).map { "\($0["kind"].string ?? "") \($0["element"]["p"].text)" },
      [
        "updated 8", "updated 9", "deleted null", "added 6",
      ])
  }

  @Test("after a new epoch, the differences are handed over, and the log says so") func reset() throws {
    let directory = try TemporaryDirectory()
    do {
      let run = try Run("--bin", "all", directory: directory, elements: [#"{"id":1}"#, #"{"id":2}"#, #"{"id":3}"#])
      try expect(end(run.startAndSave()).isEmpty)
      try expectEqual(run.daemon.stop(), 0)
    }
    let run = try Run("--bin", "all", directory: directory, elements: [#"{"id":4}"#, #"{"id":2}"#, #"{"id":1,"n":1}"#])
    let trigger = try run.start()
    try trigger.errors.wait(
      for: "f: the daemon began a new history; compared with the rows from before: 1 added, 1 updated, 1 deleted")
    try trigger.output.wait(lines: 3)
    let changes = try end(trigger)
    expectEqual(changes.map { "\($0["kind"].string ?? "") \($0["id"].text)" }, ["added 4", "updated 1", "deleted 3"])
    expect(changes.allSatisfy { $0["reset"] == "true" })
  }

  @Test("a command that fails is repeated, and then trigger gives up until the next start") func retries() throws {
    let run = try Run("--bin", "all")
    let allowed = run.daemon.directory.file("allowed")
    let command = ["sh", "-c", "cat; test -e \(allowed)"]
    let trigger = try run.startAndSave("--retries", "2", command: command)
    try expectEqual(run.push([#"{"id":1}"#, #"{"id":2}"#]), 0)
    let outcome = try ClientCommand.finish(trigger)
    expectEqual(outcome.code, 6)
    try expect(Set(outcome.lines).count == 1 && outcome.lines.count == 3 && JSONValue(outcome.lines[0])["id"].int == 1)
    let revision = try run.client.revision(of: "f")
    let what = "feedclient: 'sh' exited with 1 for revision \(revision) (added); "
    expectEqual(
      outcome.errors,
      """
      \(what)retry 1 of 2 in 100 ms
      \(what)retry 2 of 2 in 200 ms
      \(what)gave up after 3 runs; the next feedclient trigger begins with it

      """)
    try SmallFile.replace(allowed, with: [])
    let next = try run.start(command: command)
    try next.output.wait(lines: 2)
    try expectEqual(end(next).map(\.["id"].int), [1, 2])
  }

  @Test("several jobs run at once, and changes of one element in order") func jobs() throws {
    let run = try Run("--bin", "all")
    let gate = run.daemon.directory.file("gate")
    expectEqual(mkfifo(gate, 0o600), 0)
    // The command of element 1 waits at the gate.
    let script = "read -r line; case $line in *'\"id\":1,'*) read -r go < \(gate);; esac; echo \"$line\""
    let trigger = try run.startAndSave("--jobs", "2", command: ["sh", "-c", script])
    try expectEqual(run.push([#"{"id":1,"n":1}"#]), 0)
    try expectEqual(run.push([#"{"id":1,"n":2}"#, #"{"id":2}"#, #"{"id":3}"#]), 0)
    try trigger.output.wait(lines: 2)
    for count in 3...4 {
      try SmallFile.open(gate) { try StandardStreams.writeAll("go\n", to: $0) }
      try trigger.output.wait(lines: count)
    }
    let found = try end(trigger).map { "\($0["id"].text) \($0["element"]["n"].text)" }
    expectEqual(found, ["2 null", "3 null", "1 1", "1 2"])
  }

  @Test("a signal lets the running command end, and the next start does not repeat it") func signals() throws {
    let run = try Run("--bin", "all")
    let gate = run.daemon.directory.file("gate")
    expectEqual(mkfifo(gate, 0o600), 0)
    let trigger = try run.startAndSave(command: ["sh", "-c", "echo begun; read -r go < \(gate); cat"])
    try expectEqual(run.push([#"{"id":1}"#, #"{"id":2}"#]), 0)
    try trigger.output.wait(lines: 1)
    trigger.signal(SIGTERM)
    try trigger.errors.wait(for: "waiting for the end of the running command")
    try SmallFile.open(gate) { try StandardStreams.writeAll("go\n", to: $0) }
    let outcome = try ClientCommand.finish(trigger)
    expectEqual(outcome.code, 128 + SIGTERM)
    expectEqual(outcome.lines.count, 2)
    let next = try run.start()
    try next.output.wait(lines: 1)
    try expectEqual(end(next).map(\.["id"].int), [2])
  }

  @Test("a trigger waits for the command of one that was killed") func orphans() throws {
    let run = try Run("--bin", "all")
    let gate = run.daemon.directory.file("gate")
    expectEqual(mkfifo(gate, 0o600), 0)
    let trigger = try run.startAndSave(command: ["sh", "-c", "echo begun; exec 1>&- 2>&-; read -r go < \(gate)"])
    try expectEqual(run.push([#"{"id":1}"#]), 0)
    try trigger.output.wait(lines: 1)
    trigger.signal(SIGKILL)
    _ = try trigger.waitForExit()
    let next = try run.start()
    try next.errors.wait(for: "waiting for the end of a command that an earlier feedclient trigger started")
    expectEqual(next.output.text, "")
    try SmallFile.open(gate) { try StandardStreams.writeAll("go\n", to: $0) }
    try next.output.wait(lines: 1)
    try expectEqual(end(next).map(\.["id"].int), [1])
  }

  @Test("two triggers cannot use one file, and other files are refused") func files() throws {
    let run = try Run("--bin", "all")
    let first = try run.startAndSave()
    let second = try ClientCommand.finish(run.start())
    expectEqual(second.code, 2)
    expect(second.errors.hasPrefix("feedclient: cannot use \(run.state): "))
    expect(second.errors.hasSuffix("; process \(first.pid) uses it\n"))
    try expect(end(first).isEmpty)
    let other = try run.client.run("trigger", "g", "--state", run.state, "--", "true")
    expect(other.code == 2 && other.errors.contains("not written by trigger --state for feed 'g'"))
    for text in ["nonsense", "{\"feed\":\"f\",\"epoch\":\"e\",\"revision\":1}\n"] {
      try SmallFile.replace(run.state, with: Array(text.utf8))
      let refused = try ClientCommand.finish(run.start())
      expect(refused.code == 2 && refused.errors.contains(run.state), "\(refused.errors)")
      try expectEqual(SmallFile.read(run.state).text, text)
    }
  }

  @Test(
    arguments: [
      (["--", "true"], "missing option --state FILE"), (["--state", "s"], "missing argument COMMAND"),
      (["--state", "s", "--each", "--batch", "--", "true"], "--each and --batch exclude each other"),
      (["--state", "s", "--on", "changed", "--", "true"], "--on 'changed': unknown kind 'changed'"),
      (["--state", "s", "--jobs", "0", "--", "true"], "--jobs '0'"),
    ])
  func wrongCommandLines(words: [String], error: String) throws {
    let outcome = try ClientCommand.finish(ClientCommand(socket: "/nowhere").start(["trigger", "f"] + words))
    expectEqual(outcome.code, 2)
    expect(outcome.errors.contains(error), "\(outcome.errors)")
  }

  @Test("a feed whose identities exceed the quota is followed without them") func identitiesBeyondTheQuota() throws {
    let daemon = try DaemonProcess(["--max-queue-per-user", "2M"])
    let client = ClientCommand(daemon)
    try client.succeed("define", "f")
    let elements = (0..<40_000).map { "{\"id\":\"a long identity of an element \($0)\"}" }.joined(separator: "\n")
    try client.succeed("push", "f", "-", input: elements)
    let trigger = try client.start(
      "trigger", "f", "--state", daemon.directory.file("state"), "--on", "deleted", "--", "cat")
    try trigger.wait(forFile: daemon.directory.file("state"))
    for id in 1...3 { try client.succeed("delete", "f", "a long identity of an element \(id)") }
    try trigger.output.wait(lines: 3)
    try expectEqual(end(trigger).map(\.["id"].string), (1...3).map { "a long identity of an element \($0)" })
    try expectEqual(daemon.stop(), 0)
    expect(daemon.log.split(separator: "\n").count { $0.contains("(quota)") } <= 1, "\(daemon.log)")
  }

  @Test("a command that does not exist is refused at once, and nothing is written") func missingCommand() throws {
    let run = try Run("--bin", "all")
    let file = run.daemon.directory.file("file")
    try SmallFile.replace(file, with: Array("#!/bin/sh\n".utf8))
    expectEqual(chmod(file, 0o600), 0)
    for (command, reason) in [
      ("/nonexistent/handler", "no such file or directory"), ("no-such-command", "no such file or directory"),
      (file, "permission denied"), ("\(file)/x", "no such file or directory"), ("/tmp", "permission denied"),
    ] {
      let outcome = try ClientCommand.finish(run.start(command: [command]))
      expectEqual(outcome.code, 2)
      expectEqual(outcome.errors, "feedclient: cannot run \(command): \(reason)\n")
      expect(access(run.state, F_OK) != 0)
    }
  }

  @Test("a command that disappears ends trigger, and the next one begins with the change") func lostCommand() throws {
    let run = try Run("--bin", "all", elements: [#"{"id":1}"#])
    let command = run.daemon.directory.file("handler")
    try SmallFile.replace(command, with: Array("#!/bin/sh\nrm $0; cat\n".utf8))
    expectEqual(chmod(command, 0o700), 0)
    let first = try run.start("--initial", command: [command])
    try first.output.wait(lines: 1)
    try expectEqual(run.push([#"{"id":2}"#]), 0)
    let lost = try ClientCommand.finish(first)
    expect(lost.code == 2 && lost.errors == "feedclient: cannot run \(command): no such file or directory\n")
    let next = try run.start()
    try next.output.wait(lines: 1)
    try expectEqual(end(next).map(\.["id"].int), [2])
  }
}

extension SmallFile {
  /// Opens a FIFO for writing, which waits for its reader.
  fileprivate static func open(_ path: String, _ use: (Int32) throws -> Void) throws {
    let descriptor = Glibc.open(path, O_WRONLY)
    guard descriptor >= 0 else { throw TestFailure("open \(path): errno \(errno)") }
    defer { close(descriptor) }
    try use(descriptor)
  }
}

extension DaemonProcess {
  /// Returns once a client has read everything that was sent to it.
  fileprivate func waitUntilRead(by name: String) throws {
    let raw = try connect()
    for _ in 0..<100_000 {
      try raw.send(#"{"jsonrpc":"2.0","id":1,"method":"clients","params":{}}"#)
      let clients = try JSONValue(raw.receive(having: "\"id\":1"))["result"]["clients"].elements
      guard let client = clients.first(where: { $0["name"].string == name }) else { continue }
      if client["queued"].int == 0, client["lag"].int ?? 0 == 0 { return }
    }
    throw TestFailure("\(name) does not read")
  }
}
