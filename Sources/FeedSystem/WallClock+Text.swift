import Glibc

extension WallClock {
  /// The time now as RFC 3339 has it, in UTC with milliseconds: `2026-03-01T12:00:00.123Z`.
  public static var text: String { text(now) }

  /// The text of a time given in nanoseconds since 1970; see ``text``.
  public static func text(_ nanoseconds: UInt64) -> String {
    var seconds = time_t(nanoseconds / 1_000_000_000)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    func digits(_ value: Int, _ width: Int) -> String {
      let text = "\(value)"
      return String(repeating: "0", count: max(width - text.utf8.count, 0)) + text
    }
    let date =
      "\(digits(Int(parts.tm_year) + 1900, 4))-\(digits(Int(parts.tm_mon) + 1, 2))-\(digits(Int(parts.tm_mday), 2))"
    let clock = "\(digits(Int(parts.tm_hour), 2)):\(digits(Int(parts.tm_min), 2)):\(digits(Int(parts.tm_sec), 2))"
    return "\(date)T\(clock).\(digits(Int(nanoseconds / 1_000_000 % 1000), 3))Z"
  }
}
