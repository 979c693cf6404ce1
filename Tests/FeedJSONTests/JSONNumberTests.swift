import FeedJSON
import TestSupport
import Testing

/// The exact order of decimals and of their keys.
struct JSONNumberTests {
  private static func check(_ samples: [String], _ seed: UInt64? = nil) {
    let values = samples.map { (text: $0, exact: ReferenceDecimal($0), key: JSONNumber.key($0)) }
    for a in values {
      for b in values {
        let expected = a.exact.order(b.exact)
        if JSONNumber.order(a.text, b.text) != expected { Issue.record("\(a.text) \(b.text) seed \(seed ?? 0)") }
        let keys = a.key == b.key ? 0 : a.key.lexicographicallyPrecedes(b.key) ? -1 : 1
        if keys != expected { Issue.record("keys of \(a.text) \(b.text) seed \(seed ?? 0)") }
        if expected != 0, b.key.starts(with: a.key) { Issue.record("\(a.text) begins \(b.text) seed \(seed ?? 0)") }
      }
    }
  }

  @Test func fixedNumbersAreOrdered() { Self.check(NumberSamples.fixed) }

  @Test(arguments: 0..<UInt64(TestEffort.count(3, long: 60)))
  func randomNumbersAreOrdered(_ seed: UInt64) { Self.check(NumberSamples.random(90, seed: seed), seed) }

  /// Numbers with parts of many digits, of which eight are read at a time: the first and the last digit that is not zero are
  /// in each place of eight, before and behind the point.
  @Test func longNumbersAreOrdered() {
    let zeros = { (count: Int) in String(repeating: "0", count: count) }
    var samples: [String] = []
    for shift in 0..<9 {
      samples += [
        "1\(zeros(60 + shift))", "1\(zeros(50 + shift))7\(zeros(30 - shift))", "0.\(zeros(60 + shift))1\(zeros(40))",
        "-0.\(zeros(40 + shift))12\(zeros(30))3e\(shift)", "\(shift + 1)\(zeros(50)).\(zeros(50 + shift))5",
        "0.\(zeros(70 + shift))1e\(71 + shift)", "0.\(zeros(70 + shift))",
      ]
    }
    Self.check(samples)
    expectEqual(JSONNumber.order("0.\(zeros(99))1e100", "1"), 0)
  }

  @Test func hugeExponentsAreOrdered() {
    let huge = "99999999999999999999999999999999"
    let ascending = [
      "-1e\(huge)", "-1e9223372036854775807", "-1e4611686018427387904", "-1e400", "-1e-400", "-1e-\(huge)", "0",
      "1e-\(huge)",
      "1e-400", "1e400", "1e4000000000000000000", "1e4611686018427387903", "1e\(huge)", "2e\(huge)",
    ]
    for (i, a) in ascending.enumerated() {
      for (j, b) in ascending.enumerated() where (i < j) && !(i < 3 && j < 3) {
        expectEqual(JSONNumber.order(a, b), -1, "\(a) \(b)")
        expectEqual(JSONNumber.order(b, a), 1, "\(a) \(b)")
        expect(JSONNumber.key(a).lexicographicallyPrecedes(JSONNumber.key(b)), "\(a) \(b)")
      }
    }
    expectEqual(JSONNumber.order("0e\(huge)", "-0e-\(huge)"), 0)
    expectEqual(JSONNumber.key("0e\(huge)"), JSONNumber.key("0"))
    expectEqual(JSONNumber.order("1e-\(huge)", "1e-\(huge)7"), 0, "both are taken as the same power")
    expectEqual(JSONNumber.order("1e-\(huge)", "0.1e-\(huge)"), 1)
    expectEqual(JSONNumber.order("1e99999999999999999999", "1e88888888888888888888"), 0)
    expectEqual(JSONNumber.order("1e99999999999999999999", "10e99999999999999999998"), -1)
  }

  @Test func keysAreShort() {
    expectEqual(JSONNumber.key("0").count, 1)
    expectEqual(JSONNumber.key("-5").count, 3)
    expectEqual(JSONNumber.key("1700000000123").count, 9)
    let timestamps = [
      "1700000000000", "1700000000001", "1700000000010", "1800000000000", "-1700000000000", "-1700000000001",
    ]
    expectEqual(Set(timestamps.map { JSONNumber.key($0).prefix(8) }).count, timestamps.count)
  }

  @Test func keysCanBeConcatenated() {
    // In a longer key the second part must decide only between equal numbers.
    let numbers = ["1", "10", "1.5", "12", "-1", "-1.5", "0"]
    for a in numbers {
      for b in numbers where JSONNumber.order(a, b) < 0 {
        expect((JSONNumber.key(a) + [0xFF]).lexicographicallyPrecedes(JSONNumber.key(b) + [0x00]), "\(a) \(b)")
      }
    }
  }

  /// The text of a number and its integer value.
  static let integers: [(String, Int?)] = [
    ("0", 0), ("-0", 0), ("-0.00", 0), ("0e99999999999999999999", 0), ("7", 7), ("-7", -7), ("1.0", 1), ("1e2", 100),
    ("1.50e1", 15), ("-1200e-2", -12), ("0.5", nil), ("15e-1", nil), ("1e-1", nil),
    ("999999999999999999", 999_999_999_999_999_999),
    ("-999999999999999999", -999_999_999_999_999_999), ("9223372036854775807", .max), ("-9223372036854775808", .min),
    ("9223372036854775808", nil), ("-9223372036854775809", nil), ("922337203685477580.7e1", .max),
    ("-0.9223372036854775808e19", .min), ("1e18", 1_000_000_000_000_000_000), ("9e18", 9_000_000_000_000_000_000),
    ("1e19", nil), ("1e400", nil), ("1e-400", nil), ("1e99999999999999999999", nil), ("10000000000000000000", nil),
    ("000", 0), ("1000000000000000000.0", 1_000_000_000_000_000_000),
  ]

  @Test(arguments: integers)
  func integerValue(_ text: String, _ expected: Int?) throws {
    let bytes = Array(text.utf8)
    expectEqual(bytes.withUnsafeBytes { JSONNumber($0).int }, expected)
    // The text need not be valid JSON.
    guard text != "000" else { return }
    try expectEqual(withJSON("[\(text)]") { $0.element(at: 0)?.int }, expected)
  }

  @Test func integersRoundTrip() throws {
    var random = SeededRandom(seed: 5)
    for shift in 0..<64 {
      for value in [Int(bitPattern: UInt(random.next() >> UInt64(shift))), Int.max >> shift, Int.min >> shift] {
        try expectEqual(withJSON(String(value)) { $0.int }, value)
      }
    }
  }

  /// Integers of each length, whole and with each digit replaced, alone and before each kind of text.
  @Test func integersOfEveryLength() {
    for length in 1...18 {
      for sign in ["", "-"] where sign.count + length <= 18 {
        let text = sign + "123456789012345678".prefix(length)
        expectEqual(integer(text), Int(text))
        for end in ["}", ",1234567890123456789", "}}}}}}}}}}}}}}}}", " 1", "é", "/", ":"] {
          expectEqual(leadingInteger(text + end), Int(text), "\(text)\(end)")
        }
        expectEqual(leadingInteger(text), nil, "nothing ends \(text)")
        for place in sign.count..<text.count {
          for other in ["/", ":", "a", "\u{1}", "-", " "] {
            let wrong = text.prefix(place) + other + text.dropFirst(place + 1)
            expectEqual(integer(String(wrong)), place == 0 && other == "-" && length > 1 ? Int(wrong) : nil, "\(wrong)")
          }
        }
      }
    }
    for text in ["", "-", "}", "-}", "}1234567890123456", "-}123456789012345678", "1234567890123456789,"] {
      expectEqual(leadingInteger(text), nil, "\(text)")
    }
  }

  private func integer(_ text: String) -> Int? {
    Array(text.utf8).withUnsafeBytes { JSONNumber.integer(ofDigits: $0) }
  }

  private func leadingInteger(_ text: String) -> Int? {
    Array(text.utf8).withUnsafeBytes { JSONNumber.leadingInteger(of: $0) }
  }

  @Test func otherKindsHaveNoIntegerValue() throws {
    for text in ["\"1\"", "true", "null", "[1]", "{}"] { try expectEqual(withJSON(text) { $0.int }, nil) }
  }

  @Test func invalidNumbersDoNotTrap() {
    for text in ["", "-", ".", "..", "e", "1..2", "-e5", "1e", "1e+", "abc", "--1", "1.2.3e4e5"] {
      let bytes = Array(text.utf8)
      for other in ["", "1", "1..2"] { expect(abs(JSONNumber.order(text, other)) <= 1) }
      expect(JSONNumber.key(text).count <= bytes.count + 10)
    }
  }
}

/// Numbers with different texts, many of them close to each other or equal.
enum NumberSamples {
  /// Values at which the sign, the length or the exponent changes, each as several texts.
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
      // Few different digits, so that numbers share prefixes.
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
  /// Compares the texts of two numbers.
  static func order(_ a: String, _ b: String) -> Int {
    Array(a.utf8).withUnsafeBytes { a in Array(b.utf8).withUnsafeBytes { compare(a, $0) } }
  }

  /// The key of the text of a number.
  static func key(_ text: String) -> [UInt8] {
    var buffer = ByteBuffer()
    Array(text.utf8).withUnsafeBytes { appendOrderedKey(of: $0, to: &buffer) }
    return buffer.array
  }
}

extension JSONNumberTests {
  @Test(arguments: [
    ("0", "0"), ("-0.0e9", "0"), ("1", "1"), ("1.0", "1"), ("10e-1", "1"), ("-1.50", "-1.5"), ("1e3", "1000"),
    ("100000000000000000000", "100000000000000000000"), ("1e20", "100000000000000000000"), ("1e21", "1e21"),
    ("123456789012345678901234567890", "1.2345678901234567890123456789e29"), ("12.5e1", "125"),
    ("0.000001", "0.000001"),
    ("0.0000001", "1e-7"), ("-120", "-120"), ("123", "123"), ("-100000000000000000000000", "-1e23"),
    ("-0.00123e-70", "-1.23e-73"), ("1700000012345", "1700000012345"), ("-15e299", "-1.5e300"),
    ("1e99999999999999999999", "1e4611686018427387904"), ("10e99999999999999999998", "10e4611686018427387904"),
    ("-0.1e-99999999999999999999", "-0.1e-4611686018427387904"),
    ("-120.050e5000000000000000000", "-120.05e4611686018427387904"),
    ("0.00120e-4611686018427387904", "0.0012e-4611686018427387904"),
    ("120e-4611686018427387904", "1.2e-4611686018427387902"),
    ("1.25e4611686018427387904", "1.25e4611686018427387904"),
  ])
  func equalValuesHaveOneText(_ text: String, _ canonical: String) {
    var (text, known) = (text, canonical)
    expectEqual(text.withUTF8 { JSONNumber(UnsafeRawBufferPointer($0)).canonicalText }, canonical)
    expectEqual(known.withUTF8 { JSONNumber.isCanonical(UnsafeRawBufferPointer($0)) }, true)
    expectEqual(text.withUTF8 { JSONNumber.isCanonical(UnsafeRawBufferPointer($0)) }, text == canonical)
    for flip: UInt8 in [0, 0xFF] {
      var read = ByteBuffer()
      JSONNumber.key(text).map { $0 ^ flip }.withUnsafeBytes {
        JSONNumber.appendCanonicalText(ofKey: $0, isInverted: flip != 0, to: &read)
      }
      expectEqual(String(decoding: read.bytes, as: UTF8.self), canonical)
    }
  }
}
