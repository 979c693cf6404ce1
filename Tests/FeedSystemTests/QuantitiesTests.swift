import FeedSystem
import TestSupport
import Testing

@Suite("Notation of counts, bytes and durations")
struct UnitsTests {
  @Test(
    arguments: [
      (0, ["0"]), (1000, ["1000", "1,000"]), (-1_234_567, ["-1,234,567"]), (7, ["+7"]),
      (
        nil,
        ["", ",", "1,00", "1000,000", ",100", "1,0000", "0,100", "1,000,", "1 000", "9,223,372,036,854,775,808"]
      ),
    ] as [(Int?, [String])])
  func counts(count: Int?, texts: [String]) {
    for text in texts { expectEqual(Count.parse(text), count, "\(text)") }
  }

  @Test(
    arguments: [
      (0, ["0"]), (4096, ["4096"]), (65536, ["64K", "64k", "64KiB", "64KB"]), (16 << 20, ["16M"]), (1 << 30, ["1GiB"]),
      (2 << 40, ["2T"]), (12, ["12B"]), (1500, ["1,500"]), (1 << 20, ["1,024K"]),
      (
        nil,
        ["", "K", "-1", "1.5M", "1X", "1KK", "9223372036854775807K", "99999999999999999999", " 1", "1 K", "٣", "1,5K"]
      ),
    ] as [(Int?, [String])])
  func bytes(count: Int?, texts: [String]) {
    for text in texts { expectEqual(ByteCount.parse(text), count, "\(text)") }
  }

  @Test(arguments: [(0, "0"), (1500, "1,500"), (1024, "1KiB"), (16 << 20, "16MiB"), (3 << 40, "3TiB")])
  func bytesAsText(count: Int, text: String) {
    expectEqual(ByteCount.text(count), text)
    expectEqual(ByteCount.parse(text), count)
  }

  @Test(
    arguments: [
      (30_000, ["30", "30s"]), (250, ["250ms", "0.25"]), (90_000, ["1.5m"]), (7_200_000, ["2h"]), (604_800_000, ["7d"]),
      (0, ["0"]), (1001, ["1.001s"]), (1500, ["1,500ms"]),
      (
        nil,
        [
          "", "s", "-1", "1.", ".5", "1.2345", "1y", "1..2", "1 s", "99999999999999999999", "9999999999999d", "1,5s",
          "1.5,0",
        ]
      ),
    ] as [(Int?, [String])])
  func times(milliseconds: Int?, texts: [String]) {
    for text in texts { expectEqual(TimeSpan.parse(text), milliseconds.map { .milliseconds($0) }, "\(text)") }
  }

  @Test(arguments: [
    (0, "0s"), (250, "250ms"), (1500, "1,500ms"), (30_000, "30s"), (90_000, "90s"), (60_000, "1m"), (86_400_000, "1d"),
  ])
  func timesAsText(milliseconds: Int, text: String) {
    expectEqual(TimeSpan.text(.milliseconds(milliseconds)), text)
    expectEqual(TimeSpan.parse(text), .milliseconds(milliseconds))
  }
}
