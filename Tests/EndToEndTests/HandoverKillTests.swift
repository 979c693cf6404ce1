import FeedSystem
import Glibc
import TestSupport
import Testing

/// Kills scripts, clients and daemons with SIGKILL, and compares what a script was given with what was pushed.
///
/// 40 kills for each test, 1,000 with `scripts/test --long`, or `FEEDD_HANDOVER_KILLS`.
struct HandoverKillTests {
  private static let kills = TestEffort.count(40, long: 1_000, variable: "FEEDD_HANDOVER_KILLS")

  /// The example of the README: a script for each added element.
  @Test("trigger misses no element when scripts, clients and daemons are killed") func trigger() throws {
    let killer = try TriggerKiller(seed: 1)
    for _ in 0..<Self.kills { try killer.pushAndKill() }
    let lines = try killer.finish()
    var given: [Int: Set<String>] = [:]
    for line in lines {
      let change = try JSONValue(line)
      expect(change["kind"].string == "added" && change["element"]["id"] == change["id"])
      given[try require(change["id"].int), default: []].insert(line)
    }
    expectEqual(given.keys.sorted(), Array(1...killer.pushed), "elements are missing")
    // A repetition has the same input, and there is at most one for each kill.
    expect(given.values.allSatisfy { $0.count == 1 })
    expect(lines.count <= killer.pushed + Self.kills)
  }

  /// The reader takes some lines, then the client is killed, and the lines that are left in the pipe are lost with it.
  @Test("the position of watch is never ahead of the reader") func positions() throws {
    let directory = try TemporaryDirectory()
    let daemon = try DaemonProcess(directory: directory)
    let client = ClientCommand(daemon)
    try client.succeed("define", "f", "--bin", "all")
    let writer = try daemon.connect()
    let path = directory.file("seen")
    var random = SeededRandom(seed: 2)
    var (taken, pushed) = (try client.revision(of: "f"), 0)
    let first = taken
    for round in 0..<Self.kills {
      var pipe = try Pipe()
      let watcher = try client.startShell("exec \"$0\" watch f --since-file \(path) >&3", passing: [pipe.writingNumber])
      pipe.writing = nil
      if Bool.random(using: &random) { try daemon.waitForWatcher(of: "f", client) }
      for _ in 0..<Int.random(in: 1...8, using: &random) {
        pushed += 1
        try writer.push(#"{"id":\#(pushed)}"#, to: "f")
      }
      let goal = Int.random(in: taken...first + pushed, using: &random)
      while taken < goal || round == 0 {
        let params = try JSONValue(Self.line(pipe.readingNumber))["params"]
        if params.has("from") { try expect(require(params["from"].int) <= taken, "a change was missed") }
        taken = max(taken, try require(params["revision"].int))
        if round == 0 { break }
      }
      watcher.signal(SIGKILL)
      _ = try watcher.waitForExit()
      let saved = (try? SmallFile.read(path).text).flatMap { try? JSONValue($0)["revision"].int } ?? 0
      expect(saved <= taken, "round \(round)")
    }
  }

  /// Reads one line, byte by byte, so that no more is taken.
  private static func line(_ descriptor: Int32) throws -> String {
    var bytes: [UInt8] = []
    var byte: UInt8 = 0
    while byte != UInt8(ascii: "\n") {
      guard try !Readiness.readable.wait(on: descriptor, timeout: testTimeout).isEmpty else {
        throw TestFailure("timed out after \(bytes.count) bytes of a line")
      }
      guard read(descriptor, &byte, 1) == 1 else { throw TestFailure("the output ended") }
      bytes.append(byte)
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// Pushes elements into a feed that `feedclient trigger` follows, and kills one of the processes.
private final class TriggerKiller {
  private static let handler = """
    #!/bin/sh
    cd "${0%/*}" || exit 9
    IFS= read -r line
    if mv before-script done 2>/dev/null; then echo killed; kill -9 $$; fi
    if mv before-client done 2>/dev/null; then echo killed; kill -9 $PPID; fi
    printf '%s\\n' "$line" >> given
    if mv after-script done 2>/dev/null; then echo killed; kill -9 $$; fi
    if mv after-client done 2>/dev/null; then echo killed; kill -9 $PPID; fi
    if [ -e last ]; then case $line in *"\\"id\\":$(cat last),"*) echo finished;; esac; fi
    """

  private let directory: TemporaryDirectory
  private var random: SeededRandom
  private var daemon: DaemonProcess
  private var writer: RawClient
  private var client: ChildProcess?
  private(set) var pushed = 0

  init(seed: UInt64) throws {
    directory = try TemporaryDirectory()
    random = SeededRandom(seed: seed)
    daemon = try DaemonProcess(["--state", directory.file("state")], directory: directory)
    writer = try daemon.connect()
    try expectEqual(ClientCommand(daemon).run("define", "inbox", "--bin", "all").code, 0)
    try write("handler", Self.handler)
    chmod(directory.file("handler"), 0o755)
    try startClient()
    // From here on, changes are handed over.
    try daemon.waitForWatcher(of: "inbox", ClientCommand(daemon))
    // Without a position the client does not know what is new.
    try client?.wait(forFile: directory.file("seen"))
  }

  private func write(_ name: String, _ text: String) throws {
    try SmallFile.replace(directory.file(name), with: Array(text.utf8))
  }

  private func startClient() throws {
    client = try ClientCommand(daemon).start(
      "trigger", "inbox", "--on", "added", "--state", directory.file("seen"), "--", directory.file("handler"))
  }

  private func push() throws {
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      pushed += 1
      try writer.push(#"{"id":\#(pushed),"text":"x"}"#, to: "inbox")
    }
  }

  func pushAndKill() throws {
    let names = ["before-script", "after-script", "before-client", "after-client", "", "", ""]
    let name = names.randomElement(using: &random)
    let client = try require(self.client)
    switch name {
    case let name? where !name.isEmpty:
      try write(name, "")
      try push()
      try waitForMark(in: client)
      if name.hasSuffix("client") { try restartClient() }
    default:
      try push()
      if Bool.random(using: &random) {
        client.signal(SIGKILL)
        try restartClient()
      } else {
        try daemon.stop(signal: SIGKILL)
        daemon = try DaemonProcess(["--state", directory.file("state")], directory: directory)
        writer = try daemon.connect()
      }
    }
  }

  private var marks = 0

  private func waitForMark(in client: ChildProcess) throws {
    marks += 1
    try client.output.wait(lines: marks)
  }

  private func restartClient() throws {
    // The command of the killed client may go on. It holds the error stream, too.
    _ = try client?.waitForExit()
    marks = 0
    try startClient()
  }

  /// Pushes a last element, and returns the lines that the script got.
  func finish() throws -> [String] {
    try write("last", "\(pushed + 1)")
    pushed += 1
    try writer.push(#"{"id":\#(pushed),"text":"x"}"#, to: "inbox")
    let client = try require(self.client)
    try client.output.wait(for: "finished")
    client.signal(SIGTERM)
    try expectEqual(client.waitForExit(), 128 + SIGTERM)
    return try SmallFile.read(directory.file("given")).text.split(separator: "\n").map(String.init)
  }
}

extension RawClient {
  /// Pushes an element, and waits for the answer.
  fileprivate func push(_ element: String, to feed: String) throws {
    try send(#"{"jsonrpc":"2.0","id":1,"method":"update","params":{"feed":"\#(feed)","elements":[\#(element)]}}"#)
    _ = try receive(having: "\"id\":1")
  }
}
