import FeedJSON

/// The notation of counts.
public enum Count {
  /// Parses an integer, also one in groups of three digits as the help shows it: `20000000`, `20,000,000`.
  /// - Returns: nil for other text and for numbers that do not fit.
  public static func parse(_ text: String) -> Int? {
    if !text.contains(",") { return Int(text) }
    return Int(text.filter { $0 != "," }).flatMap { grouped($0) == text ? $0 : nil }
  }
}

/// The notation of numbers of bytes. The units are powers of 1024.
public enum ByteCount {
  private static let units: [(letter: Character, shift: Int)] = [("K", 10), ("M", 20), ("G", 30), ("T", 40)]

  /// Parses a number, also a grouped one, and an optional unit: `K`, `M`, `G` or `T`, in either case, optionally followed by `iB` or `B`.
  /// - Returns: nil for other text and for numbers that do not fit.
  public static func parse(_ text: String) -> Int? {
    let digits = text.prefix { $0.isASCII && ($0.isNumber || $0 == ",") }
    guard let number = Count.parse(String(digits)) else { return nil }
    var suffix = text[digits.endIndex...].uppercased()
    if suffix == "B" { suffix = "" }
    guard let letter = suffix.first else { return number }
    guard let unit = units.first(where: { $0.letter == letter }), ["", "B", "IB"].contains(suffix.dropFirst()) else {
      return nil
    }
    let (product, overflow) = number.multipliedReportingOverflow(by: 1 << unit.shift)
    return overflow ? nil : product
  }

  /// Returns the shortest exact text, such as `16MiB` or `1,500`.
  public static func text(_ count: Int) -> String {
    guard count > 0, let unit = units.last(where: { count & ((1 << $0.shift) - 1) == 0 }) else { return grouped(count) }
    return "\(count >> unit.shift)\(unit.letter)iB"
  }
}

/// The notation of durations.
public enum TimeSpan {
  private static let units: [(name: String, milliseconds: Int)] = [
    ("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000),
  ]

  /// Parses a number with at most three decimals and a unit: `ms`, `s`, `m`, `h` or `d`. The default unit is seconds. The
  /// result is rounded down to milliseconds.
  /// - Returns: nil for other text and for durations that do not fit.
  public static func parse(_ text: String) -> Duration? {
    let number = text.prefix { $0.isASCII && ($0.isNumber || $0 == "." || $0 == ",") }
    let suffix = text[number.endIndex...]
    guard let unit = units.first(where: { $0.name == (suffix.isEmpty ? "s" : suffix) }) else { return nil }
    let parts = number.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    guard let whole = parts.first.flatMap({ Count.parse(String($0)) }) else { return nil }
    var thousandths = 0
    if parts.count == 2 {
      guard (1...3).contains(parts[1].count), let digits = Int(parts[1]) else { return nil }
      thousandths = digits * [100, 10, 1][parts[1].count - 1]
    }
    let (scaled, overflow) = whole.multipliedReportingOverflow(by: unit.milliseconds)
    guard !overflow, scaled < 1 << 52 else { return nil }
    return .milliseconds(scaled + thousandths * unit.milliseconds / 1000)
  }

  /// Returns the text of a duration in its largest exact unit, such as `30s`, `250ms` or `2h`. Fractions of a millisecond
  /// are omitted.
  public static func text(_ time: Duration) -> String {
    let milliseconds = Int(clamping: time.clampedNanoseconds / 1_000_000)
    guard milliseconds > 0 else { return "0s" }
    let unit = units.last { milliseconds % $0.milliseconds == 0 } ?? units[0]
    return "\(grouped(milliseconds / unit.milliseconds))\(unit.name)"
  }
}
