import FeedJSON
import TestSupport

/// Numbers in many spellings, among them many near each other and many that are equal.
enum NumberSamples {
  /// Values at which signs, lengths and powers change, each in several spellings.
  static let fixed: [String] = [
    "0", "-0", "0.0", "-0.000", "0e5", "-0E-7", "1", "1.0", "10e-1", "0.1e1", "0.10E+1", "100e-2", "-1", "-1.00",
    "-10e-1",
    "9", "10", "11", "1e1", "99", "100", "101", "1E2", "0.1", "0.01", "0.09", "0.11", "0.099999", "-0.1", "-0.01",
    "-0.11",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "9223372036854775806",
    "9007199254740993", "9007199254740992", "9007199254740992.5", "18446744073709551616",
    "123456789012345678901234567890",
    "123456789012345678901234567891", "1.23456789012345678901234567890e29", "1e79", "1e80", "1e81", "9e80", "-1e80",
    "-1e81", "1e-44", "1e-45", "1e-46", "9e-46", "-1e-45", "-1e-46", "1e100", "1e-100", "-1e100", "-1e-100",
    "1700000000000",
    "1700000000001", "1700000000000.5", "999999999999999999", "1000000000000000000", "-999999999999999999",
  ]

  static func random(_ count: Int, seed: UInt64) -> [String] {
    var random = SeededRandom(seed: seed)
    return (0..<count).map { _ in one(&random) }
  }

  private static func one(_ random: inout SeededRandom) -> String {
    func digits(_ count: Int) -> String {
      // Few different digits, so that numbers share beginnings.
      String((0..<count).map { _ in "0019"[Int.random(in: 0..<4, using: &random)] })
    }
    var whole = digits(Int.random(in: 1...(random.next() % 4 == 0 ? 26 : 4), using: &random))
    while whole.count > 1, whole.first == "0" { whole.removeFirst() }
    let sign = random.next() & 1 == 0 ? "-" : ""
    let fraction = random.next() & 1 == 0 ? "." + digits(Int.random(in: 1...6, using: &random)) : ""
    let exponent = random.next() % 3 == 0 ? "e\(Int.random(in: -90...90, using: &random))" : ""
    return sign + whole + fraction + exponent
  }
}

extension String {
  fileprivate subscript(_ index: Int) -> Character { self[self.index(startIndex, offsetBy: index)] }
}

extension JSONNumber {
  /// Orders two spellings.
  static func order(_ a: String, _ b: String) -> Int {
    Array(a.utf8).withUnsafeBytes { a in Array(b.utf8).withUnsafeBytes { compare(a, $0) } }
  }

  /// The ordered key of a spelling.
  static func key(_ text: String) -> [UInt8] {
    var buffer = ByteBuffer()
    Array(text.utf8).withUnsafeBytes { appendOrderedKey(of: $0, to: &buffer) }
    return buffer.array
  }
}
