import FeedJSON
import Testing

struct CountedTests {
  @Test(arguments: [
    (0, "0"), (999, "999"), (1000, "1,000"), (-1000, "-1,000"), (-999, "-999"), (100_000, "100,000"),
    (-1_234_567, "-1,234,567"), (Int.min, "-9,223,372,036,854,775,808"),
  ])
  func digitsAreGroupedInThrees(number: Int, text: String) {
    #expect(grouped(number) == text)
  }

  @Test func nounFollowsTheNumber() {
    #expect(counted(0, "row") == "0 rows")
    #expect(counted(1, "row") == "1 row")
    #expect(counted(2000, "row") == "2,000 rows")
    #expect(counted(1, "batch", plural: "batches") == "1 batch")
    #expect(counted(UInt64.max, "batch", plural: "batches") == "18,446,744,073,709,551,615 batches")
  }
}
