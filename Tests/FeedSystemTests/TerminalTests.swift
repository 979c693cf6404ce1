import FeedSystem
import TestSupport
import Testing

@Suite("Terminal facts")
struct TerminalTests {
  @Test func aPipeIsNone() throws {
    let pipe = try Pipe()
    let facts = Terminal(descriptor: pipe.writingNumber, environment: Environment(["TERM": "xterm"]))
    #expect(!facts.isTerminal)
    #expect(!facts.allowsColor)
    #expect(facts.columns == 80)
    #expect(facts.rows == nil)
    #expect(Terminal(descriptor: -1, environment: Environment(["COLUMNS": "33"])).columns == 33)
  }

  @Test func aTerminalSaysItsSize() throws {
    let pseudo = try PseudoTerminal(columns: 101, rows: 20)
    func facts(_ variables: [String: String]) -> Terminal {
      Terminal(descriptor: pseudo.terminal, environment: Environment(variables))
    }
    #expect(facts(["TERM": "xterm"]).isTerminal)
    #expect(facts(["TERM": "xterm"]).columns == 101)
    #expect(facts(["TERM": "xterm"]).rows == 20)
    #expect(facts(["TERM": "xterm", "COLUMNS": "60"]).columns == 60)
    #expect(facts(["TERM": "xterm", "COLUMNS": "-3"]).columns == 101)
    #expect(facts(["TERM": "xterm"]).allowsColor)
    #expect(facts(["TERM": "xterm", "NO_COLOR": ""]).allowsColor)
    #expect(!facts(["TERM": "xterm", "NO_COLOR": "1"]).allowsColor)
    #expect(!facts(["TERM": "dumb"]).allowsColor)
    #expect(!facts(["TERM": "dumb"]).canRedraw)
    #expect(facts(["TERM": "xterm", "NO_COLOR": "1"]).canRedraw)
  }
}
