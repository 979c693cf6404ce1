import FeedJSON
import FeedSystem
import TestSupport
import Testing

@testable import FeedModel

/// Times at which elements expire.
@Suite("Timestamps") struct TimestampTests {
  @Test("values stand for the times of the vectors") func vectors() throws {
    let bytes = try SmallFile.read("\(BuildProducts.packageFolder)/Protocol/vectors/expiry.json")
    try withJSON(bytes) { file in
      for vector in try require(file.member("cases")).elements {
        let time = try require(vector.member("time"))
        let expected = vector.member("expires")?.string.map(Self.nanoseconds)
        expectEqual(Timestamp.instant(time)?.nanoseconds, expected, "\(vector.member("name")?.string ?? "")")
      }
    }
  }

  /// The nanoseconds of seconds in plain notation, 0 for a time before 1970.
  private static func nanoseconds(_ seconds: String) -> UInt64 {
    if seconds.hasPrefix("-") { return 0 }
    let parts = seconds.split(separator: ".")
    let fraction = parts.count > 1 ? String(parts[1].prefix(9)) : ""
    let digits = fraction + String(repeating: "0", count: 9 - fraction.count)
    return (UInt64(parts[0]) ?? 0) * 1_000_000_000 + (UInt64(digits) ?? 0)
  }

  @Test("times beyond the range are clamped") func range() throws {
    for text in ["1e30", "1e999", "99999999999999", "\"9999-12-31T23:59:59Z\""] {
      try withJSON(text) { expect((Timestamp.instant($0)?.nanoseconds ?? 0) >= 9_000_000_000_000_000_000) }
    }
    for text in ["-1e30", "-1e999", "-0.5", "1e-999"] {
      try withJSON(text) { expectEqual(Timestamp.instant($0)?.nanoseconds, 0) }
    }
  }
}
