import FeedSystem
import Testing

@Suite("Environment and random text")
struct EnvironmentTests {
  @Test func isReadFromTheProcess() {
    #expect(Environment.current["PATH"] != nil)
    #expect(Environment.current["A_NAME_THAT_NOBODY_SETS"] == nil)
    #expect(Environment(["A": ""])["A"] == "")
    #expect(Environment(["A": ""]).nonEmpty("A") == nil)
  }

  @Test func randomTextIsLongAndNeverTheSame() throws {
    let texts = try (0..<100).map { _ in try Random.hex128() }
    #expect(Set(texts).count == 100)
    #expect(texts.allSatisfy { $0.count == 32 && $0.allSatisfy(\.isHexDigit) })
  }
}
