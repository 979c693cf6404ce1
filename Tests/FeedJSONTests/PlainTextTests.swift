import FeedJSON
import TestSupport
import Testing

@Suite("Text for people")
struct PlainTextTests {
  @Test(arguments: [
    (0, "0"), (999, "999"), (1000, "1,000"), (-1000, "-1,000"), (-999, "-999"), (100_000, "100,000"),
    (-1_234_567, "-1,234,567"), (Int.min, "-9,223,372,036,854,775,808"),
  ])
  func digitsAreGroupedInThrees(number: Int, text: String) {
    expectEqual(grouped(number), text)
  }

  @Test func nounFollowsTheNumber() {
    expectEqual(counted(0, "row"), "0 rows")
    expectEqual(counted(1, "row"), "1 row")
    expectEqual(counted(2000, "row"), "2,000 rows")
    expectEqual(counted(1, "batch", plural: "batches"), "1 batch")
    expectEqual(counted(UInt64.max, "batch", plural: "batches"), "18,446,744,073,709,551,615 batches")
  }

  @Test(
    "text for people replaces every character that controls a terminal, and no other",
    arguments: [
      ("plain é 日 👍🏽 e\u{301}\u{200D}", "plain é 日 👍🏽 e\u{301}\u{200D}"), ("", ""),
      ("a\r\nb\tc", "a\u{FFFD}\u{FFFD}b\u{FFFD}c"),
      ("\u{1B}[2J\u{9B}\u{7F}\u{0}", "\u{FFFD}[2J\u{FFFD}\u{FFFD}\u{FFFD}"), ("\u{2028}\u{2029}", "\u{FFFD}\u{FFFD}"),
      ("\u{61C}\u{200E}\u{200F}\u{202A}\u{202E}\u{2066}\u{2069}", String(repeating: "\u{FFFD}", count: 7)),
    ])
  func textForPeople(text: String, shown: String) {
    expectEqual(text.inLine, shown)
  }
}
