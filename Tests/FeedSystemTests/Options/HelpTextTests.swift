import FeedSystem
import Testing

@Suite("Help text")
struct HelpTextTests {
  @Test func isMadeFromTheTable() {
    let text = OptionTableTests.table.helpText(width: 72)
    #expect(
      text == """
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

  @Test(arguments: [0, 50, 60, 80, 100, 400]) func fitsTheWidth(width: Int) {
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
    #expect(table.helpText(width: width).split(separator: "\n").allSatisfy { $0.count <= bound })
  }
}
