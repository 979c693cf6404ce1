import FeedSystem
import TestSupport
import Testing

@Suite("Parsing of options")
struct OptionTableTests {
  static let table = OptionTable(
    program: "tool", usage: ["[OPTION]... FILE", "--check FILE"], about: "Does a thing to a file and says what it did.",
    groups: [
      OptionGroup(
        "Places",
        [
          OptionDescription("socket", value: .text("PATH"), help: "where it listens", defaultText: "/run/x.sock"),
          OptionDescription("source", value: .text("PATH"), help: "where it reads", repeats: true),
        ]),
      OptionGroup(
        "Limits",
        [
          OptionDescription("max-frame", value: .bytes(1...(1 << 30)), help: "the longest frame", defaultText: "16MiB"),
          OptionDescription("count", value: .integer(0...100), help: "how many"),
          OptionDescription("at", value: .integer(-10...10), help: "where"),
          OptionDescription("wait", value: .duration(.zero...(.seconds(60))), help: "how long"),
          OptionDescription("mode", letter: "m", value: .choice(["fast", "safe"]), help: "how"),
          OptionDescription("check", help: "only look"),
        ]),
    ])

  func failure(_ arguments: [String]) -> String {
    do throws(UsageError) {
      return "parsed: \(try Self.table.parse(arguments))"
    } catch {
      return error.message
    }
  }

  @Test func valuesHaveTheirTypes() throws {
    let parsed = try Self.table.parse([
      "--socket=/a", "one", "--max-frame", "64K", "--count", "7", "--wait=1.5s", "--mode", "safe", "--check", "two",
    ])
    expectEqual(parsed.text("socket"), "/a")
    expectEqual(parsed.bytes("max-frame"), 65536)
    expectEqual(parsed.integer("count"), 7)
    expectEqual(parsed.duration("wait"), .milliseconds(1500))
    expectEqual(parsed.text("mode"), "safe")
    expect(parsed.contains("check"))
    expect(!parsed.contains("at"))
    expectEqual(parsed.operands, ["one", "two"])
  }

  @Test func lettersTakeValues() throws {
    try expectEqual(Self.table.parse(["-m", "fast", "-h"]).text("mode"), "fast")
    try expectEqual(Self.table.parse(["-msafe"]).text("mode"), "safe")
    expectEqual(failure(["-m"]), "--mode: missing value, expected one of fast, safe")
  }

  @Test func onlyRepeatingOptionsTakeSeveralValues() throws {
    expectEqual(failure(["--at", "0", "--at", "1"]), "--at is given twice; give it once")
    expectEqual(failure(["-m", "fast", "--mode=fast"]), "--mode is given twice; give it once")
    try expect(Self.table.parse(["--check", "--check"]).contains("check"))
    let parsed = try Self.table.parse(["--source", "a", "--source", "b"])
    expectEqual(parsed.text("source"), "b")
    expectEqual(parsed.texts("source"), ["a", "b"])
  }

  @Test func negativeNumbersAreOperandsAndValues() throws {
    let parsed = try Self.table.parse(["-1", "--at", "-3", "-2.5", "--source=-4"])
    expectEqual(parsed.operands, ["-1", "-2.5"])
    expectEqual(parsed.integer("at"), -3)
    expectEqual(parsed.text("source"), "-4")
  }

  @Test func doubleDashEndsTheOptions() throws {
    try expectEqual(Self.table.parse(["--", "--check", "-h"]).operands, ["--check", "-h"])
    try expectEqual(Self.table.parse(["-", "--check"]).operands, ["-"])
  }

  @Test func parsingCanStopAtTheFirstOperand() throws {
    let parsed = try Self.table.parse(["--socket", "/a", "push", "--unknown", "x"], stopsAtOperand: true)
    expectEqual(parsed.text("socket"), "/a")
    expectEqual(parsed.operands, ["push", "--unknown", "x"])
  }

  @Test func uniquePrefixesOfNamesAreAccepted() throws {
    try expectEqual(Self.table.parse(["--sock", "/a"]).text("socket"), "/a")
    expectEqual(failure(["--so", "/a"]), "ambiguous option --so: it can be --socket, --source")
  }

  @Test func everyTableHasHelpAndVersion() throws {
    try expect(Self.table.parse(["-h"]).wantsHelp)
    try expect(Self.table.parse(["--help"]).wantsHelp)
    try expect(Self.table.parse(["-V"]).wantsVersion)
    try expect(!Self.table.parse([]).wantsHelp)
  }

  @Test(arguments: [
    (["--soket", "a"], "unknown option --soket; did you mean --socket?"),
    (["--nothing=3"], "unknown option --nothing"),
    (["-x"], "unknown option -x"),
    (["--check=yes"], "--check takes no value"),
    (["--socket"], "--socket: missing value, expected a non-empty PATH"),
    (
      ["--socket", "--check"],
      "--socket: missing value, expected a non-empty PATH; write --socket=--check if that is it"
    ),
    (["--socket="], "--socket '': expected a non-empty PATH"),
    (["--count", "101"], "--count '101': expected an integer from 0 to 100"),
    (["--count", "-1"], "--count '-1': expected an integer from 0 to 100"),
    (["--count", "1x"], "--count '1x': expected an integer from 0 to 100"),
    (["--max-frame", "0"], "--max-frame '0': expected a number of bytes from 1 to 1GiB, such as 4096, 64K or 16M"),
    (["--wait", "2m"], "--wait '2m': expected a time from 0s to 1m, such as 250ms, 30s or 2h"),
    (["--mode", "slow"], "--mode 'slow': expected one of fast, safe"),
  ])
  func errorNamesOptionValueAndExpectation(arguments: [String], message: String) {
    expectEqual(failure(arguments), message)
  }

  @Test func threadsCanParseAtTheSameTime() async {
    await withTaskGroup(of: [String].self) { group in
      for number in 0..<64 {
        group.addTask { (try? Self.table.parse(["a\(number)", "--count", "3", "b\(number)"]).operands) ?? [] }
      }
      var seen: Set<[String]> = []
      for await operands in group { seen.insert(operands) }
      expectEqual(seen, Set((0..<64).map { ["a\($0)", "b\($0)"] }))
    }
  }
}

@Suite("Help of options")
struct HelpTextTests {
  @Test func listsUsageAndOptions() {
    let text = OptionTableTests.table.helpText(width: 72)
    expectEqual(
      text,
      """
      Usage: tool [OPTION]... FILE
             tool --check FILE

      Does a thing to a file and says what it did.

      Places:
            --socket PATH         where it listens (default: /run/x.sock)
            --source PATH         where it reads; may be repeated

      Limits:
            --max-frame BYTES     the longest frame (default: 16MiB)
            --count N             how many
            --at N                where
            --wait TIME           how long
        -m, --mode fast|safe      how
            --check               only look

      Information:
        -h, --help                print this text and exit
        -V, --version             print the version and exit

      """)
  }

  @Test(arguments: [0, 50, 60, 80, 100, 400]) func linesFitTheWidth(width: Int) {
    let table = OptionTable(
      program: "tool", usage: [""], about: String(repeating: "word ", count: 60),
      groups: [
        OptionGroup(
          "Options",
          [
            OptionDescription("a-name-that-is-longer-than-the-column", value: .text("PATH"), help: "short"),
            OptionDescription("b", help: String(repeating: "some more ", count: 20)),
          ])
      ])
    let bound = min(max(width, 50), 100)
    expect(table.helpText(width: width).split(separator: "\n").allSatisfy { $0.count <= bound })
  }
}
