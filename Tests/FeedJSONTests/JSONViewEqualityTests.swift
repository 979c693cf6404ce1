import FeedJSON
import TestSupport
import Testing

/// Equality of JSON values.
struct JSONViewEqualityTests {
  static let equal: [(String, String)] = [
    ("null", " null"), ("1", "1.0"), ("10", "1e1"), ("-0", "0"), ("0.1", "1e-1"), ("\"a\"", #""\u0061""#),
    ("[]", "[ ]"),
    ("[1,2]", "[1.0 , 2e0]"), ("{}", "{ }"), (#"{"a":1,"b":2}"#, #"{"b":2.0,"a":1}"#), (#"{"a":1,"a":2}"#, #"{"a":2}"#),
    (#"{"a":0,"b":1,"a":2}"#, #"{"\u0062":1,"a":2}"#), (#"{"a":{"b":[{"c":null}]}}"#, #"{ "a" : {"b":[{"c":null}]}}"#),
    (#"{"a":1,"b":1,"a":1}"#, #"{"b":1,"a":1,"b":1}"#),
    ("123456789012345678901234567890", "1.2345678901234567890123456789e29"),
  ]

  @Test(arguments: equal)
  func equals(_ a: String, _ b: String) throws {
    try withJSON(a) { a in try withJSON(b) { expect(a.equals($0) && $0.equals(a) && a.equals(a)) } }
  }

  static let different: [(String, String)] = [
    ("null", "false"), ("true", "false"), ("0", "null"), ("1", "\"1\""), ("1", "1.0000000000000000000000000001"),
    ("9007199254740993", "9007199254740992"), ("\"a\"", "\"A\""), ("\"a\"", "\"ab\""), (#""\ud800""#, #""\ufffd""#),
    ("[]", "{}"), ("[1]", "[]"), ("[1,2]", "[2,1]"), ("[1,2]", "[1,2,2]"), ("[[]]", "[{}]"), (#"{"a":1}"#, #"{"b":1}"#),
    (#"{"a":1}"#, #"{"a":2}"#), (#"{"a":1}"#, #"{}"#), (#"{"a":1,"b":2}"#, #"{"a":1}"#),
    (#"{"a":1,"a":2}"#, #"{"a":1}"#),
    (#"{"a":1,"a":2}"#, #"{"a":2,"b":2}"#), (#"{"a":[{"c":1}]}"#, #"{"a":[{"c":2}]}"#), ("\"é\"", "\"e\u{301}\""),
  ]

  @Test(arguments: different)
  func differs(_ a: String, _ b: String) throws {
    try withJSON(a) { a in try withJSON(b) { expect(!a.equals($0) && !$0.equals(a)) } }
  }

  @Test func equalityIgnoresOrderOfMembers() throws {
    var random = SeededRandom(seed: 11)
    for count in [2, 9, 40, 3000] {
      let members = (0..<count).map { "\"key\($0)\":{\"v\":[\($0)]}" }
      let text = "{" + members.joined(separator: ",") + "}"
      let shuffled = "{" + members.shuffled(using: &random).joined(separator: " ,") + "}"
      let changed = shuffled.replacing("\"v\":[1]", with: "\"v\":[1e1]")
      try withJSON(text) { a in
        try withJSON(shuffled) { expect(a.equals($0)) }
        try withJSON(changed) { expect(!a.equals($0)) }
      }
    }
  }

  /// A text and a mutated copy are equal exactly if the reference reads equal values from both.
  @Test func generatedTexts() throws {
    var (same, other) = (0, 0)
    for seed in 0..<400 as Range<UInt64> {
      var random = SeededRandom(seed: seed)
      var generator = TextGenerator(seed: seed)
      let text = generator.text(size: 6)
      let meaning = ReferenceReader.read(text)?.meaning
      for _ in 0..<20 {
        let changed = Mutation.of(text, &random)
        guard let b = ReferenceReader.read(changed)?.meaning else { continue }
        let expected = meaning == b
        if expected { same += 1 } else { other += 1 }
        try withJSON(text) { a in
          try withJSON(changed) { expectEqual(a.equals($0), expected, "seed \(seed): \(changed)") }
        }
      }
    }
    expect(same > 100 && other > 100)
  }
}
