/// Numbers of bytes as people write them; the units are powers of 1024.
public enum ByteCount {
  private static let units: [(letter: Character, shift: Int)] = [("K", 10), ("M", 20), ("G", 30), ("T", 40)]

  /// The number that `text` stands for: digits, then optionally `K`, `M`, `G` or `T` (either case), `iB` or `B` after it.
  /// nil for anything else, a negative number and one that does not fit.
  public static func parse(_ text: String) -> Int? {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    guard let number = Int(digits) else { return nil }
    var suffix = text[digits.endIndex...].uppercased()
    if suffix == "B" { suffix = "" }
    guard let letter = suffix.first else { return number }
    guard let unit = units.first(where: { $0.letter == letter }), ["", "B", "IB"].contains(suffix.dropFirst()) else {
      return nil
    }
    let (product, overflow) = number.multipliedReportingOverflow(by: 1 << unit.shift)
    return overflow ? nil : product
  }

  /// The shortest exact text: `16MiB`, `1500`.
  public static func text(_ count: Int) -> String {
    guard count > 0, let unit = units.last(where: { count & ((1 << $0.shift) - 1) == 0 }) else { return "\(count)" }
    return "\(count >> unit.shift)\(unit.letter)iB"
  }
}
