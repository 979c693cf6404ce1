import FeedSystem
import Glibc
import TestSupport
import Testing

@Suite("feedclient on a terminal")
struct ClientTerminalTests {
  /// A terminal and the client on it, started by a shell that leaves standard error to the test.
  private func start(
    _ words: String, on terminal: PseudoTerminal, _ daemon: DaemonProcess, environment: [String: String] = [:]
  ) throws -> ChildProcess {
    var client = ClientCommand(daemon)
    client.environment = ["TERM": "xterm"].merging(environment) { $1 }
    return try client.startShell("exec \"$0\" \(words) <&3 >&3", passing: [terminal.terminal])
  }

  @Test func theListIsDrawnAndRedrawnInPlace() throws {
    let daemon = try DaemonProcess()
    let client = ClientCommand(daemon)
    #expect(try client.run("define", "f", "--bin", "urgent=@.p > 5", "--bin", "rest", "--exclusive").code == 0)
    #expect(try client.run("push", "f", "{\"id\":1,\"p\":9,\"t\":\"disk full\"}", "{\"id\":2,\"p\":1}").code == 0)
    let terminal = try PseudoTerminal(columns: 60, rows: 10)
    let screen = TerminalReader(terminal)
    let watcher = try start("watch f --template '{p}: {t}' --verify", on: terminal, daemon)
    try screen.wait(for: "9: disk full")
    #expect(screen.text.hasPrefix("\u{1B}[?1049h"))
    #expect(screen.text.contains("f/urgent"))
    try screen.wait(for: "verified at 2")
    #expect(try client.run("push", "f", "{\"id\":1,\"p\":7,\"t\":\"better\"}").code == 0)
    try screen.wait(for: "\u{1B}[1;33m~\u{1B}[0m 7: better")
    #expect(
      try client.run("push", "f", "{\"id\":2,\"p\":8,\"t\":\"new\u{1B}\"}".replacing("\u{1B}", with: "\\u001b")).code
        == 0)
    try screen.wait(for: "\u{1B}[1;36m>\u{1B}[0m 8: new\u{FFFD}")
    // A wider screen is drawn as a whole.
    let before = screen.text.count
    try terminal.resize(columns: 100, rows: 5)
    watcher.signal(SIGWINCH)
    try screen.wait(for: "\u{1B}[2J", after: before)
    // The process ends by the signal, so that a shell loop around it ends too.
    watcher.signal(SIGINT)
    #expect(try watcher.waitForExit() == 128 + SIGINT)
    try screen.wait(for: "\u{1B}[?25h\u{1B}[?1049l", after: before)
  }

  @Test func stoppingGivesTheScreenBack() throws {
    let daemon = try DaemonProcess()
    let client = ClientCommand(daemon)
    #expect(try client.run("define", "f").code == 0)
    let terminal = try PseudoTerminal(columns: 60, rows: 10)
    let screen = TerminalReader(terminal)
    let watcher = try start("watch f", on: terminal, daemon)
    try screen.wait(for: "f/all")
    watcher.signal(SIGTSTP)
    try screen.wait(for: "\u{1B}[?1049l")
    var status: Int32 = 0
    #expect(waitpid(watcher.pid, &status, WUNTRACED) == watcher.pid)
    let before = screen.text.count
    watcher.signal(SIGCONT)
    try screen.wait(for: "\u{1B}[?1049h", after: before)
    watcher.signal(SIGTERM)
    #expect(try watcher.waitForExit() == 128 + SIGTERM)
  }

  @Test func aTerminalThatCannotMoveItsCursorGetsLines() throws {
    let daemon = try DaemonProcess()
    let client = ClientCommand(daemon)
    #expect(try client.run("push", "f", "--define", "{\"id\":1}").code == 0)
    let terminal = try PseudoTerminal(columns: 40, rows: 10)
    let screen = TerminalReader(terminal)
    let watcher = try start("watch f --count 3", on: terminal, daemon, environment: ["TERM": "dumb"])
    try screen.wait(for: "  [0,0] {\"id\": 1}")
    #expect(try client.run("push", "f", "{\"id\":1,\"a\":2}", "{\"id\":2}").code == 0)
    #expect(try client.run("delete", "f", "1").code == 0)
    #expect(try watcher.waitForExit() == 0)
    try screen.wait(for: "- [0,0] \r\n")
    #expect(
      screen.text == "  [0,0] {\"id\": 1}\r\n+ [0,1] {\"id\": 2}\r\n~ [0,0] {\"id\": 1, \"a\": 2}\r\n- [0,0] \r\n")
  }

  @Test func resultsAreForPeopleAndColoursOnlyIfWanted() throws {
    let daemon = try DaemonProcess()
    let client = ClientCommand(daemon)
    #expect(try client.run("push", "inbox", "--define", "{\"id\":1}").code == 0)
    let terminal = try PseudoTerminal(columns: 80, rows: 10)
    let screen = TerminalReader(terminal)
    #expect(try start("feeds", on: terminal, daemon).waitForExit() == 0)
    try screen.wait(for: "revision 2")
    #expect(screen.text.contains("\u{1B}[1minbox\u{1B}[0m"))
    let before = screen.text.count
    #expect(try start("feeds", on: terminal, daemon, environment: ["NO_COLOR": "1"]).waitForExit() == 0)
    try screen.wait(for: "inbox  collection  inbox/all 1  revision 2\r\n", after: before)
    #expect(try start("feeds --json", on: terminal, daemon).waitForExit() == 0)
    try screen.wait(for: "{\"feed\":\"inbox\",", after: before)
  }

  @Test func aPushShowsItsProgress() throws {
    let daemon = try DaemonProcess()
    var client = ClientCommand(daemon)
    client.environment = ["TERM": "xterm"]
    #expect(try client.run("define", "f").code == 0)
    let terminal = try PseudoTerminal(columns: 80, rows: 10)
    let screen = TerminalReader(terminal)
    let pusher = try client.startShell("\"$0\" push f 2>&3; echo \"status $?\" >&2", passing: [terminal.terminal])
    try pusher.write("{\"id\":1}\n{\"id\":2}\nnonsense\n")
    try screen.wait(for: "\r2 pushed, ")
    try screen.wait(for: "line 3, column 2: not JSON")
    pusher.closeInput()
    try pusher.errors.wait(for: "status 2")
    try screen.wait(for: "2 pushed in ")
    try screen.wait(for: ", 1 refused")
  }

  @Test("keys move, search, select, pause and end the list on a small terminal") func keys() throws {
    let daemon = try DaemonProcess()
    let client = ClientCommand(daemon)
    #expect(try client.run("define", "f").code == 0)
    let input = (0..<100).map { "{\"id\":\($0),\"text\":\"number \($0) with a long text behind it\"}\n" }.joined()
    #expect(try client.run("push", "f", input: input).code == 0)
    let terminal = try PseudoTerminal(columns: 40, rows: 10)
    let screen = TerminalReader(terminal)
    let watcher = try start("watch f --template '{text}'", on: terminal, daemon, environment: ["NO_COLOR": "1"])
    try screen.wait(for: "  number 7")
    func press(_ keys: String, until words: String) throws {
      let before = screen.text.count
      try screen.type(keys)
      try screen.wait(for: words, after: before)
    }
    try press("j", until: " ▸number 0 with a long text behind it")
    try press("G", until: " ▸number 99 with")
    try press("/", until: "/█")
    try press("er 42\r", until: " ▸number 42 with")
    try press("s", until: "▸number 42")
    try screen.wait(for: "●▸number 42")
    #expect(try client.run("selected", "f").output.contains("\"selected\":[[0,42]]"))
    // A change above does not move the list; it is counted.
    let before = screen.text.count
    #expect(try client.run("push", "f", "{\"id\":0,\"text\":\"changed\"}").code == 0)
    try screen.wait(for: "↑1 ↓0", after: before)
    try press("\r", until: "\"id\": 42")
    try press("x", until: "●▸number 42")
    try press(" ", until: "paused")
    try press(" ", until: "rows")
    try press("?", until: "Shift-Tab")
    try press("x", until: "●▸number 42")
    try screen.type("q")
    #expect(try watcher.waitForExit() == 0)
  }

  @Test("a watch that ends by itself leaves the rows on the screen") func lastRows() throws {
    let daemon = try DaemonProcess()
    let client = ClientCommand(daemon)
    #expect(try client.run("push", "f", "--define", "{\"id\":1}").code == 0)
    let terminal = try PseudoTerminal(columns: 40, rows: 10)
    let screen = TerminalReader(terminal)
    let watcher = try start("watch f --snapshot-only", on: terminal, daemon, environment: ["NO_COLOR": "1"])
    #expect(try watcher.waitForExit() == 0)
    try screen.wait(for: "f/all  1\r\n  {\"id\": 1}\r\n")
  }
}
