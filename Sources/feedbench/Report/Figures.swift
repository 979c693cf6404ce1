/// Numbers as people read them.
enum Figures {
  /// Three significant digits or all whole ones, without an exponent.
  static func text(_ value: Double) -> String {
    guard value.isFinite, value.magnitude < 1e15 else { return "-" }
    let decimals = value.magnitude >= 100 ? 0 : value.magnitude >= 10 ? 1 : value.magnitude >= 1 ? 2 : 3
    return text(value, decimals: decimals)
  }

  /// So many digits after the point.
  static func text(_ value: Double, decimals: Int) -> String {
    var scale = 1
    for _ in 0..<decimals { scale *= 10 }
    let scaled = Int((value.magnitude * Double(scale)).rounded())
    let sign = value < 0 && scaled > 0 ? "-" : ""
    if decimals == 0 { return "\(sign)\(scaled)" }
    let fraction = "\(scaled % scale)"
    return "\(sign)\(scaled / scale).\(String(repeating: "0", count: decimals - fraction.utf8.count))\(fraction)"
  }

  /// `text` in a column; the right end lines up.
  static func right(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(0, width - text.count)) + text
  }

  /// `text` in a column; the left end lines up.
  static func left(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }
}
