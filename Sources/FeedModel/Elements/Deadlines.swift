import FeedJSON
import FeedQuery

/// The elements of a table with an expiry time, in the order of expiry.
///
/// The expiry time of an element is stored with its text, as the last of its keys, so that undo needs no evaluation.
/// Invariant: contains exactly the living elements with an expiry time, ordered by this time, then by arrival.
final class Deadlines {
  private let path: SingularPath
  private let elements: ElementTable
  /// The index of the expiry time among the keys of an element.
  private let keyIndex: Int
  private let order: PositionTree

  init(path: SingularPath, elements: ElementTable, keyIndex: Int, order: PositionTree = PositionTree(keyed: true)) {
    (self.path, self.elements, self.keyIndex, self.order) = (path, elements, keyIndex, order)
  }

  /// Returns the deadlines of a copy of the elements. O(n).
  func copy(_ elements: ElementTable, _ pace: Pace) -> Deadlines {
    Deadlines(path: path, elements: elements, keyIndex: keyIndex, order: order.copy(pace))
  }

  /// Appends the key of an element: its length in 4 bytes, then the expiry time; length 0 if the element does not
  /// expire.
  func appendKey(of element: JSONView, to keys: inout ByteBuffer) {
    guard let moment = path.resolve(element).flatMap(Timestamp.instant) else { return keys.appendUInt32BigEndian(0) }
    keys.appendUInt32BigEndian(8)
    keys.appendUInt32BigEndian(UInt32(truncatingIfNeeded: moment.nanoseconds >> 32))
    keys.appendUInt32BigEndian(UInt32(truncatingIfNeeded: moment.nanoseconds))
  }

  /// Inserts an element that was added. O(log n).
  func insert(_ handle: UInt32) {
    guard let moment = moment(of: handle) else { return }
    let arrival = elements.text(of: handle).arrival
    let row = order.upperBound(key: moment) { elements.text(of: $0).arrival > arrival }
    order.insert(handle, at: row, key: moment)
  }

  /// Removes an element that is being removed. O(log n).
  func remove(_ handle: UInt32) { if order.contains(handle) { _ = order.remove(handle) } }

  /// Updates the position of an element whose text was exchanged. O(log n).
  func didExchange(_ handle: UInt32) {
    if let former = order.key(of: handle) {
      if former == moment(of: handle) { return }
      _ = order.remove(handle)
    }
    insert(handle)
  }

  /// Rebuilds the order, after the arrival numbers were set. O(n log n).
  func rebuild() {
    order.removeAll()
    elements.forEach(insert)
  }

  /// The time when the next element expires; nil if none does.
  var next: Instant? { order.count == 0 ? nil : Instant(nanoseconds: order.key(at: 0)) }

  /// At most `limit` expired elements, in order. O(limit · log n).
  func due(at moment: Instant, limit: Int) -> [UInt32] {
    var due: [UInt32] = []
    while due.count < min(limit, order.count), order.key(at: due.count) <= moment.nanoseconds {
      due.append(order[due.count])
    }
    return due
  }

  private func moment(of handle: UInt32) -> UInt64? {
    let keys = elements.text(of: handle).keys
    // A text under the previous definition, while a redefinition is undone.
    if keys.isEmpty { return nil }
    let key = SortOrder.key(keyIndex, in: keys)
    return key.isEmpty ? nil : SortOrder.prefix(of: key)
  }

  /// Traps unless the order matches the elements. O(n log n).
  func checkInvariants() {
    var count = 0
    elements.forEach { handle in
      guard let moment = moment(of: handle) else { return }
      count += 1
      precondition(order.key(of: handle) == moment, "an element has another moment")
    }
    precondition(count == order.count, "an element that does not expire has a moment")
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

  /// The days from 1970-01-01 to a date of the Gregorian calendar. Years are counted from March, so that a leap day is the
  /// last of its year.
  private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
    let years = month > 2 ? year : year - 1
    let months = (month + 9) % 12
    let leapDays = (years + 400) / 4 - (years + 400) / 100 + (years + 400) / 400 - 97
    return years * 365 + leapDays + (153 * months + 2) / 5 + day - 1 - 719_468
  }
}
