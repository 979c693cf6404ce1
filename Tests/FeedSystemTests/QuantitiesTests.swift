import FeedSystem
import TestSupport
import Testing

@Suite("Notation of counts, bytes and durations")
struct UnitsTests {
  @Test(arguments: [("0", 0), ("1000", 1000), ("1,000", 1000), ("-1,234,567", -1_234_567), ("+7", 7)])
  func counts(text: String, count: Int) {
    expectEqual(Count.parse(text), count)
  }

  @Test(arguments: [
    "", ",", "1,00", "1000,000", ",100", "1,0000", "0,100", "1,000,", "1 000", "9,223,372,036,854,775,808",
  ])
  func badCounts(text: String) {
    expectEqual(Count.parse(text), nil)
  }

  @Test(arguments: [
    ("0", 0), ("4096", 4096), ("64K", 65536), ("64k", 65536), ("64KiB", 65536), ("64KB", 65536), ("16M", 16 << 20),
    ("1GiB", 1 << 30), ("2T", 2 << 40), ("12B", 12), ("1,500", 1500), ("1,024K", 1 << 20),
  ])
  func bytes(text: String, count: Int) {
    expectEqual(ByteCount.parse(text), count)
  }

  @Test(arguments: [
    "", "K", "-1", "1.5M", "1X", "1KK", "9223372036854775807K", "99999999999999999999", " 1", "1 K", "٣", "1,5K",
  ])
  func badBytes(text: String) {
    expectEqual(ByteCount.parse(text), nil)
  }

  @Test(arguments: [(0, "0"), (1500, "1,500"), (1024, "1KiB"), (16 << 20, "16MiB"), (3 << 40, "3TiB")])
  func bytesAsText(count: Int, text: String) {
    expectEqual(ByteCount.text(count), text)
    expectEqual(ByteCount.parse(text), count)
  }

  @Test(arguments: [
    ("30", 30_000), ("30s", 30_000), ("250ms", 250), ("1.5m", 90_000), ("0.25", 250), ("2h", 7_200_000),
    ("7d", 604_800_000), ("0", 0), ("1.001s", 1001), ("1,500ms", 1500),
  ])
  func times(text: String, milliseconds: Int) {
    expectEqual(TimeSpan.parse(text), .milliseconds(milliseconds))
  }

  @Test(arguments: [
    "", "s", "-1", "1.", ".5", "1.2345", "1y", "1..2", "1 s", "99999999999999999999", "9999999999999d", "1,5s", "1.5,0",
  ])
  func badTimes(text: String) {
    expectEqual(TimeSpan.parse(text), nil)
  }

  @Test(arguments: [
    (0, "0s"), (250, "250ms"), (1500, "1,500ms"), (30_000, "30s"), (90_000, "90s"), (60_000, "1m"), (86_400_000, "1d"),
  ])
  func timesAsText(milliseconds: Int, text: String) {
    expectEqual(TimeSpan.text(.milliseconds(milliseconds)), text)
    expectEqual(TimeSpan.parse(text), .milliseconds(milliseconds))
  }
}
