import FeedClient
import FeedSystem
import FeedWire
import Synchronization
import TestSupport
import Testing

@testable import FeedCommands

struct PrintingTests {
  private func pretty(_ text: String) throws -> String {
    try withJSON(text) { PrettyPrinter(palette: Palette(isOn: false)).text(of: $0) }
  }

  @Test func longValuesAreIndented() throws {
    try expectEqual(pretty("{\"a\":1,\"b\":[1,2]}"), "{\"a\": 1, \"b\": [1, 2]}")
    let long = String(repeating: "x", count: 50)
    try expectEqual(
      pretty("{\"text\":\"\(long)\",\"at\":[[0,1],[1,0]],\"none\":{}}"),
      """
      {
        "text": "\(long)",
        "at": [[0, 1], [1, 0]],
        "none": {}
      }
      """)
    try expectEqual(pretty("[\"\(long)\",\"\(long)\"]"), "[\n  \"\(long)\",\n  \"\(long)\"\n]")
    try expectEqual(pretty("17"), "17")
  }

  @Test func indentationIsBounded() throws {
    let deep = String(repeating: "[", count: 300) + String(repeating: "]", count: 300)
    try expect(pretty(deep).filter { $0 == "\n" }.count < 100)
  }

  @Test func tablesHaveAColumnForEachMember() throws {
    let text = try withJSON("[{\"uid\":0,\"name\":\"push\"},{\"uid\":1000,\"name\":\"日本\",\"lag\":{\"rows\":3}}]") {
      ValueTable($0).text(width: 60, palette: Palette(isOn: false))
    }
    expectEqual(text, "uid   name  lag.rows\n   0  push  \n1000  日本         3\n")
    let none = try withJSON("[]") { ValueTable($0).text(width: 60, palette: Palette(isOn: false)) }
    expectEqual(none, "none\n")
  }

  @Test("columns with nothing in them give way first, and numbers are grouped") func narrowTables() throws {
    let list = """
      [{"uid":0,"name":"feedclient/watch","queued":0,"held":0,"lag":0,"requests":12345,"watches":["inbox"]},
       {"uid":0,"name":"日本","queued":0,"held":0,"lag":0,"requests":2,"watches":[]}]
      """
    func text(_ width: Int) throws -> String {
      try withJSON(list) { ValueTable($0).text(width: width, palette: Palette(isOn: false)) }
    }
    try expectEqual(
      text(60),
      """
      uid  name              queued  held  requests  watches
        0  feedclient/watch       0     0    12,345  ["inbox"]
        0  日本                   0     0         2  []

      """)
    try expectEqual(
      text(45),
      """
      uid  name              requests  watches
        0  feedclient/watch    12,345  ["inbox"]
        0  日本                     2  []

      """)
    try expectEqual(
      text(40),
      """
      uid  name              requests …
        0  feedclient/watch    12,345
        0  日本                     2

      """)
  }

  @Test("a narrow table of connections keeps their number, name and watches") func importantColumns() throws {
    let list = """
      [{"connection":51,"uid":1000,"pid":18850,"name":"feedclient/watch","queued":0,"held":256,"lag":0,"requests":2,"watches":["f"]},
       {"connection":53,"uid":0,"pid":18908,"name":"feedd.py","queued":0,"held":0,"lag":0,"requests":2,"watches":[]}]
      """
    let important = ["connection", "name", "watches", "lag", "queued", "pid", "uid"]
    let text = try withJSON(list) {
      ValueTable($0, important: important).text(width: 40, palette: Palette(isOn: false))
    }
    expectEqual(
      text,
      """
      connection  name              watches …
              51  feedclient/watch  ["f"]
              53  feedd.py          []

      """)
  }

  @Test("objects are broken into lines that fit a narrow terminal") func narrowObjects() throws {
    let text = "{\"id\":100,\"text\":\"disk full\",\"user\":{\"name\":\"ann\",\"uid\":7},\"none\":{}}"
    let narrow = try withJSON(text) { PrettyPrinter(palette: Palette(isOn: false), width: 24).text(of: $0) }
    expectEqual(
      narrow,
      """
      {
        "id": 100,
        "text": "disk full",
        "user": {
          "name": "ann",
          "uid": 7
        },
        "none": {}
      }
      """)
  }

  @Test(
    "an element is shown first, then where it is",
    arguments: [("[[0,3],[2,0]]", "at 0,3 2,0"), ("[1,7]", "at 1,7"), ("[]", "in no section")])
  func shownElement(at: String, places: String) throws {
    let terminal = Terminal(descriptor: -1, environment: Environment(["COLUMNS": "40"]))
    var shown = terminal
    shown.isTerminal = true
    let written = Mutex<[UInt8]>([])
    let console = Console(terminal: shown, errorTerminal: terminal, isJSON: false) { bytes, _ throws(SystemError) in
      written.withLock { $0 += bytes }
    }
    let result = "{\"element\":{\"id\":1},\"type\":\"Song\",\"at\":\(at),\"found\":true}"
    try withJSON(result) { Show.element($0, console, Templates()) }
    try console.flush()
    expectEqual(String(decoding: written.withLock { $0 }, as: UTF8.self), "{\"id\": 1}\n\(places)  type Song\n")
  }

  @Test("changes of many rows are counted") func mutationCounts() throws {
    func counts(_ text: String) throws -> (MutationCounts) { try withJSON(text) { MutationCounts($0) } }
    let listed = try counts(
      "{\"revision\":7,\"deleted\":[[0,1],[0,2]],\"added\":[[0,0]],\"updated\":[],\"moves\":[[0,0]],\"sections\":{\"deleted\":[1],\"added\":[]}}"
    )
    expectEqual(listed.rows, 2)
    expectEqual(
      listed.json,
      "{\"revision\":7,\"counts\":{\"deleted\":2,\"added\":1,\"updated\":0,\"moves\":1,\"sections\":{\"deleted\":1,\"added\":0}}}"
    )
    // The daemon's own counts are used as they are.
    try expectEqual(counts(listed.json).json, listed.json)
    try expectEqual(counts(listed.json).rows, 2)
  }

  @Test func columnsOfNestedMembersAreNamedByTheirPath() throws {
    let names = try withJSON("{\"a\":1,\"b\":{\"c\":2,\"d\":{}},\"e\":[{\"f\":1}]}") {
      Flattening.entries(of: $0).map(\.name)
    }
    expectEqual(names, ["a", "b.c", "b.d", "e"])
  }

  @Test func feedsArePrintedAsATree() throws {
    let feeds = #"""
      [{"feed":"home","kind":"composed","children":["banner","inbox/urgent","gone"],"count":3},
       {"feed":"banner","kind":"single","count":1},
       {"feed":"inbox","kind":"collection","bins":[],"count":2,
        "sections":[{"name":"inbox/urgent","count":2},{"name":"inbox/rest","count":0}]},
       {"feed":"tabs","kind":"segmented","children":["home","banner"],"current":1,"count":1}]
      """#
    let lines = try withJSON(feeds) { FeedTree($0).lines(width: 60, palette: Palette(isOn: false)) }
    expectEqual(
      lines,
      [
        "inbox  collection  2", "├─ inbox/urgent  bin  2", "└─ inbox/rest  bin  0", "tabs  segmented  1",
        "├─ home  composed  3", "│  ├─ banner  single  1", "│  ├─ inbox/urgent  bin  2", "│  └─ gone  undefined",
        "└─ banner  single  1  shows",
      ])
  }

  @Test func treeOfACycleIsFinite() throws {
    let feeds = #"[{"feed":"a","kind":"composed","children":["b"]},{"feed":"b","kind":"composed","children":["b"]}]"#
    let lines = try withJSON(feeds) { FeedTree($0).lines(width: 60, palette: Palette(isOn: false)) }
    expectEqual(lines, ["a  composed", "└─ b  composed", "   └─ b  composed"])
  }

  @Test func progressIsShownTenTimesASecond() {
    var progress = PushProgress(now: 0)
    expectEqual(progress.line(now: 50_000_000, pushed: 5, refused: 0, width: 80), nil)
    expectEqual(
      progress.line(now: 500_000_000, pushed: 6000, refused: 0, width: 80), "\r\u{1B}[K6,000 pushed, 12,000/s")
    expectEqual(progress.line(now: 550_000_000, pushed: 6000, refused: 0, width: 80), nil)
    expectEqual(
      progress.line(now: 1_000_000_000, pushed: 8000, refused: 2, width: 80),
      "\r\u{1B}[K8,000 pushed, 8,000/s, 2 refused")
    // The rate is computed over the last second.
    expectEqual(
      progress.line(now: 2_000_000_000, pushed: 8500, refused: 2, width: 20), "\r\u{1B}[K8,500 pushed, 500/s…")
    expectEqual(progress.summary(now: 4_000_000_000, pushed: 8500, refused: 0), "8,500 pushed in 4.0 s, 2,125/s")
  }

  @Test func errorsNameTheNextStep() {
    let data = utf8("{\"member\":\"filter\",\"text\":\"@.é >>> 3\",\"offset\":6}")
    let refusal = RemoteError(code: -32004, message: "the filter does not parse", data: data)
    expectEqual(Failure.client(.refused(refusal)).lines, ["the filter does not parse", "@.é >>> 3", "     ^"])
    let plain = RemoteError(code: -32001, message: "give \"replace\": true to redefine it.")
    expectEqual(plain.lines(withCode: false), ["give --replace to redefine it."])
    expectEqual(plain.lines(withCode: true), ["give --replace to redefine it. (-32001)"])
    expect(plain.lines(withCode: false, suggestion: "; did you mean a?")[0].hasSuffix("it; did you mean a?"))
    expect(Failure.readerGone.lines.isEmpty)
    let fault = Failure.client(.fault(.gap(expected: 3, found: 5)))
    expect(fault.lines[0].hasPrefix("the copy of the feed is wrong: a delta"))
  }

  @Test("control characters in received texts never reach the terminal") func hostileMessages() {
    let terminal = Terminal(descriptor: -1, environment: Environment([:]))
    let written = Mutex("")
    let console = Console(terminal: terminal, errorTerminal: terminal, isJSON: false) { bytes, _ throws(SystemError) in
      written.withLock { $0 += String(decoding: bytes, as: UTF8.self) }
    }
    let bye = Bye(reason: "quota", message: "too much\u{1B}]0;title\u{7}\u{9B}2J")
    Failure.client(.closed(bye)).tell(on: console)
    expectEqual(
      written.withLock { $0 },
      "feedclient: the daemon closed the connection: too much\u{FFFD}]0;title\u{FFFD}\u{FFFD}2J\n")
  }

  @Test(
    "JSON on a terminal has escapes for characters that control it, and is unchanged elsewhere",
    arguments: [true, false])
  func hostileJSON(isJSON: Bool) throws {
    var terminal = Terminal(descriptor: -1, environment: Environment([:]))
    let text =
      "{\"a\":\"\u{7F}\u{80}\u{9B}2J\u{A0}é\u{600}\u{61C}\u{200E}\u{2027}\u{2028}"
      + "\u{202E}\u{202F}\u{2066}\u{2069}\u{206A}日\u{1F600}\"}"
    func printed(isTerminal: Bool) throws -> String {
      terminal.isTerminal = isTerminal
      let written = Mutex("")
      let console = Console(terminal: terminal, errorTerminal: terminal, isJSON: isJSON) {
        bytes, _ throws(SystemError) in written.withLock { $0 += String(decoding: bytes, as: UTF8.self) }
      }
      try withJSON(text) { console.print($0) }
      console.printRaw("\u{1B}[1m\u{85}")
      try console.flush()
      return written.withLock { $0 }
    }
    try expectEqual(printed(isTerminal: false), text + "\n\u{1B}[1m\u{85}")
    try expectEqual(
      printed(isTerminal: true),
      #"{"a":"\u007f\u0080\u009b2J\#u{A0}é\#u{600}\u061c\u200e\#u{2027}\u2028\u202e\#u{202F}\u2066\u2069\#u{206A}日\#u{1F600}"}"#
        + "\n\u{1B}[1m\\u0085")
  }

  @Test("metrics of Prometheus have a help, a type and a value") func prometheus() throws {
    let text = try withJSON(#"{"feeds":5,"commits":7,"state":"/x","future":1}"#) { Metrics.text(of: $0) }
    expectEqual(
      text,
      """
      # HELP feedd_feeds Defined feeds.
      # TYPE feedd_feeds gauge
      feedd_feeds 5
      # HELP feedd_commits_total Commits.
      # TYPE feedd_commits_total counter
      feedd_commits_total 7

      """)
  }

  @Test func exitStatusesAreFixed() {
    expectEqual(ExitStatus.done.rawValue, 0)
    expectEqual(Failure.client(.refused(RemoteError(code: 1, message: ""))).status.rawValue, 1)
    expectEqual(Failure.usage("").status.rawValue, 2)
    expectEqual(Failure.client(.noDaemon(.init(code: 2, operation: ""))).status.rawValue, 3)
    expectEqual(Failure.client(.closed(nil)).status.rawValue, 3)
    expectEqual(Failure.client(.closed(Bye(reason: "shutdown", message: ""))).status.rawValue, 3)
    expectEqual(Failure.client(.closed(Bye(reason: "quota", message: ""))).status.rawValue, 1)
    expectEqual(Failure.client(.timedOut).status.rawValue, 4)
    expectEqual(Failure.client(.fault(.unexpectedSnapshot(revision: 1))).status.rawValue, 5)
    expectEqual(Failure.readerGone.status.rawValue, 0)
  }
}
