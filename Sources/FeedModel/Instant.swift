import FeedJSON

/// A point in time: nanoseconds since an arbitrary, fixed origin.
///
/// The model and the engine read no clock. The caller passes the current time, so a simulator can drive them.
@frozen public struct Instant: Hashable, Comparable, Sendable {
  public var nanoseconds: UInt64

  @inlinable public init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }

  @inlinable public static func < (a: Instant, b: Instant) -> Bool { a.nanoseconds < b.nanoseconds }

  /// The instant `seconds` later. Negative values count as 0; the result saturates.
  @inlinable public func adding(seconds: Double) -> Instant {
    assert(!seconds.isNaN, "the time is not a number")
    return adding(nanoseconds: UInt64(clamping: Int64(min(max(seconds, 0) * 1e9, 9e18))))
  }

  /// The instant `nanoseconds` later. The result saturates.
  @inlinable public func adding(nanoseconds more: UInt64) -> Instant {
    let (sum, overflow) = nanoseconds.addingReportingOverflow(more)
    return Instant(nanoseconds: overflow ? .max : sum)
  }

  /// The nanoseconds from `earlier` to this instant; 0 if `earlier` is later.
  @inlinable public func since(_ earlier: Instant) -> UInt64 {
    nanoseconds > earlier.nanoseconds ? nanoseconds &- earlier.nanoseconds : 0
  }
}

/// Converts a JSON value to a time: RFC 3339 text, or a number of seconds since 1970 (Protocol/README.md, "Retention").
enum Timestamp {
  /// The time of a value, clamped to the range of `Instant`; nil if the value is not a time.
  static func instant(_ value: JSONView) -> Instant? {
    switch value.kind {
    case .number:
      if let whole = value.int { return instant(seconds: whole, nanoseconds: 0) }
      // The nearest double: exact to a microsecond until the year 2200.
      guard let seconds = Double(String(decoding: value.text, as: UTF8.self)) else { return nil }
      // An infinite value represents a number out of range.
      guard seconds >= 0 else { return Instant(nanoseconds: 0) }
      guard seconds < 1e12 else { return Instant(nanoseconds: .max) }
      let whole = seconds.rounded(.down)
      return instant(seconds: Int(whole), nanoseconds: UInt64((seconds - whole) * 1e9))
    case .string:
      // A fraction of a second may be long, but no valid time needs more bytes.
      guard let text = value.string(atMost: 128) else { return nil }
      var parser = DateTimeParser(text: Array(text.utf8))
      return parser.parse()
    default: return nil
    }
  }

  /// The time `seconds` and `nanoseconds` after the beginning of 1970.
  fileprivate static func instant(seconds: Int, nanoseconds: UInt64) -> Instant {
    if seconds < 0 { return Instant(nanoseconds: 0) }
    let (whole, overflow) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
    return Instant(nanoseconds: overflow ? .max : whole).adding(nanoseconds: nanoseconds)
  }
}

/// Parses `date-time` of RFC 3339, section 5.6: `2026-03-01T12:00:00.5+01:00`. A leap second counts as the next second.
private struct DateTimeParser {
  let text: [UInt8]
  private var place = 0

  init(text: [UInt8]) { self.text = text }

  mutating func parse() -> Instant? {
    guard let year = number(4), take("-"), let month = number(2), take("-"), let day = number(2),
      take("T") || take("t"),
      let hour = number(2), take(":"), let minute = number(2), take(":"), let second = number(2),
      (1...12).contains(month), (1...Self.days(of: month, year)).contains(day), hour < 24, minute < 60, second <= 60,
      let nanoseconds = fraction(), let offset = offset(), place == text.count
    else { return nil }
    let seconds = Self.days(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset
    return Timestamp.instant(seconds: seconds, nanoseconds: nanoseconds)
  }

  private mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard place < text.count, text[place] == UInt8(ascii: character) else { return false }
    place += 1
    return true
  }

  private mutating func digit() -> Int? {
    guard place < text.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(text[place]) else { return nil }
    place += 1
    return Int(text[place - 1] - UInt8(ascii: "0"))
  }

  private mutating func number(_ digits: Int) -> Int? {
    var number = 0
    for _ in 0..<digits {
      guard let digit = digit() else { return nil }
      number = number * 10 + digit
    }
    return number
  }

  /// The nanoseconds of `.5`; 0 without a fraction. Further digits are ignored.
  private mutating func fraction() -> UInt64? {
    guard take(".") else { return 0 }
    guard var nanoseconds = digit().map(UInt64.init) else { return nil }
    var count = 1
    while let digit = digit() {
      if count < 9 { nanoseconds = nanoseconds * 10 + UInt64(digit) }
      count += 1
    }
    while count < 9 {
      nanoseconds *= 10
      count += 1
    }
    return nanoseconds
  }

  /// The seconds of `Z` or `+01:00`.
  private mutating func offset() -> Int? {
    if take("Z") || take("z") { return 0 }
    let isNegative = take("-")
    guard isNegative || take("+"), let hours = number(2), take(":"), let minutes = number(2), hours < 24, minutes < 60
    else { return nil }
    let seconds = hours * 3600 + minutes * 60
    return isNegative ? -seconds : seconds
  }

  private static func days(of month: Int, _ year: Int) -> Int {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  /// The days from 1970-01-01 to a date. Years are counted from March, so that a leap day is the last of its year.
  private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
    let years = month > 2 ? year : year - 1
    let months = (month + 9) % 12
    let leapDays = (years + 400) / 4 - (years + 400) / 100 + (years + 400) / 400 - 97
    return years * 365 + leapDays + (153 * months + 2) / 5 + day - 1 - 719_468
  }
}
