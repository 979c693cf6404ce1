import FeedSystem
import Glibc
import TestSupport
import Testing

@Suite("feedclient on a terminal")
struct ClientTerminalTests {
  private let daemon: DaemonProcess
  private let client: ClientCommand
  private let terminal: PseudoTerminal
  private let screen: TerminalReader

  init() throws {
    daemon = try DaemonProcess()
    client = ClientCommand(daemon)
    terminal = try PseudoTerminal(columns: 40, rows: 10)
    screen = TerminalReader(terminal)
  }

  /// Starts the client on a terminal, by a shell that passes standard error to the test.
  private func start(
    _ words: String, on other: PseudoTerminal? = nil, environment: [String: String] = [:]
  ) throws -> ChildProcess {
    var client = client
    client.environment = ["TERM": "xterm"].merging(environment) { $1 }
    return try client.startShell("exec \"$0\" \(words) <&3 >&3", passing: [(other ?? terminal).terminal])
  }

  @Test func listIsRedrawnInPlace() throws {
    try client.succeed("define", "f", "--bin", "urgent=@.p > 5", "--bin", "rest", "--exclusive")
    try client.succeed("push", "f", "{\"id\":1,\"p\":9,\"t\":\"disk full\"}", "{\"id\":2,\"p\":1}")
    try terminal.resize(columns: 60, rows: 10)
    let watcher = try start("watch f --template '{p}: {t}' --verify")
    try screen.wait(for: "9: disk full")
    expect(screen.text.hasPrefix("\u{1B}[?1049h"))
    expect(screen.text.contains("f/urgent"))
    try screen.wait(for: "verified at 2")
    try client.succeed("push", "f", "{\"id\":1,\"p\":7,\"t\":\"better\"}")
    try screen.wait(for: "\u{1B}[1;33m~\u{1B}[0m 7: better")
    try client.succeed("push", "f", "{\"id\":2,\"p\":8,\"t\":\"new\u{1B}\"}".replacing("\u{1B}", with: "\\u001b"))
    try screen.wait(for: "\u{1B}[1;36m>\u{1B}[0m 8: new\u{FFFD}")
    // After a change of the size the whole screen is drawn.
    let before = screen.text.count
    try terminal.resize(columns: 100, rows: 5)
    watcher.signal(SIGWINCH)
    try screen.wait(for: "\u{1B}[2J", after: before)
    // The process ends by the signal, so that a surrounding shell loop ends too.
    watcher.signal(SIGINT)
    try expectEqual(watcher.waitForExit(), 128 + SIGINT)
    try screen.wait(for: "\u{1B}[?25h\u{1B}[?1049l", after: before)
  }

  @Test(
    "a command that waits for input from the terminal says so",
    arguments: [
      ("push f", "JSON elements"), ("set f", "JSON elements"), ("insert f -", "JSON elements"), ("import", "an export"),
      ("define -", "the definition"), ("call ping -", "PARAMS"),
    ])
  func announcedInput(words: String, what: String) throws {
    try client.succeed("define", "f")
    try terminal.resize(columns: 60, rows: 10)
    let process = try start(words)
    try process.errors.wait(for: "feedclient: reading \(what) from the terminal; end with Ctrl-D\n")
    try screen.type("\u{4}")
    _ = try process.waitForExit()
  }

  @Test func suspendRestoresTheScreen() throws {
    try client.succeed("define", "f")
    try terminal.resize(columns: 60, rows: 10)
    let watcher = try start("watch f")
    try screen.wait(for: "f/all")
    watcher.signal(SIGTSTP)
    try screen.wait(for: "\u{1B}[?1049l")
    var status: Int32 = 0
    expectEqual(waitpid(watcher.pid, &status, WUNTRACED), watcher.pid)
    let before = screen.text.count
    watcher.signal(SIGCONT)
    try screen.wait(for: "\u{1B}[?1049h", after: before)
    watcher.signal(SIGTERM)
    try expectEqual(watcher.waitForExit(), 128 + SIGTERM)
  }

  @Test func terminalWithoutCursorMovementGetsLines() throws {
    try client.succeed("push", "f", "--define", "{\"id\":1}")
    let watcher = try start("watch f --count 3", environment: ["TERM": "dumb"])
    try screen.wait(for: "  [0,0] {\"id\": 1}")
    try client.succeed("push", "f", "{\"id\":1,\"a\":2}", "{\"id\":2}")
    try client.succeed("delete", "f", "1")
    try expectEqual(watcher.waitForExit(), 0)
    try screen.wait(for: "- [0,0] {\"id\": 1}\r\n")
    expectEqual(
      screen.text,
      "  [0,0] {\"id\": 1}\r\n+ [0,1] {\"id\": 2}\r\n~ [0,0] {\"id\": 1, \"a\": 2}\r\n- [0,0] {\"id\": 1}\r\n")
  }

  @Test("without a snapshot there is no list to redraw, so changes are lines that stay on the screen")
  func changesWithoutSnapshot() throws {
    try client.succeed("push", "f", "--define", "{\"id\":1}")
    let words = "watch f --no-initial --count 1 --template '{id} {a}'"
    let watcher = try start(words, environment: ["NO_COLOR": "1"])
    try daemon.waitForWatcher(of: "f", client)
    try client.succeed("push", "f", "{\"id\":1,\"a\":2}")
    try expectEqual(watcher.waitForExit(), 0)
    try screen.wait(for: "~ [0,0] 1 2\r\n")
    expectEqual(screen.text, "~ [0,0] 1 2\r\n")
  }

  @Test func resultsAreFormattedAndColouredOnRequest() throws {
    try client.succeed("push", "inbox", "--define", "{\"id\":1}")
    try terminal.resize(columns: 80, rows: 10)
    try expectEqual(start("feeds").waitForExit(), 0)
    try screen.wait(for: "revision 2")
    expect(screen.text.contains("\u{1B}[1minbox\u{1B}[0m"))
    let before = screen.text.count
    try expectEqual(start("feeds", environment: ["NO_COLOR": "1"]).waitForExit(), 0)
    try screen.wait(for: "inbox  collection  all 1  revision 2\r\n", after: before)
    try expectEqual(start("feeds --json").waitForExit(), 0)
    try screen.wait(for: "{\"feed\":\"inbox\",", after: before)
  }

  @Test func pushShowsItsProgress() throws {
    var client = client
    client.environment = ["TERM": "xterm"]
    try client.succeed("define", "f")
    try terminal.resize(columns: 80, rows: 10)
    let pusher = try client.startShell("\"$0\" push f 2>&3; echo \"status $?\" >&2", passing: [terminal.terminal])
    try pusher.write("{\"id\":1}\n{\"id\":2}\nnonsense\n")
    try screen.wait(for: "\r\u{1B}[K2 pushed, ")
    try screen.wait(for: "line 3, column 2: not JSON")
    pusher.closeInput()
    try pusher.errors.wait(for: "status 2")
    try screen.wait(for: "2 pushed in ")
    try screen.wait(for: ", 1 refused")
  }

  @Test("keys move, search, select, pause and end the list on a small terminal") func keys() throws {
    try client.succeed("define", "f")
    let input = (0..<100).map { "{\"id\":\($0),\"text\":\"number \($0) with a long text behind it\"}\n" }.joined()
    try client.succeed("push", "f", input: input)
    let watcher = try start("watch f --template '{text}'", environment: ["NO_COLOR": "1"])
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
    try press("/", until: "/█")
    try press("nowhere\r", until: "no match for 'nowhere'")
    try press("s", until: "▸number 42")
    try screen.wait(for: "●▸number 42")
    try expectEqual(client.run("selected", "f").json["selected"], "[[0,42]]")
    // A change above the visible rows is counted and does not move the list.
    let before = screen.text.count
    try client.succeed("push", "f", "{\"id\":0,\"text\":\"changed\"}")
    try screen.wait(for: "↑1 ↓0", after: before)
    try press("\r", until: "\"id\": 42")
    try press("x", until: "●▸number 42")
    try press(" ", until: "paused")
    try press(" ", until: "rows")
    try press("?", until: "Shift-Tab")
    try press("x", until: "●▸number 42")
    try screen.type("q")
    try expectEqual(watcher.waitForExit(), 0)
  }

  @Test("statistics are replaced on a terminal with room for them, and appended on a smaller one") func statistics()
    throws
  {
    try terminal.resize(columns: 60, rows: 40)
    let watcher = try start("stats --watch --interval 100ms", environment: ["NO_COLOR": "1"])
    try screen.wait(for: "A\u{1B}[Jrevision")
    watcher.signal(SIGINT)
    try expectEqual(watcher.waitForExit(), 128 + SIGINT)
    let lines = screen.screen(columns: 60, rows: 40).lines
    expectEqual(lines.filter { $0.hasPrefix("uptime") }.count, 1)
    // On a smaller one, members that are 0 give way.
    let medium = try PseudoTerminal(columns: 60, rows: 20)
    let mediumReader = TerminalReader(medium)
    let next = try start("stats --watch --interval 100ms", on: medium, environment: ["NO_COLOR": "1"])
    try mediumReader.wait(for: "A\u{1B}[J")
    try mediumReader.wait(for: "memoryBytes", after: mediumReader.text.count)
    next.signal(SIGINT)
    try expectEqual(next.waitForExit(), 128 + SIGINT)
    let shown = mediumReader.screen(columns: 60, rows: 20).lines
    expectEqual(shown.filter { $0.hasPrefix("memoryBytes") }.count, 1)
    expect(!shown.contains { $0.hasPrefix("resets") })
    let small = try PseudoTerminal(columns: 60, rows: 5)
    let reader = TerminalReader(small)
    let other = try start("stats --watch --interval 100ms", on: small, environment: ["NO_COLOR": "1"])
    try reader.wait(for: "\r\n\r\nrevision")
    other.signal(SIGINT)
    try expectEqual(other.waitForExit(), 128 + SIGINT)
  }

  @Test("select prints text on a terminal") func selection() throws {
    try client.succeed("push", "f", "--define", "{\"id\":1}", "{\"id\":2}")
    for (words, text) in [
      ("select f 0,1", "revision 2 1 row selected: 0,1\r\n"),
      ("select f --all", "revision 2 2 rows selected: 0,0 0,1\r\n"),
      ("selected f", "revision 2 2 rows selected: 0,0 0,1\r\n"),
      ("deselect f --all", "revision 2 nothing selected\r\n"),
    ] {
      let before = screen.text.count
      try expectEqual(start(words, environment: ["NO_COLOR": "1"]).waitForExit(), 0)
      try screen.wait(for: text, after: before)
    }
  }

  @Test("a watch that ends by itself leaves the rows on the screen") func lastRows() throws {
    try client.succeed("push", "f", "--define", "{\"id\":1}")
    let watcher = try start("watch f --snapshot-only", environment: ["NO_COLOR": "1"])
    try expectEqual(watcher.waitForExit(), 0)
    try screen.wait(for: "f/all  1\r\n  {\"id\": 1}\r\n")
  }

  @Test("feeds are shown side by side, and Tab goes through their sections") func sideBySide() throws {
    try client.succeed("define", "inbox", "--bin", "urgent=@.p > 5", "--bin", "rest", "--exclusive")
    try client.succeed("define", "todo", "--kind", "array")
    try client.succeed("push", "inbox", "{\"id\":1,\"p\":9,\"t\":\"日本語のテキスト\"}", "{\"id\":2,\"p\":1,\"t\":\"low\"}")
    try client.succeed("push", "todo", "{\"t\":\"milk\"}")
    let words = "watch inbox todo --template '{t}'"
    let watcher = try start(words, environment: ["NO_COLOR": "1"])
    func wait(_ line: Int, _ text: String) throws -> [String] {
      try screen.waitForScreen(columns: 40, rows: 10) { $0[line] == text }
    }
    let lines = try screen.waitForScreen(columns: 40, rows: 10) { $0[2].contains("日") && $0[2].contains("milk") }
    expectEqual(
      lines,
      [
        "▸inbox  2 rows      │  todo  1 row", "urgent  1           │ todo  1", "  日本語のテキスト  │   milk",
        "rest  1             │", "  low               │", "", "", "", "", "",
      ])
    try screen.type("\t")
    _ = try wait(2, " ▸日本語のテキスト  │   milk")
    try screen.type("\t")
    _ = try wait(4, " ▸low               │")
    try screen.type("\t")
    _ = try wait(2, "  日本語のテキスト  │  ▸milk")
    try screen.type("s")
    try expect(screen.waitForScreen(columns: 40, rows: 10) { $0[2].hasSuffix("│  ●▸milk") }[0].hasPrefix(" inbox"))
    try expectEqual(client.run("selected", "todo").json["selected"], "[[0,0]]")
    try screen.type("\t")
    _ = try screen.waitForScreen(columns: 40, rows: 10) { $0[2].hasPrefix(" ▸日本語") }
    expect(!screen.screen(columns: 40, rows: 10).isOverrun)
    // A narrow terminal shows the feed with the keys.
    let before = screen.text.count
    try terminal.resize(columns: 20, rows: 5)
    watcher.signal(SIGWINCH)
    try expectEqual(
      screen.waitForScreen(columns: 20, rows: 5, after: before) { $0[0] == "▸inbox  1 of 2" },
      ["▸inbox  1 of 2", "urgent  1", " ▸日本語のテキスト", "rest  1", "  low"])
    watcher.signal(SIGINT)
    try expectEqual(watcher.waitForExit(), 128 + SIGINT)
  }

  @Test("a count leaves the rows on the screen, also when the snapshot has several parts") func count() throws {
    try client.succeed("define", "f", "--bin", "a=@.id == 1", "--bin", "b=@.id == 2")
    try client.succeed("define", "g")
    try client.succeed("push", "f", "{\"id\":1}", "{\"id\":2}")
    let watcher = try start("watch f --count 1", environment: ["NO_COLOR": "1"])
    try expectEqual(watcher.waitForExit(), 0)
    try screen.wait(for: "\u{1B}[?1049lf/a  1\r\n  {\"id\": 1}\r\nf/b  1\r\n  {\"id\": 2}\r\n")
    let both = try start("watch f g --snapshot-only", environment: ["NO_COLOR": "1"])
    try expectEqual(both.waitForExit(), 0)
    try screen.wait(for: " f  2 rows          │  g  0 rows\r\nf/a  1              │ g/all  0\r\n")
    let printed = try client.run("watch", "f", "--print", "{id}", "--rows", "2", "--separator", " ", "--count", "1")
    expectEqual(printed.output, "1 2\n")
    let counted = try start("watch f g --counts --snapshot-only", environment: ["NO_COLOR": "1"])
    try expectEqual(counted.waitForExit(), 0)
    try screen.wait(for: "f/a 1  f/b 1\r\ng/all 0\r\n")
  }

  @Test("a line that is cut ends in an ellipsis, in the last column too") func cutLines() throws {
    try client.succeed("define", "f")
    try client.succeed("push", "f", "{\"id\":1,\"t\":\"abcdefghijklmnopqrstuvwxyz\"}")
    try terminal.resize(columns: 20, rows: 5)
    let watcher = try start("watch f --template '{t}'")
    let lines = try screen.waitForScreen(columns: 20, rows: 5) { $0[2].contains("abc") }
    expectEqual(lines[2], "  abcdefghijklmnopq…")
    watcher.signal(SIGTERM)
    _ = try watcher.waitForExit()
  }

  @Test("elements and help are wrapped on a small terminal") func pages() throws {
    try client.succeed(
      "push", "f", "--define", "{\"id\":1,\"text\":\"one two three four five six seven eight nine ten\"}")
    let watcher = try start("watch f", environment: ["NO_COLOR": "1"])
    try screen.wait(for: "\"id\": 1")
    try screen.type("j\r")
    let element = try screen.waitForScreen(columns: 40, rows: 10) { $0[0] == "f/all row 0" }
    expectEqual(
      element[2...6],
      [
        "{", "  \"id\": 1,", "  \"text\": \"one two three four five six", "    seven eight nine ten\"", "}",
      ])
    try screen.type("x?")
    let help = try screen.waitForScreen(columns: 40, rows: 10) { $0[0] == "Keys" }
    expectEqual(help[5...6], ["  Tab  Shift-Tab   next, previous", "                   section or feed"])
    try screen.type("xq")
    try expectEqual(watcher.waitForExit(), 0)
  }

  @Test("lines of text end with a whole line after an interrupt from the keyboard") func interrupted() throws {
    try client.succeed("push", "f", "--define", "{\"id\":1,\"t\":\"first\"}")
    let watcher = try start("watch f --print '{t}'")
    try screen.wait(for: "first\r\n")
    try client.succeed("push", "f", "{\"id\":1,\"t\":\"last\"}")
    try screen.wait(for: "last\r\n")
    watcher.signal(SIGINT)
    try expectEqual(watcher.waitForExit(), 128 + SIGINT)
    expectEqual(screen.text, "first\r\nlast\r\n")
  }

  @Test(
    "top shows rates and connections, sorts and filters them, on a small terminal too", arguments: [(40, 10), (80, 24)])
  func top(columns: Int, rows: Int) throws {
    try client.succeed("push", "f", "--define", "{\"id\":1}")
    let other = try client.start("watch", "f")
    try other.output.wait(for: "\"last\":true")
    try terminal.resize(columns: UInt16(columns), rows: UInt16(rows))
    let top = try start("top --interval 100ms", environment: ["NO_COLOR": "1"])
    func wait(_ isWanted: ([String]) -> Bool) throws -> [String] {
      try screen.waitForScreen(columns: columns, rows: rows, isWanted)
    }
    func row(_ name: String, in lines: [String]) -> Int? {
      lines.firstIndex { $0.hasPrefix(columns < 60 ? "\(name) " : "feedclient/\(name)") }
    }
    let lines = try wait { $0[1].contains("█") && row("watch", in: $0) != nil && row("top", in: $0) != nil }
    expect(lines[0].hasPrefix("feedd  up "))
    expect(lines[1].hasPrefix("requests"))
    expect(lines.contains { $0.hasPrefix("memory ") })
    expect(lines.contains { $0.hasPrefix("CLIENT ") && $0.contains("REQ/S↓") })
    // top itself asks most.
    expect(row("top", in: lines) ?? 9 < row("watch", in: lines) ?? 0)
    try screen.type("r")
    _ = try wait { (row("watch", in: $0) ?? 99) < (row("top", in: $0) ?? 0) && $0.contains { $0.contains("REQ/S↑") } }
    try screen.type("/WAT\r")
    _ = try wait { row("top", in: $0) == nil && row("watch", in: $0) != nil && $0[0].contains("/WAT") }
    try screen.type("\u{1B}")
    _ = try wait { row("top", in: $0) != nil }
    try screen.type("?")
    _ = try wait { $0[0] == "Keys" }
    try screen.type("x")
    _ = try wait { $0[0].hasPrefix("feedd  up ") }
    expect(!screen.screen(columns: columns, rows: rows).isOverrun)
    try screen.type("q")
    try expectEqual(top.waitForExit(), 0)
    other.signal(SIGTERM)
    _ = try other.waitForExit()
  }

  @Test("when the daemon is killed, the terminal is restored and the reason is told") func killed() throws {
    try client.succeed("push", "f", "--define", "{\"id\":1}")
    for words in ["watch f", "top --interval 1h"] {
      let terminal = try PseudoTerminal(columns: 40, rows: 10)
      let screen = TerminalReader(terminal)
      let shown = try start(words, on: terminal, environment: ["NO_COLOR": "1"])
      try screen.wait(for: words.hasPrefix("watch") ? "{\"id\": 1}" : "CLIENT")
      if words.hasPrefix("top") { _ = try daemon.stop(signal: SIGKILL) } else { daemon.process.signal(SIGSTOP) }
      if words.hasPrefix("watch") {
        // A daemon that hangs does not keep the keys from working.
        try screen.type("q")
        try expectEqual(shown.waitForExit(), 0)
        daemon.process.signal(SIGCONT)
      } else {
        try expectEqual(shown.waitForExit(), 3)
        expectEqual(shown.errors.text, "feedclient: the daemon closed the connection\n")
      }
      try screen.wait(for: "\u{1B}[?25h\u{1B}[?1049l")
    }
  }
}
