import FeedJSON
import Testing

@Suite("Suggestions for misspelt names")
struct SpellingTests {
  @Test(
    "the distance counts insertions, deletions, replacements and swaps of neighbours",
    arguments: [
      ("kitten", "sitting", 3), ("ab", "ba", 1), ("", "abc", 3), ("abc", "", 3), ("same", "same", 0),
      ("abcd", "acbd", 1),
      ("ca", "abc", 3),
    ])
  func distance(first: String, second: String, count: Int) {
    #expect(Spelling.distance(first, second) == count)
    #expect(Spelling.distance(second, first) == count)
  }

  @Test("only the first 64 bytes are compared")
  func longWords() {
    let long = String(repeating: "a", count: 64)
    #expect(Spelling.distance(long + "b", long + "ccc") == 0)
  }

  @Test("the nearest name is found whatever its case, and nothing is suggested for an unlike name")
  func nearest() {
    let known = ["maxFrame", "maxConnections", "allow"]
    #expect(Spelling.nearest(to: "maxframe", in: known) == "maxFrame")
    #expect(Spelling.nearest(to: "alow", in: known) == "allow")
    #expect(Spelling.nearest(to: "alolw", in: known) == "allow")
    #expect(Spelling.nearest(to: "colour", in: known) == nil)
    #expect(Spelling.nearest(to: "x", in: []) == nil)
  }
}
