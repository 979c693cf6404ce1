import FeedClient

/// The line that tells a person how a push goes, and the last one that stays.
struct PushProgress {
  /// How often the line changes.
  static let interval: UInt64 = 100_000_000

  private let start: UInt64
  private var shownAt: UInt64?
  private var rateSince: (time: UInt64, pushed: Int)
  private var rate = 0.0

  init(now: UInt64) {
    start = now
    rateSince = (now, 0)
  }

  /// When the line is due again.
  var deadline: UInt64 { (shownAt ?? start) &+ Self.interval }

  /// The line of the moment, with what puts it in the place of the one before; nil when it is not due.
  mutating func line(now: UInt64, pushed: Int, refused: Int, width: Int) -> String? {
    guard now >= deadline else { return nil }
    shownAt = now
    // The rate of about the last second, so that it follows a source that slows down.
    let elapsed = Double(now - rateSince.time) / 1e9
    if elapsed > 0 { rate = Double(pushed - rateSince.pushed) / elapsed }
    if elapsed >= 1 { rateSince = (now, pushed) }
    var line = LinePainter(width: width, palette: Palette(isOn: false))
    line.add(Self.text(pushed, refused, ", \(Grouped.text(Int(rate)))/s"))
    return "\r\(line.text)\u{1B}[K"
  }

  /// The line that stays at the end.
  func summary(now: UInt64, pushed: Int, refused: Int) -> String {
    let seconds = Double(now - start) / 1e9
    let rate = seconds > 0 ? Int(Double(pushed) / seconds) : pushed
    let tenths = Int(seconds * 10)
    return Self.text(pushed, refused, " in \(tenths / 10).\(tenths % 10) s, \(Grouped.text(rate))/s")
  }

  private static func text(_ pushed: Int, _ refused: Int, _ speed: String) -> String {
    var text = "\(Grouped.text(pushed)) pushed\(speed)"
    if refused > 0 { text += ", \(Grouped.text(refused)) refused" }
    return text
  }
}

/// Numbers for people.
enum Grouped {
  /// The digits in groups of three: 1,234,567.
  static func text(_ number: Int) -> String {
    let digits = String(number.magnitude)
    var text = number < 0 ? "-" : ""
    for (place, digit) in digits.enumerated() {
      if place > 0, (digits.count - place) % 3 == 0 { text += "," }
      text.append(digit)
    }
    return text
  }
}
