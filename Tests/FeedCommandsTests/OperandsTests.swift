import FeedClient
import FeedJSON
import TestSupport
import Testing

@testable import FeedCommands

struct OperandsTests {
  @Test(arguments: [
    ("17", "17"), ("-1.5e3", "-1.5e3"), ("\"17\"", "\"17\""), ("lamp", "\"lamp\""), ("01", "\"01\""), ("+1", "\"+1\""),
    ("true", "\"true\""), ("null", "\"null\""), ("[1]", "\"[1]\""), ("{}", "\"{}\""), (" 1", "\" 1\""), ("", "\"\""),
    ("\"a", "\"\\\"a\""), ("a\nb", "\"a\\nb\""), ("NaN", "\"NaN\""),
  ])
  func identities(word: String, json: String) { expectEqual(Operands.id(word), json) }

  @Test(
    "the word of an identity is read as that identity",
    arguments: [
      ("17", "17"), ("\"lamp\"", "lamp"), ("\"17\"", "\"17\""), ("\"a b\"", "a b"), ("\"\"", "\"\""),
      ("\"-x\"", "\"-x\""),
      ("\"\\ud800\"", "\"\\ud800\""), ("\"\\\"q\\\"\"", "\"\\\"q\\\"\""), ("1.50", "1.50"), ("\"it's\"", "it's"),
    ])
  func wordsOfIdentities(json: String, word: String) throws {
    try expectEqual(withJSON(json) { Operands.word(ofID: $0) }, word)
  }

  @Test(arguments: [("{}", true), (" \t\r\n{", true), ("\n\n[{", false), ("", false), ("\u{A0}{", false)])
  func objects(text: String, isObject: Bool) { expectEqual(Operands.beginsObject(text), isObject) }

  @Test func children() {
    expectEqual(Operands.child("2"), "2")
    expectEqual(Operands.child("-1"), "-1")
    expectEqual(Operands.child("inbox/urgent"), "\"inbox/urgent\"")
  }

  @Test func rowNumbers() {
    expectEqual(Operands.rows("0,3,5"), [0, 3, 5])
    expectEqual(Operands.rows("7"), [7])
    expectEqual(Operands.rows("1,,2"), nil)
    expectEqual(Operands.rows("-1"), nil)
    expectEqual(Operands.rows(""), nil)
  }

  @Test func elementsMustBeJSON() throws {
    try expectEqual(ElementArguments(["{}", "1", "\"x\""], of: "push").texts, ["{}", "1", "\"x\""])
    let failure = #expect(throws: Failure.self) { try ElementArguments(["{}", "{\"a\":}"], of: "push") }
    expectEqual(
      failure, .usage("push: element 2 is not JSON: unexpected byte at byte 5; quote it for the shell: '{\"id\":1}'"))
    let bare = #expect(throws: Failure.self) { try ElementArguments(["hello"], of: "push") }
    expectEqual(
      bare,
      .usage(
        "push: element 1 is not JSON: unexpected byte at byte 0; quote a string twice: '\"hello\"'"))
  }

  @Test func memberIsAddedToAnObject() {
    expectEqual(Operands.adding("\"a\":1", to: "{\"b\":2} "), "{\"b\":2,\"a\":1}")
    expectEqual(Operands.adding("\"a\":1", to: "{ }"), "{ \"a\":1}")
    expectEqual(Operands.adding("\"a\":1", to: "{\"b\":{}}"), "{\"b\":{},\"a\":1}")
  }

  @Test func everyCommandThatChangesRowsTakesAnAnimationHint() {
    let others = [
      "get", "range", "query", "snapshot", "watch", "select", "deselect", "selected", "feeds", "describe", "export",
      "backup", "restore", "verify", "sync", "stats", "top", "clients", "quotas", "kick", "log-level", "ping", "call",
      "completion", "group", "trigger",
    ]
    let without = CommandTable.all.filter { !$0.options.contains { $0.name == "animation" } }
    expectEqual(without.map(\.name).sorted(), others.sorted())
  }

  @Test func suggestions() throws {
    let names = CommandTable.all.map(\.name)
    expectEqual(Spelling.similar(to: "wacth", in: names).first, "watch")
    expectEqual(Spelling.similar(to: "pus", in: names).first, "push")
    expectEqual(Spelling.similar(to: "snap", in: names).first, "snapshot")
    expect(Spelling.similar(to: "frobnicate", in: names).isEmpty)
    #expect(throws: Failure.usage("unknown command 'psuh'; did you mean push?")) { try Program.find("psuh") }
    #expect(throws: Failure.usage("unknown command 'zzzzzz'; see feedclient --help")) { try Program.find("zzzzzz") }
  }

  @Test("missing and extra operands are named, with the usage") func operandCounts() throws {
    let range = try Program.find("range")
    #expect(throws: Failure.usage("missing argument COUNT\nusage: feedclient range FEED SECTION FROM COUNT")) {
      try Program.check(["f", "0", "0"], of: range)
    }
    #expect(throws: Failure.usage("missing argument FEED\nusage: feedclient push FEED [ELEMENT...|-]")) {
      try Program.check([], of: try Program.find("push"))
    }
    #expect(throws: Failure.usage("unexpected argument 'x'\nusage: feedclient feeds")) {
      try Program.check(["x"], of: try Program.find("feeds"))
    }
    try Program.check(["f", "0", "0", "1"], of: range)
  }

  @Test("every help starts with usage and examples and fits 80 columns") func helpTexts() {
    for line in Program.help.helpText(width: 80).split(separator: "\n") { expect(line.count <= 80, "\(line)") }
    for command in CommandTable.all {
      let help = command.table.helpText(width: 80)
      expect(help.hasPrefix("Usage: feedclient \(command.name)"))
      expect(help.contains("\n\nExamples:\n  feedclient") || help.contains("\n\nExamples:\n  "), "\(command.name)")
      for line in help.split(separator: "\n") { expect(line.count <= 80, "\(command.name): \(line)") }
      expect(command.summary.count < 60, "\(command.name)")
      expect(!command.summary.hasSuffix("."), "\(command.name)")
      expectEqual(CommandTable.all.filter { $0.name == command.name }.count, 1)
      expect(Program.help.notes.contains("  \(command.name) "), "\(command.name)")
    }
  }
}
